"""Whose process is a kube-proxy."""

import pytest

from proxy.leftovers.host import is_kube_proxy


@pytest.mark.parametrize(
    ("argv", "is_one"),
    [
        pytest.param([b"/usr/local/bin/kube-proxy", b"--config=/var/lib/x"], True, id="kubeadm's"),
        pytest.param([b"kube-proxy"], True, id="by its name alone"),
        pytest.param([b"/bin/all", b"kube-proxy", b"--v=2"], True, id="one binary with several programs"),
        pytest.param([b"closeby", b"cleanup", b"--kube-proxy"], False, id="this command"),
        pytest.param([b"grep", b"-r", b"kube-proxy"], False, id="a search for it"),
        pytest.param([b""], False, id="a kernel thread"),
    ],
)
def test_a_kube_proxy_is_known_by_its_command_line(argv: list[bytes], *, is_one: bool) -> None:
    assert is_kube_proxy(argv) == is_one
