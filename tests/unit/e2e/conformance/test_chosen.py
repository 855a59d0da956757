import re

import pytest

from e2e.conformance.chosen import CHOSEN, CHOSEN_SPECS, NODES, ZONES, Part, find_reason, is_in, list_left_out

ENDPOINT = "[sig-network] Services should serve a basic endpoint from pods [Conformance]"
UDP = "[sig-network] Networking Granular Checks: Services should update endpoints: udp [Slow]"
DUAL = "[sig-network] [Feature:IPv6DualStack] Granular Checks: Services Secondary IP Family should function"
ZONAL = "[sig-network] Traffic Distribution should route traffic to an endpoint in the same zone"
GATEWAY = "[sig-network] LoadBalancers ESIPP [Slow] should work from pods"
INTERNET = "[sig-network] Networking [Feature:Networking-IPv4] should provide Internet connection for containers"
RESTART = "[sig-network] Services should work after restarting kube-proxy [Disruptive]"
VOLUMES = "[sig-storage] EmptyDir volumes should support Services"


@pytest.mark.parametrize(
    ("part", "name", "chosen"),
    [
        pytest.param(NODES, ENDPOINT, True, id="a plain spec of Services runs on few nodes"),
        pytest.param(ZONES, ENDPOINT, False, id="and is not run again in zones"),
        pytest.param(NODES, UDP, False, id="a slow one waits"),
        pytest.param(ZONES, UDP, True, id="for the other part"),
        pytest.param(NODES, ZONAL, False, id="zones are missing"),
        pytest.param(ZONES, ZONAL, True, id="zones are there"),
        pytest.param(ZONES, DUAL, True, id="both families"),
        pytest.param(NODES, INTERNET, False, id="the Internet, on few nodes"),
        pytest.param(ZONES, INTERNET, False, id="the Internet, in zones"),
        pytest.param(ZONES, RESTART, False, id="a component restarted by ssh"),
        pytest.param(ZONES, GATEWAY, False, id="a cloud's balancer"),
        pytest.param(NODES, VOLUMES, False, id="another group's spec"),
    ],
)
def test_a_part_chooses(part: Part, name: str, chosen: bool) -> None:  # noqa: FBT001  # a table's column
    assert is_in(part, name) is chosen


def test_of_the_networks_specs_those_that_no_part_runs_are_left_out_with_a_reason() -> None:
    left_out = list_left_out([ENDPOINT, UDP, ZONAL, INTERNET, RESTART, VOLUMES, "[sig-network] Fax should send"])
    assert left_out == {
        INTERNET: "asks the Internet",
        RESTART: "restarts components of a node by ssh",
        "[sig-network] Fax should send": "",
    }


def test_a_reason_is_known_for_what_no_proxy_can_pass_here() -> None:
    assert find_reason("[sig-network] Services should create a basic SCTP service [Serial]")
    assert find_reason(ENDPOINT) is None


def test_the_chosen_ones_are_found_by_their_whole_names_alone() -> None:
    assert all(re.search(CHOSEN.focus, name) for name in CHOSEN_SPECS)
    assert not re.search(CHOSEN.focus, f"{CHOSEN_SPECS[0]} and more")
    assert len(set(CHOSEN_SPECS)) == len(CHOSEN_SPECS)


def test_each_chosen_spec_is_one_of_a_whole_run() -> None:
    assert not [
        name
        for name in CHOSEN_SPECS
        if not any(re.search(part.focus, name) and not re.search(part.skip, name) for part in (NODES, ZONES))
    ]
