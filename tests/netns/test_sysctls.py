"""The conntrack settings in a network namespace: some are its own, nf_conntrack_max is the host's."""

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from e2e.world.netns import run_in
from proxy.conntrack.settings import ConntrackSettings
from proxy.sysctls import plan_sysctls, write_sysctls
from tests.netns.kernel_space import Space

pytestmark = pytest.mark.netns

SETTINGS = ConntrackSettings(1, 1, 7200.0, 90.0, 25.0, 45.0, tcp_be_liberal=True)  # the hash is never made smaller
OWN = {
    "tcp_timeout_established": "7200",
    "tcp_timeout_close_wait": "90",
    "udp_timeout": "25",
    "udp_timeout_stream": "45",
    "tcp_be_liberal": "1",
}


def read_own() -> dict[str, str]:
    return {name: Path(f"/proc/sys/net/netfilter/nf_conntrack_{name}").read_text().strip() for name in OWN}


def test_what_is_the_namespaces_own_is_set_and_what_is_the_hosts_is_told(space: Space) -> None:
    with capture_logs() as lines:
        run_in(space.name, lambda: write_sysctls(plan_sysctls(SETTINGS, 2)))

    assert run_in(space.name, read_own) == OWN
    assert [(line["sysctl"], line["why"]) for line in lines if line["log_level"] == "warning"] == [
        ("nf_conntrack_max", "not permitted: it takes CAP_NET_ADMIN, in the host's own network namespace")
    ]


def test_nothing_is_written_twice(space: Space) -> None:
    run_in(space.name, lambda: write_sysctls(plan_sysctls(SETTINGS, 2)))

    with capture_logs() as lines:
        run_in(space.name, lambda: write_sysctls(plan_sysctls(SETTINGS, 2)))

    assert [line["event"] for line in lines] == ["sysctl_not_set"]
