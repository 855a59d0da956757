"""As an operator I make a mistake, and closeby ends at once with a sentence that tells me which."""

import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.closeby import CLOSEBY
from e2e.cluster.daemon import Ended, run_closeby
from e2e.world import netns

pytestmark = pytest.mark.netns

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: here, user: me}}]
clusters: [{name: here, cluster: {server: "https://127.0.0.1:1", certificate-authority: missing.crt}}]
users: [{name: me, user: {token: t}}]
"""


@pytest.fixture(scope="module")
def node() -> Iterator[str]:
    """A network namespace with nothing in it."""
    name = netns.unique_prefix("refusal") + "node"
    netns.create_namespaces([name])
    yield name
    netns.remove_namespaces([name])


def run(node: str, folder: Path, *flags: str, prefix: tuple[str, ...] = ()) -> Ended:
    return run_closeby(node, "run", "--control-socket", str(folder / "c.sock"), *flags, prefix=prefix)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        pytest.param(["--kubeconfig", "{folder}/no-such"], "{folder}/no-such does not exist", id="absent"),
        pytest.param(["--kubeconfig", "{folder}/garbage"], "not YAML", id="a kubeconfig that is no YAML"),
        pytest.param(["--kubeconfig", "{folder}/empty"], "current-context", id="a kubeconfig without a context"),
        pytest.param(["--kubeconfig", "{folder}/no-ca"], "missing.crt", id="a certificate that isn't there"),
        pytest.param(["--manifests", "{folder}/no-such"], "{folder}/no-such is not a directory", id="a folder"),
        pytest.param(["--manifests", "{folder}", "--kubeconfig", "{folder}/no-ca"], "not both", id="two sources"),
        pytest.param([], "give --kubeconfig or --manifests: not in a cluster", id="no source outside a cluster"),
        pytest.param(["--manifests", "{folder}", "--cluster-cidr", "10.244.0.0/33"], '"10.244.0.0/33"', id="bad CIDR"),
        pytest.param(["--manifests", "{folder}", "--min-sync-period", "soon"], '"soon" is not a', id="duration"),
        pytest.param(["--manifests", "{folder}", "--healthz-bind-address", "x:y"], "--healthz-bind", id="address"),
        pytest.param(["--manifests", "{folder}", "--no-such-flag"], "No such option", id="an unknown flag"),
    ],
)
def test_a_wrong_flag_or_file_is_named_and_the_exit_code_is_2(
    node: str, tmp_path: Path, flags: list[str], said: str
) -> None:
    (tmp_path / "garbage").write_text("{[")
    (tmp_path / "empty").write_text("{}")
    (tmp_path / "no-ca").write_text(KUBECONFIG)

    ended = run(node, tmp_path, *(flag.format(folder=tmp_path) for flag in flags))

    assert ended.code == 2
    assert said.format(folder=tmp_path) in ended.error
    assert "Traceback" not in ended.error


OTHER_USER = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")


@pytest.mark.parametrize(
    "prefix",
    [
        pytest.param(("setpriv", "--bounding-set", "-net_admin", "--inh-caps", "-net_admin"), id="root without it"),
        pytest.param(OTHER_USER, id="another user"),
    ],
)
@pytest.mark.parametrize("command", ["run", "cleanup"])
def test_without_the_privilege_it_says_which_one_and_the_exit_code_is_1(
    node: str, open_folder: Path, prefix: tuple[str, ...], command: str
) -> None:
    _skip_where_nobody_can_start(prefix)
    flags = ["--control-socket", str(open_folder / "c.sock"), "--manifests", str(open_folder)]

    ended = run_closeby(node, command, *(flags if command == "run" else ()), prefix=prefix)

    assert ended.code == 1
    assert "CAP_NET_ADMIN" in ended.error
    assert ended.error.startswith("closeby: ")
    assert len(ended.error.splitlines()) == 1


@pytest.mark.parametrize("flag", ["--kubeconfig", "--manifests"])
def test_a_file_that_may_not_be_read_is_named(node: str, open_folder: Path, flag: str) -> None:
    _skip_where_nobody_can_start(OTHER_USER)
    closed = open_folder / "closed"
    (closed / "inside").mkdir(parents=True)
    closed.chmod(0o700)

    ended = run_closeby(
        node, "run", "--control-socket", str(open_folder / "c.sock"), flag, str(closed / "inside"), prefix=OTHER_USER
    )

    assert ended.code == 2
    assert ended.error == f"closeby: {flag}: {closed / 'inside'}: Permission denied\n"


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that any user may write to; pytest's own are root's alone."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


def _skip_where_nobody_can_start(prefix: tuple[str, ...]) -> None:
    """The checkout may lie in a folder that is root's alone."""
    done = subprocess.run([*prefix, str(CLOSEBY), "version"], capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip("another user can't run this Python environment")


def test_an_address_that_is_taken_is_named_where_it_must_be_had(node: str, tmp_path: Path) -> None:
    netns.run_ip({node: ["link set lo up"]})
    with netns.run_in(node, lambda: socket.create_server(("127.0.0.1", 10256))):
        flags = ("--healthz-bind-address", "127.0.0.1:10256", "--bind-address-hard-fail")
        ended = run(node, tmp_path, "--manifests", str(tmp_path), *flags)

    assert ended.code == 2
    assert "--healthz-bind-address: can't listen on 127.0.0.1:10256" in ended.error
