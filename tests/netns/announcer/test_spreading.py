"""One address answered for by several nodes: what the kernels of several clients come to believe."""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from e2e.world.hosts import Host
from e2e.world.links import render_member
from e2e.world.netns import create_namespaces, remove_namespaces, run_ip, unique_prefix
from endpointslice.types import IP, NodeName
from proxy.addresses.types import Advertisement
from proxy.l2.shares import choose_sharer
from proxy.l2.types import Channel, Key, member_id
from tests.netns.announcer.caches import read_entry, send_datagram
from tests.netns.announcer.lan import V4, V6, Lan, Node, open_lan, wait_for

pytestmark = pytest.mark.netns

FLAGS = ("--experimental-spread-clients",)
SPREAD = Advertisement("spread", spreads=True)
DISAGREES = "advertisements-disagree"
WIRES = {V4[0]: Channel("172.30.0.0/24"), V6: Channel("fd00:172:30::/64")}
CLIENTS = 6


@pytest.fixture
def lan(tmp_path: Path) -> Iterator[Lan]:
    with open_lan(tmp_path, flags=FLAGS) as opened:
        yield opened


@contextmanager
def open_clients(lan: Lan) -> Iterator[tuple[Host, ...]]:
    """More of them on the same bridge, each with a kernel of its own."""
    prefix = unique_prefix("share")
    hosts = tuple(
        Host(f"c{at}", f"{prefix}c{at}", f"172.30.0.{210 + at}", f"fd00:172:30::{0x100 + at:x}")
        for at in range(CLIENTS)
    )
    create_namespaces([host.netns for host in hosts])
    try:
        lines = [
            line
            for at, host in enumerate(hosts)
            for line in (
                f"link add port-c{at} type veth peer name eth0 netns {host.netns}",
                f"link set port-c{at} master br0 up",
            )
        ]
        run_ip({lan.lan.netns: lines})
        run_ip({host.netns: render_member(host, lan.lan) for host in hosts})
        yield hosts
    finally:
        remove_namespaces([host.netns for host in hosts])


def address_of(host: Host, vip: IP) -> IP:
    return IP(host.ipv6 if ":" in vip else host.ipv4)


def meant_for(vip: IP, hosts: Sequence[Host], nodes: Sequence[Node]) -> dict[str, str]:
    """The MAC that each client should come to believe, while these nodes live."""
    macs = {member_id(NodeName(node.name)): node.mac for node in nodes}
    weights = dict.fromkeys(macs, 1)
    return {host.name: macs[choose_sharer(Key(vip, WIRES[vip]), address_of(host, vip), weights)] for host in hosts}


def believed(hosts: Sequence[Host], vip: IP) -> dict[str, str]:
    return {host.name: read_entry(host, vip).mac for host in hosts}


def share_is_known(lan: Lan, vip: IP) -> bool:
    """Whether every announcer names the same three nodes."""
    return all((found := node.vip(vip)) is not None and len(found.sharers) == len(lan.nodes) for node in lan.nodes)


def start_sharing(lan: Lan, vip: IP) -> None:
    lan.tell(advertisements=[SPREAD])
    lan.start(vip)
    wait_for(lambda: share_is_known(lan, vip))


@pytest.mark.parametrize("vip", [V4[0], V6], ids=["IPv4", "IPv6"])
def test_each_client_comes_to_its_own_node_and_only_those_of_a_lost_one_are_moved(lan: Lan, vip: IP) -> None:
    start_sharing(lan, vip)
    with open_clients(lan) as hosts:
        wanted = meant_for(vip, hosts, lan.nodes)
        assert len(set(wanted.values())) > 1, "the hosts' addresses are chosen so"

        for host in hosts:
            send_datagram(host, vip)
        wait_for(lambda: believed(hosts, vip) == wanted)

        lost = next(node for node in lan.nodes if node.mac in wanted.values())
        left = [node for node in lan.nodes if node is not lost]
        after = meant_for(vip, hosts, left)
        lan.listen(0.1)
        lost.signal(signal.SIGKILL)
        wait_for(lambda: believed(hosts, vip) == after)

        stayed = [name for name, mac in wanted.items() if mac != lost.mac]
        assert {name: after[name] for name in stayed} == {name: wanted[name] for name in stayed}
        heard = [one for one in lan.listen(3.0) if one.vip == vip and one.kind == "gratuitous"]
        assert heard == [], "a broadcast would bring everybody to one node"


def test_without_the_flag_the_annotation_changes_nothing_and_who_announces_says_so(tmp_path: Path) -> None:
    with open_lan(tmp_path) as lan:
        lan.tell(advertisements=[SPREAD])
        lan.start(V4[0])
        lan.owner(V4[0])
        wait_for(lambda: all(node.vip(V4[0]) for node in lan.nodes))

        said = [found for node in lan.nodes if (found := node.vip(V4[0])) is not None]
        assert [(found.sharers, found.not_shared) for found in said] == [((), "not-enabled")] * len(lan.nodes)


def test_once_another_advertisement_for_the_address_disagrees_one_node_answers_all_clients(lan: Lan) -> None:
    start_sharing(lan, V4[0])

    lan.tell(advertisements=[SPREAD, Advertisement("plain")])

    wait_for(lambda: [found.not_shared for node in lan.nodes if (found := node.vip(V4[0]))] == [DISAGREES] * 3)
    assert all(found.sharers == () for node in lan.nodes if (found := node.vip(V4[0])) is not None)
    owner = lan.owner(V4[0])
    with open_clients(lan) as hosts:
        for host in hosts:
            send_datagram(host, V4[0])
        wait_for(lambda: set(believed(hosts, V4[0]).values()) == {owner.mac})


def test_who_announces_names_the_sharers_and_the_clients(lan: Lan) -> None:
    start_sharing(lan, V4[0])
    with open_clients(lan) as hosts:
        for host in hosts:
            send_datagram(host, V4[0])
        wait_for(lambda: [count_clients(node, V4[0]) for node in lan.nodes] == [CLIENTS] * len(lan.nodes))


def count_clients(node: Node, vip: IP) -> int:
    found = node.vip(vip)
    return found.clients if found is not None else 0
