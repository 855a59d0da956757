"""What `closeby plan` and `closeby explain` say of session affinity and source ranges."""

import json
from pathlib import Path

import pytest

from tests.unit.proxy.cli.conftest import RunCloseby

BALANCED = """
kind: Service
metadata: {name: balanced}
spec:
  type: LoadBalancer
  clusterIPs: [10.96.0.12, "fd00::c"]
  sessionAffinity: ClientIP
  loadBalancerSourceRanges: [203.0.113.0/24, 203.0.113.0/25]
  ports: [{port: 80}]
status:
  loadBalancer:
    ingress: [{ip: 198.51.100.9}, {ip: "2001:db8::9"}]
"""
EVERYONE = "LoadBalancerIP [2001:db8::9]:80 is open to all: loadBalancerSourceRanges has no range of IPv6."


@pytest.fixture
def folder(manifests: Path) -> Path:
    (manifests / "balanced.yaml").write_text(BALANCED)
    return manifests


def test_plan_has_the_time_of_affinity_and_the_ranges_as_they_are_programmed(
    run_closeby: RunCloseby, folder: Path
) -> None:
    out = run_closeby("plan", "--node", "n1", "--manifests", folder, "-o", "json").out

    ports = json.loads(out)["services"]
    assert {(port["service"], port["affinity"]) for port in ports} == {
        ("default/balanced", 10800),
        ("default/web", None),
        ("default/rival", None),
    }
    ranges = {f["ip"]: f["source_ranges"] for port in ports for f in port["frontends"] if f["source_ranges"]}
    assert ranges == {"198.51.100.9": ["203.0.113.0/24"]}


def test_plan_shows_people_the_ranges(run_closeby: RunCloseby, folder: Path) -> None:
    assert "in 203.0.113.0/24" in run_closeby("plan", "--node", "n1", "--manifests", folder).out


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        pytest.param((), "is open to loadBalancerSourceRanges 203.0.113.0/24 only.", id="nobody in particular"),
        pytest.param(
            ("--from", "203.0.113.7"),
            "is open to 203.0.113.7, by loadBalancerSourceRanges 203.0.113.0/24.",
            id="a client that may",
        ),
        pytest.param(
            ("--from", "192.0.2.1"),
            "drops what 192.0.2.1 sends: it is in none of loadBalancerSourceRanges 203.0.113.0/24.",
            id="a client that may not",
        ),
    ],
)
def test_explain_says_who_may_reach_a_load_balancers_address(
    run_closeby: RunCloseby, folder: Path, flags: tuple[str, ...], words: str
) -> None:
    out = run_closeby("explain", "default/balanced", "--node", "n1", "--manifests", folder, *flags).out

    said = " ".join(out.split())
    assert f"LoadBalancerIP 198.51.100.9:80 {words}" in said
    assert EVERYONE in said
    assert "sessionAffinity ClientIP, for 10800 s after the last connection" in said


def test_explain_says_nothing_of_ranges_where_there_are_none(run_closeby: RunCloseby, folder: Path) -> None:
    out = run_closeby("explain", "default/web", "--node", "n1", "--manifests", folder).out

    assert "loadBalancerSourceRanges" not in out
    assert "sessionAffinity None" in out
