"""Real traffic to an address, with a proxy beside each announcer: from the LAN, and from beyond a router."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.world.netns import write_sysctls
from endpointslice.types import IP
from tests.netns.announcer.caches import read_entry
from tests.netns.announcer.lan import V4, V6, Lan, open_lan, wait_for
from tests.netns.announcer.served import Answer, ask_server, open_beyond, serve

pytestmark = pytest.mark.netns

FAMILIES = {V4[0]: "ipv4", V6: "ipv6"}
BOTH = pytest.mark.parametrize("vip", list(FAMILIES), ids=list(FAMILIES.values()))
LONG = {"base_reachable_time_ms": "3600000"}  # an hour: it never asks whether an entry is right
SHORT = {"base_reachable_time_ms": "1000", "delay_first_probe_time": "1", "ucast_solicit": "1"}


@pytest.fixture
def lan(tmp_path: Path) -> Iterator[Lan]:
    with open_lan(tmp_path, flags=("--profile", "calm")) as opened:
        yield opened


def test_under_policy_local_the_owner_has_the_pod_and_the_pod_sees_the_clients_address(
    lan: Lan, tmp_path: Path
) -> None:
    host = lan.nodes[1]
    with open_beyond(lan) as beyond, serve(lan, tmp_path, (V4[0], V6), [host]):
        for vip in FAMILIES:
            assert lan.owner(vip) is host
            for client in (lan.client, beyond.far):
                source = client.ipv4 if vip == V4[0] else client.ipv6
                assert wait_for(lambda: ask_server(client, vip)) == Answer(host.name, source)  # noqa: B023


def test_under_policy_cluster_the_owner_leads_to_a_pod_of_another_node(lan: Lan, tmp_path: Path) -> None:
    host = lan.nodes[1]
    with serve(lan, tmp_path, (V4[0],), [host], "Cluster"):
        if lan.owner(V4[0]) is host:
            host.command("drain")
        owner = wait_for(lambda: None if (found := lan.owner(V4[0])) is host else found)

        assert wait_for(lambda: ask_server(lan.client, V4[0])) == Answer(host.name, owner.host.ipv4)


@BOTH
def test_a_router_on_the_way_learns_of_a_move(lan: Lan, tmp_path: Path, vip: IP) -> None:
    with open_beyond(lan) as beyond, serve(lan, tmp_path, (vip,), lan.nodes):
        _settle(beyond.router.netns, vip, LONG)
        owner = lan.owner(vip)
        assert wait_for(lambda: ask_server(beyond.far, vip)) == Answer(
            owner.name, beyond.far.ipv4 if vip == V4[0] else beyond.far.ipv6
        )
        assert read_entry(beyond.router, vip).mac == owner.mac

        lan.port(owner, "down")
        answer = wait_for(lambda: ask_server(beyond.far, vip))

        assert answer.node == lan.owner(vip).name != owner.name
        assert read_entry(beyond.router, vip).mac == lan.owner(vip).mac


def test_a_router_that_drops_announcements_learns_as_soon_as_it_asks(lan: Lan, tmp_path: Path) -> None:
    vip = V4[0]
    with open_beyond(lan) as beyond, serve(lan, tmp_path, (vip,), lan.nodes):
        write_sysctls(beyond.router.netns, {"ipv4/conf/eth0/drop_gratuitous_arp": "1"})
        _settle(beyond.router.netns, vip, SHORT)
        owner = lan.owner(vip)
        wait_for(lambda: ask_server(beyond.far, vip))

        lan.port(owner, "down")
        answer = wait_for(lambda: ask_server(beyond.far, vip))

        assert answer.node == lan.owner(vip).name != owner.name


def _settle(netns: str, vip: IP, times: dict[str, str]) -> None:
    write_sysctls(netns, {f"{FAMILIES[vip]}/neigh/eth0/{name}": value for name, value in times.items()})
