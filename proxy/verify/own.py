"""What elements of our own table do with each frontend. Pure."""

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import NamedTuple

from endpointslice.topology import Verdict
from endpointslice.types import Family
from proxy.kernel.affinities import parse_affinity
from proxy.kernel.ruleset import LAYOUTS, TABLE, Field, SetId, SetName, address_bytes, parse_pick
from proxy.planner.keys import pack_index
from proxy.planner.plan import Source
from proxy.verify.fields import merge_sources, show_target, unpack_address, unpack_key, unpack_range
from proxy.verify.types import Fate, Key, Sources, Table, Treatment

Elements = Mapping[SetId, Mapping[bytes, bytes]]

_NODE_PORT_BYTES = 8
_STICKY = b"jump sticky_"


class _Sets(NamedTuple):
    """Where one kind of frontend has its elements."""

    outside: SetName
    here: SetName
    refused: SetName
    sticky: SetName
    sticky_here: SetName
    masquerade: SetName


_VIPS = _Sets(
    SetName.SERVICE_PORTS,
    SetName.LOCAL_SOURCE_PORTS,
    SetName.NO_ENDPOINT_PORTS,
    SetName.AFFINITY_PORTS,
    SetName.LOCAL_SOURCE_AFFINITY_PORTS,
    SetName.MASQUERADE_PORTS,
)
_NODE_PORTS = _Sets(
    SetName.NODE_PORTS,
    SetName.LOCAL_SOURCE_NODE_PORTS,
    SetName.NO_ENDPOINT_NODE_PORTS,
    SetName.AFFINITY_NODE_PORTS,
    SetName.LOCAL_SOURCE_AFFINITY_NODE_PORTS,
    SetName.MASQUERADE_NODE_PORTS,
)


def read_own(elements: Elements, families: Iterable[Family]) -> Table:
    """Our tables of these families, by their elements."""
    families = tuple(families)
    ips = {
        (family, name): frozenset(unpack_address(key) for key in elements.get(SetId(family, name), {}))
        for family in families
        for name in (SetName.CLUSTER_IPS, SetName.NODE_ADDRESSES)
    }
    return Table(
        name=TABLE,
        treatments={key: one for family in families for key, one in _Decoder(family, elements).iter_treatments()},
        cluster_ips=frozenset().union(*(ips[family, SetName.CLUSTER_IPS] for family in families)),
        node_addresses={family: ips[family, SetName.NODE_ADDRESSES] for family in families},
    )


class _Decoder:
    """Reads one family's frontends."""

    def __init__(self, family: Family, elements: Elements) -> None:
        self._family = family
        self._elements = elements
        self._sources = self._read_sources()

    def _of(self, name: SetName) -> Mapping[bytes, bytes]:
        return self._elements.get(SetId(self._family, name), {})

    def iter_treatments(self) -> Iterator[tuple[Key, Treatment]]:
        for sets in (_VIPS, _NODE_PORTS):
            for packed in dict.fromkeys((*self._of(sets.outside), *self._of(sets.here), *self._of(sets.refused))):
                key = unpack_key(self._family, packed)
                if key is not None:
                    yield key, self._treat(sets, packed)

    def _treat(self, sets: _Sets, packed: bytes) -> Treatment:
        refused = self._refuse(self._of(sets.refused).get(packed, b""))
        outside, problem = self._end(self._of(sets.outside).get(packed, b""), packed, refused)
        here, problem_here = self._end(self._of(sets.here).get(packed, b""), packed, refused)
        is_external = packed[: address_bytes(self._family)] not in self._of(SetName.CLUSTER_IPS)
        seen = outside.verdict is Verdict.DNAT and (sets is _NODE_PORTS or is_external)
        masqueraded = packed in self._of(sets.masquerade)
        return Treatment(
            outside=outside,
            here=here if here.verdict is Verdict.DNAT else outside,
            affinity_s=self._read_affinity(sets, packed),
            sources=self._sources.get(packed, ()),
            source=(Source.MASQUERADED if masqueraded else Source.KEPT) if seen else None,
            problem=problem or problem_here,
        )

    def _end(self, verdict: bytes, packed: bytes, refused: Verdict | None) -> tuple[Fate, str]:
        """What becomes of packets for which the map has this verdict (b"": none), and what is wrong with it."""
        if not verdict:
            return Fate(refused), ""
        pick = parse_pick(verdict.decode().removeprefix("goto "))
        if pick is None:
            return Fate(None), f"its verdict is {verdict.decode()}"
        held = self._of(pick.endpoints)
        targets = [held[key] for index in range(pick.size) if (key := packed + pack_index(index)) in held]
        missing = pick.size - len(targets)
        fate = Fate(Verdict.DNAT, tuple(sorted({show_target(self._family, target) for target in targets})))
        return fate, f"{missing} of {pick.size} endpoints are missing from {pick.endpoints}" if missing else ""

    def _refuse(self, verdict: bytes) -> Verdict | None:
        return {b"drop": Verdict.DROP, b"goto refuse": Verdict.REJECT}.get(verdict)

    def _read_affinity(self, sets: _Sets, packed: bytes) -> int | None:
        sticky = self._of(sets.sticky).get(packed) or self._of(sets.sticky_here).get(packed)
        data = self._of(SetName.AFFINITIES).get(sticky.removeprefix(_STICKY)) if sticky else None
        return parse_affinity(data).timeout_s if data else None

    def _read_sources(self) -> dict[bytes, Sources]:
        size = address_bytes(self._family)
        found: dict[bytes, list[tuple[int, int]]] = {key: [] for key in self._of(SetName.FIREWALLED_PORTS)}
        for key in self._of(SetName.ALLOWED_SOURCES):
            if (ranges := found.get(key[: -2 * size])) is not None:
                ranges.append(unpack_range(key[-2 * size :]))
        return {key: merge_sources(ranges) for key, ranges in found.items()}


class Odd(NamedTuple):
    """An element that isn't as it should be."""

    set: SetName
    family: Family
    frontend: Key | None  # None: it belongs to no frontend
    key: bytes
    state: str  # missing, extra, different


def find_odd(installed: Elements, desired: Elements, frontends: Container[Key]) -> Iterator[Odd]:
    """Every element in which two tables differ; those of frontends beside these belong to none."""
    for set_id in sorted({*installed, *desired}):
        held, wanted = installed.get(set_id, {}), desired.get(set_id, {})
        for key in sorted(held.keys() | wanted.keys()):
            if held.get(key) != wanted.get(key):
                state = "missing" if key not in held else "extra" if key not in wanted else "different"
                frontend = _frontend_of(set_id, key)
                yield Odd(set_id.name, set_id.family, frontend if frontend in frontends else None, key, state)


def _frontend_of(set_id: SetId, key: bytes) -> Key | None:
    fields = LAYOUTS[set_id.name].key
    if fields[:3] == (Field.ADDRESS, Field.PROTOCOL, Field.PORT):
        return unpack_key(set_id.family, key[: address_bytes(set_id.family) + _NODE_PORT_BYTES])
    if fields[:2] == (Field.PROTOCOL, Field.PORT):
        return unpack_key(set_id.family, key[:_NODE_PORT_BYTES])
    return None
