"""The kernel's conntrack settings: what is wanted of a host, and that one that can't be set stops nothing."""

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from proxy.conntrack.settings import ConntrackSettings
from proxy.sysctls import Sysctl, choose_max, plan_sysctls, write_sysctls

NETFILTER = "net/netfilter/"


@pytest.mark.parametrize(
    ("settings", "cores", "most"),
    [
        pytest.param(ConntrackSettings(), 2, 131_072, id="few cores get the minimum"),
        pytest.param(ConntrackSettings(), 16, 524_288, id="many cores get their share"),
        pytest.param(ConntrackSettings(), 64, 1_048_576, id="very many get the cap"),
        pytest.param(ConntrackSettings(min=2_000_000), 64, 1_048_576, id="the cap beats a larger minimum"),
        pytest.param(ConntrackSettings(min=2_000_000), 2, 2_000_000, id="where the cores reach it"),
        pytest.param(ConntrackSettings(max_per_core=0), 64, 0, id="nothing per core leaves the host's"),
    ],
)
def test_the_number_of_tracked_connections(settings: ConntrackSettings, cores: int, most: int) -> None:
    assert choose_max(settings, cores) == most


def test_the_defaults_are_kube_proxys() -> None:
    assert plan_sysctls(ConntrackSettings(), 16) == (
        Sysctl(NETFILTER + "nf_conntrack_max", 524_288),
        Sysctl(NETFILTER + "nf_conntrack_buckets", 131_072, at_least=True),
        Sysctl(NETFILTER + "nf_conntrack_tcp_timeout_established", 86_400),
        Sysctl(NETFILTER + "nf_conntrack_tcp_timeout_close_wait", 3_600),
    )


def test_what_is_zero_is_left_to_the_host() -> None:
    settings = ConntrackSettings(0, 0, 0.0, 0.5, 30.0, 120.0, tcp_be_liberal=True)

    assert plan_sysctls(settings, 16) == (
        Sysctl(NETFILTER + "nf_conntrack_udp_timeout", 30),
        Sysctl(NETFILTER + "nf_conntrack_udp_timeout_stream", 120),
        Sysctl(NETFILTER + "nf_conntrack_tcp_be_liberal", 1),
    )


def keep(root: Path, name: str, text: str) -> Path:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    ("held", "at_least", "after"),
    [
        pytest.param("100\n", False, "200", id="another value is replaced"),
        pytest.param("300\n", False, "200", id="a larger one too"),
        pytest.param("200\n", False, "200\n", id="the same isn't written"),
        pytest.param("300\n", True, "300\n", id="a larger one stays where less would do"),
        pytest.param("100\n", True, "200", id="a smaller one doesn't"),
    ],
)
def test_only_what_differs_is_written(tmp_path: Path, held: str, after: str, *, at_least: bool) -> None:
    file = keep(tmp_path, "some/value", held)

    write_sysctls([Sysctl("some/value", 200, at_least)], tmp_path)

    assert file.read_text() == after


def test_what_is_missing_is_said_and_the_rest_is_written(tmp_path: Path) -> None:
    """Report kubernetes/kops 17915: kube-proxy crashed where nf_conntrack wasn't loaded."""
    file = keep(tmp_path, "second", "1")
    keep(tmp_path, "unreadable", "not a number")

    with capture_logs() as lines:
        write_sysctls([Sysctl("first", 5), Sysctl("unreadable", 5), Sysctl("second", 5)], tmp_path)

    assert file.read_text() == "5"
    assert [(line["log_level"], line["sysctl"]) for line in lines] == [
        ("warning", "first"),
        ("warning", "unreadable"),
        ("info", "second"),
    ]
    assert "module isn't loaded" in lines[0]["why"]


def test_what_nobody_may_write_is_said(tmp_path: Path) -> None:
    (tmp_path / "read-only").symlink_to("/proc/sys/kernel/ngroups_max")  # 0444, for root as well

    with capture_logs() as lines:
        write_sysctls([Sysctl("read-only", 5)], tmp_path)

    assert [line["log_level"] for line in lines] == ["warning"]
    assert "not permitted" in lines[0]["why"]
