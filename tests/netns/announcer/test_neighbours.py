"""What the kernels of clients make of the announcers' packets, and IPv6 as switches and hosts have it."""

import signal
import struct
import subprocess
from collections.abc import Iterator
from ipaddress import IPv6Address
from pathlib import Path

import pytest

from e2e.world.netns import command_in, run_ip, write_sysctls
from endpointslice.types import IP
from proxy.announcer.ethernet import EtherType, pack_frame, parse_mac
from proxy.announcer.ipv6 import pack_icmpv6
from tests.netns.announcer.caches import read_entry, read_groups, send_datagram, write_entry
from tests.netns.announcer.lan import V4, V6, Lan, Node, open_lan, read_mac, wait_for

pytestmark = pytest.mark.netns

FAMILIES = pytest.mark.parametrize("vip", [V4[0], V6], ids=["IPv4", "IPv6"])
NOBODYS_MAC = "02:00:00:00:00:77"
GROUP = "ff02::1:ff00:f0"  # of V6


@pytest.fixture
def lan(tmp_path: Path) -> Iterator[Lan]:
    with open_lan(tmp_path, flags=("--profile", "calm")) as opened:
        yield opened


@FAMILIES
def test_a_kernel_that_probes_its_entry_finds_the_owner_reachable(lan: Lan, vip: IP) -> None:
    lan.start(vip)
    owner = lan.owner(vip)

    for _ in range(3):
        write_entry(lan.client, vip, owner.mac, "probe")  # asks that MAC alone, thrice at the most
        wait_for(lambda: read_entry(lan.client, vip) == (owner.mac, "REACHABLE"))


def test_a_unicast_solicitation_without_the_askers_mac_in_it_is_answered(lan: Lan) -> None:
    lan.start(V6)
    owner = lan.owner(V6)
    to, client = parse_mac(owner.mac), parse_mac(read_mac(lan.client))
    assert to is not None
    assert client is not None
    target = IPv6Address(V6).packed
    body = struct.pack("!BBHI16s", 135, 0, 0, 0, target)  # RFC 4861 4.3: the option may be left out in unicast

    lan.listen(0.5)
    lan.send(pack_frame(to, client, EtherType.IPV6, pack_icmpv6(IPv6Address(lan.client.ipv6).packed, target, body)))

    assert wait_for(lambda: lan.replies(V6, 0.1)) + lan.replies(V6, 1.0) == [owner.mac]


def test_an_answer_corrects_a_wrong_entry(lan: Lan) -> None:
    """Only one with the override flag does; ARP has none, and there it is announcements that correct."""
    lan.start(V6)
    owner = lan.owner(V6)
    lan.listen(6.0)  # its announcements
    write_entry(lan.client, V6, NOBODYS_MAC, "stale")

    assert lan.answers(V6) == [owner.mac]

    assert read_entry(lan.client, V6).mac == owner.mac


@FAMILIES
def test_a_client_that_knew_the_dead_owner_learns_of_the_new_one_without_asking(lan: Lan, vip: IP) -> None:
    lan.start(vip)
    owner = lan.owner(vip)
    write_entry(lan.client, vip, owner.mac, "stale")

    owner.signal(signal.SIGKILL)
    heir = wait_for(lambda: known(lan, vip, owner))

    assert lan.answers(vip) == [heir.mac]


def known(lan: Lan, vip: IP, before: Node) -> Node | None:
    """Whom the client's kernel believes in, once it isn't the one before; it sends nothing meanwhile."""
    mac = read_entry(lan.client, vip).mac
    return next((node for node in lan.nodes if node is not before and node.mac == mac), None)


@pytest.mark.parametrize("link_local", ["tentative", "none"])
def test_ipv6_needs_no_link_local_address(lan: Lan, link_local: str) -> None:
    for node in lan.nodes:
        write_sysctls(node.host.netns, {"ipv6/conf/eth0/dad_transmits": "600"})  # ten minutes
        lines = ["address flush dev eth0 scope link"]
        run_ip({node.host.netns: [*lines, "address add fe80::1:1/64 dev eth0"] if link_local != "none" else lines})

    lan.start(V6)
    owner = lan.owner(V6)

    assert lan.answers(V6) == [owner.mac]
    send_datagram(lan.client, V6)
    assert wait_for(lambda: read_entry(lan.client, V6).mac) == owner.mac
    shown = subprocess.run(
        command_in(owner.host.netns, ["ip", "-6", "address", "show", "dev", "eth0", "scope", "link"]),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert ("tentative" in shown) == (link_local == "tentative")
    assert bool(shown) == (link_local == "tentative")


def test_a_switch_that_snoops_multicast_lets_questions_through_to_the_owner(lan: Lan) -> None:
    snoop = "link set br0 type bridge mcast_snooping 1 mcast_querier 1 mcast_startup_query_interval 100"
    run_ip({lan.lan.netns: [snoop]})
    lan.start(V6)
    owner = lan.owner(V6)
    wait_for(lambda: f"port-{lan.nodes.index(owner) + 1} grp {GROUP}" in read_mdb(lan))
    send_datagram(lan.client, V6)

    assert wait_for(lambda: read_entry(lan.client, V6).mac) == owner.mac
    assert [node.name for node in lan.nodes if GROUP in read_groups(node.host)] == [owner.name]
    assert f"port-{len(lan.nodes) + 1} grp {GROUP}" not in read_mdb(lan), "the client hasn't joined it"


def read_mdb(lan: Lan) -> str:
    """Which ports of the bridge want which groups."""
    command = command_in(lan.lan.netns, ["bridge", "mdb", "show", "dev", "br0"])
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_who_serves_an_address_no_more_leaves_its_group(lan: Lan) -> None:
    lan.start(V6)
    lan.owner(V6)

    for node in lan.nodes:
        node.serve(V4[0])

    wait_for(lambda: not any(GROUP in read_groups(node.host) for node in lan.nodes))
