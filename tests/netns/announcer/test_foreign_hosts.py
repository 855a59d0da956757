"""A host that is no node, and has one of the addresses."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.world.netns import run_ip
from endpointslice.types import IP, NodeName
from proxy.announcer.arp import announce_arp
from proxy.announcer.ethernet import parse_mac
from proxy.announcer.ownership import Conflict, Holding, Origin
from proxy.announcer.status import VipStatus
from tests.netns.announcer.lan import V4, V6, Lan, open_lan, read_mac, wait_for

pytestmark = pytest.mark.netns


@pytest.fixture
def lan(tmp_path: Path) -> Iterator[Lan]:
    with open_lan(tmp_path, flags=("--profile", "calm")) as opened:
        yield opened


def give_client(lan: Lan, vip: IP) -> None:
    """It answers ARP or NDP for the address from now on, as any host does for its own."""
    length = 128 if ":" in vip else 32
    run_ip({lan.client.netns: [f"address add {vip}/{length} dev eth0 {'nodad' if ':' in vip else ''}"]})


def take_back(lan: Lan, vip: IP) -> None:
    run_ip({lan.client.netns: [f"address del {vip}/{128 if ':' in vip else 32} dev eth0"]})


def foreign(lan: Lan, vip: IP) -> set[str]:
    """The MACs of foreign hosts that announcers tell of."""
    return {found.foreign for node in lan.nodes if (found := node.vip(vip)) is not None} - {""}


def whys(name: str, found: VipStatus | None) -> set[str]:
    """What the node says of itself."""
    return {one.why for one in found.candidates if one.node == name} if found is not None else set()


@pytest.mark.parametrize("vip", [V4[0], V6], ids=["IPv4", "IPv6"])
def test_an_address_in_use_is_told_and_taken_when_the_other_host_leaves(lan: Lan, vip: IP) -> None:
    give_client(lan, vip)
    lan.start(vip, V4[1])
    lan.owner(V4[1])
    mac = read_mac(lan.client)

    wait_for(lambda: all(node.vip(vip) for node in lan.nodes))
    assert wait_for(lambda: foreign(lan, vip)) == {mac}
    assert all("taken" not in line or vip not in line for node in lan.nodes for line in node.log.splitlines())
    for node in lan.nodes:
        found = node.vip(vip)
        assert found is not None
        assert found.owner == "", "nobody takes what another host has"
    assert any("address_conflict" in node.log and mac in node.log for node in lan.nodes)
    assert "address-in-use" in {why for node in lan.nodes for why in whys(node.name, node.vip(vip))}

    told = wait_for(lambda: [one for node in lan.nodes if node.heard for one in node.heard[-1].conflicts])
    assert told == [Conflict(vip, "eth0", mac, held=False)], "one node tells its proxy"

    take_back(lan, vip)

    owner = lan.owner(vip)
    assert wait_for(lambda: owner.heard and vip in {one.vip for one in owner.heard[-1].holdings})


def test_a_host_that_takes_an_address_later_is_told_and_the_owner_stays(lan: Lan) -> None:
    lan.start(V4[0])
    owner = lan.owner(V4[0])
    mac = read_mac(lan.client)
    wait_for(lambda: all(found is not None and found.owner for found in (node.vip(V4[0]) for node in lan.nodes)))

    sender = parse_mac(mac)
    assert sender is not None
    lan.send(announce_arp(V4[0], sender, both=False)[0])

    assert wait_for(lambda: foreign(lan, V4[0])) == {mac}
    heard = [one.mac for one in lan.listen(3.0) if one.vip == V4[0] and one.kind == "gratuitous"]
    assert owner.mac in heard, "it defends the address"
    assert lan.answers(V4[0]) == [owner.mac]


def test_the_owner_tells_its_proxy_and_whose_the_address_was_before(lan: Lan) -> None:
    lan.start(V4[0])
    owner = lan.owner(V4[0])
    wait_for(lambda: all(found is not None and found.owner for found in (node.vip(V4[0]) for node in lan.nodes)))
    wait_for(lambda: all(node.heard for node in lan.nodes))
    assert wait_for(lambda: owner.heard[-1].holdings) == (Holding(V4[0], "eth0", Origin("taken")),)
    assert all(not node.heard[-1].holdings for node in lan.nodes if node is not owner)

    owner.kill()
    heir = lan.owner(V4[0])

    before = Origin("taken", NodeName(owner.name))
    assert wait_for(lambda: heir.heard[-1].holdings) == (Holding(V4[0], "eth0", before),)
