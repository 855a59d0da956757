"""Nodes whose address is on another kind of link, and what switches learn of where a node is."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.world.hosts import Host
from e2e.world.netns import run_ip
from endpointslice.types import IP
from proxy.announcer.arp import Arp, parse_arp
from proxy.announcer.ethernet import Drop, EtherType, Frame, format_mac, parse_frame
from proxy.announcer.ndp import Neighbour, Type, parse_ndp
from tests.netns.announcer.caches import read_learned
from tests.netns.announcer.lan import V4, V6, Lan, open_lan, read_mac, wait_for

pytestmark = pytest.mark.netns

BEHIND = {
    "bridge": "link add {device} type bridge mcast_snooping 0",
    "macvlan": "link add {device} link eth0 type macvlan mode bridge",
}


@pytest.fixture
def lan(tmp_path: Path) -> Iterator[Lan]:
    with open_lan(tmp_path, flags=("--profile", "calm")) as opened:
        yield opened


def move_addresses(host: Host, kind: str, device: str) -> None:
    """From eth0 to a link of that kind on top of it, as Docker's and libvirt's hosts have it."""
    lines = [
        "address flush dev eth0 scope global",
        BEHIND[kind].format(device=device),
        *([f"link set eth0 master {device}"] if kind == "bridge" else []),
        f"link set {device} up",
        f"address add {host.ipv4}/24 dev {device}",
        f"address add {host.ipv6}/64 dev {device} nodad",
    ]
    run_ip({host.netns: lines})


@pytest.mark.parametrize("vip", [V4[0], V6], ids=["IPv4", "IPv6"])
@pytest.mark.parametrize("kind", list(BEHIND))
def test_an_address_on_another_link_than_the_cards_is_answered_for_without_promiscuous_mode(
    lan: Lan, kind: str, vip: IP
) -> None:
    macs = {}
    for node in lan.nodes:
        move_addresses(node.host, kind, "upper0")
        macs[read_mac(node.host, "upper0")] = node
    lan.start(vip)
    answering = wait_for(lambda: lan.ask(vip))

    assert len(answering) == 1
    assert answering[0] in macs
    assert lan.answers(vip, to=answering[0]) == answering
    device, times = ("upper0", 0) if kind == "macvlan" else ("eth0", 1)  # a bridge sets its ports to it by itself
    assert all(f"promiscuity {times} " in node.show(device) for node in lan.nodes)


def test_every_packet_about_an_address_speaks_for_its_senders_own_mac(lan: Lan) -> None:
    lan.start(V4[0], V6)
    owners = [lan.owner(V4[0]), lan.owner(V6)]
    said: list[tuple[str, str]] = []
    said += ask_and_capture(lan)
    owners[0].command("drain")
    said += ask_and_capture(lan)
    owners[1].signal(signal.SIGKILL)
    said += ask_and_capture(lan)
    wait_for(lambda: lan.ask(V4[0]) and lan.ask(V6))
    said += ask_and_capture(lan)

    assert len(said) > 10, "late answers aren't captured"
    assert all(sender == told for sender, told in said)
    assert {told for _sender, told in said} <= {node.mac for node in lan.nodes}
    learned = read_learned(lan.lan)
    for number, node in enumerate(lan.nodes, 1):
        assert learned.get(f"port-{number}", set()) <= {node.mac}, "a switch has seen no other MAC there"


def ask_and_capture(lan: Lan) -> list[tuple[str, str]]:
    """Of each packet that the client hears about the addresses: the frame's sender, and the MAC that it tells."""
    found = []
    for question in (V4[0], V6):
        for _ in range(3):
            found += [pair for data in lan.capture(question, 0.3) if (pair := read_pair(data)) is not None]
    return found


def read_pair(data: bytes) -> tuple[str, str] | None:
    """None: the frame says nothing about the addresses."""
    frame = parse_frame(data)
    if isinstance(frame, Drop):
        return None
    told = _told(frame)
    return (format_mac(frame.source), format_mac(told)) if told is not None else None


def _told(frame: Frame) -> bytes | None:
    if frame.kind == EtherType.ARP:
        arp = parse_arp(frame)
        return arp.sender_mac if isinstance(arp, Arp) and arp.sender_ip == bytes(map(int, V4[0].split("."))) else None
    neighbour = parse_ndp(frame)
    about = isinstance(neighbour, Neighbour) and neighbour.type is Type.ADVERTISEMENT
    return neighbour.mac if about and isinstance(neighbour, Neighbour) else None
