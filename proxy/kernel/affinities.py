"""What each Service port with session affinity has of its own: a map of bindings and three chains. Pure.

To everyone else each is an element of the set `affinities`: its key is the name, 16 hexadecimal digits, its data are
protocol and time-out in seconds, such as b"TCP 10800". What the map holds is between the packets and the kernel: nobody
reads it until the whole table is replaced (bindings.py), and a change of the time-out leaves it as it is.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from endpointslice.types import Family, Protocol
from proxy.kernel.attributes import pack_attribute, pack_name, pack_u32, parse_attributes, parse_number
from proxy.kernel.base import (
    SET_NAME,
    SET_TABLE,
    SET_TIMEOUT,
    Base,
    Named,
    Rule,
    Tables,
    find_pick_chains,
    plan_parts,
)
from proxy.kernel.batch import Message, Type
from proxy.kernel.change import Change, MapChange
from proxy.kernel.expressions import (
    ACCEPT,
    DROP,
    dnat_by_map,
    load_destination,
    load_port,
    load_source,
    match_protocol,
    pack_expression,
    register,
    verdict,
)
from proxy.kernel.picks import CHAIN_NAME, CHAIN_TABLE, RULE_CHAIN, RULE_TABLE
from proxy.kernel.ruleset import LAYOUTS, TABLE, Data, SetId, address_bytes

_SIZE = 9  # NFTA_SET_DESC
_CHAINS = ("sticky", "record", "forget")
_UPDATE, _DELETE = 1, 2  # NFT_DYNSET_OP_*
_OWN_NAME = re.compile(r"(?:affinity|sticky|record|forget)_([0-9a-f]{16})\Z")


class Affinity(NamedTuple):
    """What there is to choose about one of them."""

    protocol: Protocol
    timeout_s: int


def name_affinity(service: str, port: str, protocol: Protocol) -> bytes:
    """The same for a Service port wherever and whenever asked, so that its bindings survive a restart."""
    return hashlib.sha256(f"{service}/{port}/{protocol}".encode()).hexdigest()[:16].encode()


def pack_affinity(affinity: Affinity) -> bytes:
    """The data of its element."""
    return f"{affinity.protocol} {affinity.timeout_s}".encode()


def parse_affinity(data: bytes) -> Affinity:
    """What pack_affinity() packed."""
    protocol, timeout_s = data.decode().split()
    return Affinity(Protocol(protocol), int(timeout_s))


def affinity_map(name: bytes) -> str:
    """The name of its map of bindings."""
    return f"affinity_{name.decode()}"


def template_name(protocol: Protocol) -> str:
    """The name of the compiled map of bindings that the maps of this protocol's affinities are like."""
    return f"affinity_template_{protocol.lower()}"


def split_templates(tables: Tables) -> tuple[Tables, dict[Protocol, bytes]]:
    """Compiled tables as the base, and the attributes of the templates in it."""
    found = {one.name: one.attributes for one in tables.sets}
    templates = {protocol: found.pop(template_name(protocol)) for protocol in Protocol}
    return Tables(tables.chains, tuple(one for one in tables.sets if one.name in found), tables.rules), templates


def find_affinities(family: Family, found: Tables, base: Base) -> tuple[Tables, dict[bytes, bytes]] | None:
    """A table found, as what is in it besides affinities, and these; None: one of them isn't as we make it."""
    rest, by_name = _split(found)
    affinities: dict[bytes, bytes] = {}
    for name, tables in by_name.items():
        affinity = _recognize(family, tables, name, base)
        if affinity is None:
            return None
        affinities[name.encode()] = pack_affinity(affinity)
    return rest, affinities


def _recognize(family: Family, found: Tables, name: str, base: Base) -> Affinity | None:
    for protocol in Protocol:
        if find_pick_chains(family, found, _render(base, family, protocol, name)) is not None:
            timeout = parse_attributes(found.sets[0].attributes).get(SET_TIMEOUT, b"")
            return Affinity(protocol, parse_number(timeout) // 1000)
    return None


def plan_new_affinities(change: Change, base: Base) -> Iterator[Message]:
    """The messages that make those that are added, and give those that stay another time-out."""
    for set_id, part in _parts(change):
        for key, data in part.add.items():
            affinity = parse_affinity(data)
            tables = _render(base, set_id.family, affinity.protocol, key.decode())
            kept = key in part.delete
            sets = tuple(_with_timeout(one, affinity.timeout_s, sized=kept) for one in tables.sets)
            chains, rules = ((), ()) if kept else (tables.chains, tables.rules)
            yield from plan_parts(set_id.family, Tables(chains, sets, rules))


def plan_old_affinities(change: Change) -> Iterator[Message]:
    """The messages that delete those that go, once no element leads to them any more."""
    for set_id, part in _parts(change):
        for key in part.delete.keys() - part.add.keys():
            name = key.decode()
            for chain in _CHAINS:
                names = pack_name(RULE_TABLE, TABLE) + pack_name(RULE_CHAIN, f"{chain}_{name}")
                yield Message(Type.DELRULE, set_id.family, names)
            for chain in _CHAINS:
                names = pack_name(CHAIN_TABLE, TABLE) + pack_name(CHAIN_NAME, f"{chain}_{name}")
                yield Message(Type.DELCHAIN, set_id.family, names)
            names = pack_name(SET_TABLE, TABLE) + pack_name(SET_NAME, affinity_map(key))
            yield Message(Type.DELSET, set_id.family, names)


def _parts(change: Change) -> Iterator[tuple[SetId, MapChange]]:
    for set_id, part in change.sets.items():
        if LAYOUTS[set_id.name].data is Data.OBJECTS:
            yield set_id, part


def _render(base: Base, family: Family, protocol: Protocol, name: str) -> Tables:
    """One affinity. Its rules are expressions of ours: nft 1.0.6 dies of an IPv6 map's `update @m { .. : a . b }`."""
    bindings, sticky, record, forget = (f"{part}_{name}" for part in ("affinity", *_CHAINS))
    rules = (
        # Before DNAT: a client with a binding goes where it leads, one without comes back from here.
        (sticky, match_protocol(protocol) + load_source(family, 1) + dnat_by_map(family, bindings)),
        # An update never changes where a binding leads, it only starts its time again.
        (record, _write_binding(family, protocol, bindings, _UPDATE) + verdict(ACCEPT)),
        # After DNAT, where a binding led to an endpoint that isn't one of the frontend's now.
        (forget, _write_binding(family, protocol, bindings, _DELETE)),
        (forget, verdict(DROP)),
    )
    return Tables(
        chains=(Named(sticky, b""), Named(record, b""), Named(forget, b"")),
        sets=(Named(bindings, base.affinities[family][protocol]),),
        rules=tuple(Rule(chain, expressions) for chain, expressions in rules),
    )


def _write_binding(family: Family, protocol: Protocol, bindings: str, operation: int) -> bytes:
    """`meta l4proto tcp update @bindings { ip saddr : ip daddr . tcp dport }`, or delete."""
    key, data, port = register(0), register(4), register(4 + address_bytes(family) // 4)
    write = (
        *(pack_u32(4, key), pack_u32(5, data), pack_u32(3, operation)),
        *(pack_name(1, bindings), pack_attribute(6, bytes(8)), pack_u32(9, 0)),
    )
    loads = load_source(family, key) + load_destination(family, data) + load_port(port)
    return match_protocol(protocol) + loads + pack_expression("dynset", *write)


def _with_timeout(one: Named, timeout_s: int, *, sized: bool) -> Named:
    """The map with that time-out. A size at its making would be room at once, 1 MB each for 65,535 clients.

    Without one the map grows as it fills, up to the 65,535 that the kernel gives a map that packets write (Linux 6.18).
    """
    found = parse_attributes(one.attributes) | {SET_TIMEOUT: (timeout_s * 1000).to_bytes(8)}
    kept = sorted((kind, value) for kind, value in found.items() if sized or kind != _SIZE)
    return Named(one.name, b"".join(pack_attribute(kind, value) for kind, value in kept))


def _split(tables: Tables) -> tuple[Tables, dict[str, Tables]]:
    """What belongs to no affinity, and what belongs to each, by name."""
    chains: dict[str, list[Named]] = defaultdict(list)
    sets: dict[str, list[Named]] = defaultdict(list)
    rules: dict[str, list[Rule]] = defaultdict(list)
    for chain in tables.chains:
        chains[_own_name(chain.name)].append(chain)
    for one in tables.sets:
        sets[_own_name(one.name)].append(one)
    for rule in tables.rules:
        rules[_own_name(rule.chain)].append(rule)
    by_name = {
        name: Tables(tuple(chains[name]), tuple(sets[name]), tuple(rules[name]))
        for name in (*chains, *(name for name in sets if name not in chains))
    }
    return by_name.pop("", Tables((), (), ())), by_name


def _own_name(name: str) -> str:
    """The affinity that something belongs to, by its name; "" for none."""
    match = _OWN_NAME.match(name)
    return match[1] if match else ""
