"""Our tables beside nft 1.1.3, which other programs of a node may bring; the installed one is 1.0.6."""

import subprocess
from collections.abc import Callable

import msgspec
import pytest

from e2e.world.netns import command_in, run_in
from endpointslice.types import Family
from proxy.kernel.attributes import iter_attributes, pack_attribute, parse_attributes, parse_name, parse_number
from proxy.kernel.base import Rule, Tables, expected_tables, find_pick_chains
from proxy.kernel.change import Change, MapChange
from proxy.kernel.compile import base_text, render_text
from proxy.kernel.connection import Connection
from proxy.kernel.netlink import load_base, read_tables
from proxy.kernel.ruleset import SetId, SetName
from tests.netns.kernel_space import BOTH, Space
from tests.netns.newer_nft import newer_nft

pytestmark = [
    pytest.mark.netns,
    pytest.mark.skipif(newer_nft() is None, reason="no newer nft: python -m tests.netns.newer_nft fetches it"),
]

PORTS = SetId(Family.IPV4, SetName.NODE_PORTS)
Nft = Callable[[str], str]


@pytest.fixture
def nft(space: Space) -> Nft:
    """The newer nft on a text; what it says."""

    def run(text: str) -> str:
        command = command_in(space.name, [*(newer_nft() or ()), "-n", "-f", "-"])
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return run


def test_it_is_newer_than_the_installed_one(nft: Nft, space: Space) -> None:
    assert nft("list tables") == ""
    versions = [
        subprocess.check_output([*command, "--version"], text=True).split()[1]
        for command in (["nft"], newer_nft() or [])
    ]
    assert versions == sorted(versions)
    assert len(set(versions)) == 2
    assert space


def test_what_it_compiles_of_the_text_is_what_we_ship(nft: Nft, space: Space) -> None:
    nft("".join(render_text(base_text(), family) for family in BOTH))
    connection = run_in(space.name, Connection)

    for family in BOTH:
        wanted = without_byte_swaps(expected_tables(load_base(), family))
        layout = wanted.chains[-1].name
        nft(f"add chain {'ip' if family is Family.IPV4 else 'ip6'} closeby {layout}")
        assert find_pick_chains(family, without_byte_swaps(read_tables(connection, family)), wanted) == frozenset()
    connection.close()


def without_byte_swaps(tables: Tables) -> Tables:
    """The tables without expressions that swap one byte, which nft 1.0.6 adds for a protocol beside an interval."""
    rules = tuple(Rule(rule.chain, _without_byte_swaps(rule.expressions)) for rule in tables.rules)
    return msgspec.structs.replace(tables, rules=rules)


def _without_byte_swaps(expressions: bytes) -> bytes:
    kept = b""
    for kind, first, last in iter_attributes(expressions):
        parts = parse_attributes(expressions, first, last)
        swaps = parse_name(parts[1]) == "byteorder" and parse_number(parse_attributes(parts[2])[4]) == 1
        kept += b"" if swaps else pack_attribute(kind, expressions[first:last])
    return kept


@pytest.mark.parametrize("family", BOTH)
def test_our_text_loaded_by_either_is_listed_by_both(nft: Nft, space: Space, family: Family) -> None:
    table = f"table {'ip' if family is Family.IPV4 else 'ip6'} closeby"
    text = render_text(base_text(), family)
    rules = [line.strip() for line in text.splitlines() if "vmap @" in line]
    assert rules

    for load in (nft, lambda loaded: space.nft(loaded).stdout):
        load(text)
        for listed in (nft(f"list {table}"), space.list_text(table)):
            assert listed.count("vmap @") == len(rules)
        nft(f"delete {table}")


def test_it_lists_our_tables_with_a_pick_chain_added_to_a_base_loaded_twice(nft: Nft, space: Space) -> None:
    kernel = space.open_kernel()
    kernel.install({})
    installed = kernel.install({})

    kernel.run(Change({PORTS: MapChange({}, {b"\6\0\0\0\x75\x30\0\0": b"goto node_port_pick_9"})}), installed)

    listed = nft("list table ip closeby")
    assert "dnat ip to meta l4proto . th dport . numgen random mod 9 map @node_port_endpoints" in listed
    assert "6 . 30000 counter packets 0 bytes 0 : goto node_port_pick_9" in listed
    assert kernel.read() == installed


def test_both_edit_our_maps_and_we_read_what_they_wrote(nft: Nft, space: Space) -> None:
    kernel = space.open_kernel()
    kernel.install({})

    nft("add element ip closeby node_ports { tcp . 1 : drop }")
    space.nft("add element ip closeby node_ports { tcp . 2 : drop }")

    read = kernel.read()
    assert read is not None
    assert read.elements[PORTS] == {b"\6\0\0\0\0\1\0\0": b"drop", b"\6\0\0\0\0\2\0\0": b"drop"}
    assert "6 . 1 counter packets 0 bytes 0 : drop" in space.list_text("map ip closeby node_ports")


def test_a_foreign_set_of_its_making_that_crashes_the_installed_nft_does_not_disturb_us(nft: Nft, space: Space) -> None:
    """A set declared by `type`, which kube-proxy's nft 1.0.6 dies of at every sync (kubernetes#136786)."""
    nft("table ip other {\nset s { type ipv4_addr\n elements = { 10.0.0.1 } }\n}\n")
    crashed = space.nft("add table ip mine", check=False)
    kernel = space.open_kernel()

    installed = kernel.install({PORTS: {b"\6\0\0\0\0\1\0\0": b"drop"}})
    kernel.run(Change({PORTS: MapChange({}, {b"\6\0\0\0\0\2\0\0": b"goto node_port_pick_3"})}), installed)

    assert kernel.read() == installed
    assert crashed.returncode in {0, -11}  # a later 1.0.6 may have learned
