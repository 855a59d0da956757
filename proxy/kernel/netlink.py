"""EFFECT. Our tables in the kernel: read, install, change, count, remove."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from importlib import resources
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import msgspec

from endpointslice.types import Family
from proxy.kernel.affinities import find_affinities, plan_new_affinities, plan_old_affinities
from proxy.kernel.attributes import pack_name, parse_attributes, parse_name, parse_number
from proxy.kernel.base import (
    TABLE_FLAGS,
    Base,
    Tables,
    expected_tables,
    find_pick_chains,
    parse_chain,
    parse_rule,
    parse_set,
    plan_removal,
    plan_tables,
)
from proxy.kernel.batch import FAMILY_NUMBERS, Message, Reply, Type
from proxy.kernel.change import Change, Counters, Elements, Installed, KernelError, MapChange, apply_change
from proxy.kernel.connection import Connection
from proxy.kernel.dumps import Unusable, iter_elements, parse_packets, unpack_counters, unpack_elements
from proxy.kernel.elements import LIST_SET
from proxy.kernel.keeping import install_with, read_bindings
from proxy.kernel.picks import plan_pick_chains
from proxy.kernel.ruleset import KERNEL_SETS, TABLE, SetId, SetName
from proxy.kernel.transaction import Objects, missing_chains, plan_batches

__all__ = ["KernelError", "NftKernel", "host_families", "load_base"]

_NAME = pack_name(1, TABLE)  # the table's name is attribute 1 of every request
_FAMILIES = {number: family for family, number in FAMILY_NUMBERS.items()}


def load_base() -> Base:
    """The compiled ruleset that this package ships."""
    return msgspec.json.decode(resources.files(__package__).joinpath("base.json").read_bytes(), type=Base)


def host_families() -> tuple[Family, ...]:
    """The families that this network namespace has: a kernel booted with ipv6.disable=1 lacks one."""
    return tuple(Family) if Path("/proc/net/if_inet6").exists() else (Family.IPV4,)


class _Own(NamedTuple):
    """What a table of ours has besides the base."""

    picks: frozenset[str]
    affinities: dict[bytes, bytes]


class NftKernel:
    """Our tables behind one netlink socket, which belongs to one thread; opened at construction, close() frees it."""

    def __init__(self, families: Collection[Family] = (Family.IPV4, Family.IPV6), base: Base | None = None) -> None:
        self.families = tuple(families)
        self._base = base or load_base()
        self._connection = Connection()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _t: type[BaseException] | None, _e: BaseException | None, _tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the socket; the tables stay."""
        self._connection.close()

    @property
    def port_id(self) -> int:
        """The netlink port that our transactions come from: what the monitor must not report."""
        return self._connection.port_id

    def read(self) -> Installed | None:
        """What our tables hold. None: absent, of another layout, or rules or sets not ours: install()."""
        installed = Installed(elements={}, chains=set())
        for family in self.families:
            own = self._connection.read_stable(partial(self._read_tables, family))
            if own is None or isinstance(own, Unusable):
                return None
            installed.chains.update((family, chain) for chain in own.picks)
            installed.elements[SetId(family, SetName.AFFINITIES)] = own.affinities
            for name in KERNEL_SETS:
                set_id = SetId(family, name)
                elements = self._connection.read_stable(partial(self._read_elements, set_id))
                if isinstance(elements, Unusable):
                    return None
                installed.elements[set_id] = elements
        return installed

    def install(self, elements: Mapping[SetId, Elements]) -> Installed:
        """One transaction that replaces our tables by fresh ones with these elements, and with clients' bindings.

        A socket that can't take it whole (no CAP_NET_ADMIN outside our user namespace) gets the empty tables first.
        """
        change = Change({set_id: MapChange(delete={}, add=part) for set_id, part in elements.items()})
        installed = Installed(
            elements={SetId(family, name): {} for family in self.families for name in SetName}, chains=set()
        )
        tables = [*plan_removal(self.families), *plan_tables(self._base, self.families)]
        kept = read_bindings(self._connection, self.families, elements, self._base)
        install_with(kept, lambda bindings: self._apply(change, installed, Objects(tables, bindings=bindings)))
        return installed

    def run(self, change: Change, installed: Installed) -> Counters:
        """One transaction; then `installed` includes it. The final counts of the verdict elements it deleted."""
        return self._apply(change, installed, Objects())

    def _apply(self, change: Change, installed: Installed, before: Objects) -> Counters:
        mine = Change({set_id: part for set_id, part in change.sets.items() if set_id.family in self.families})
        chains = missing_chains(mine, installed.chains)
        objects = Objects(
            new=[*before.new, *plan_pick_chains(chains), *plan_new_affinities(mine, self._base)],
            old=[*plan_old_affinities(mine)],
            bindings=before.bindings,
        )
        batches = plan_batches(mine, objects, self._connection.limit_bytes)
        counters: dict[tuple[SetId, bytes], int] = {}
        for number, batch in enumerate(batches):
            try:
                counters.update(_final_counts(self._connection.transact(batch)))
            except KernelError as error:
                if number == 0:
                    raise
                raise KernelError(f"part {number + 1} of {len(batches)}: {error.reason}", unknown=True) from error
        apply_change(installed, mine)
        installed.chains |= chains
        return counters

    def counters(self, set_id: SetId) -> Mapping[bytes, int]:
        """Packets (new connections) per element of a verdict map with counters."""
        found = self._connection.read_stable(partial(self._read_counters, set_id))
        return {} if isinstance(found, Unusable) else found

    def remove(self) -> None:
        """Delete exactly our tables; nothing happens where there are none."""
        self._connection.transact(plan_removal(self.families))

    def _read_tables(self, family: Family) -> _Own | None:
        """What our table has besides the base; None: absent or not as installed."""
        table = self._connection.request(Message(Type.GETTABLE, family, _NAME))
        if table is None or parse_number(parse_attributes(table.payload).get(TABLE_FLAGS, b"")):
            return None  # a dormant table has no hooks
        found = find_affinities(family, read_tables(self._connection, family), self._base)
        if found is None:
            return None
        picks = find_pick_chains(family, found[0], expected_tables(self._base, family))
        return None if picks is None else _Own(picks, found[1])

    def _read_elements(self, set_id: SetId) -> dict[bytes, bytes] | Unusable:
        return unpack_elements(set_id, self._dump_elements(set_id))

    def _read_counters(self, set_id: SetId) -> dict[bytes, int] | Unusable:
        return unpack_counters(self._dump_elements(set_id))

    def _dump_elements(self, set_id: SetId) -> Iterator[bytes]:
        names = _NAME + pack_name(LIST_SET, set_id.name)
        return (reply.payload for reply in self._connection.dump(Message(Type.GETSETELEM, set_id.family, names)))


def read_tables(connection: Connection, family: Family) -> Tables:
    """Our table of that family without its elements; empty where it is absent."""
    # Sets and rules are filtered by the kernel; of chains it lists everybody's.
    chains = connection.dump(Message(Type.GETCHAIN, family, b""))
    sets = connection.dump(Message(Type.GETSET, family, _NAME))
    rules = connection.dump(Message(Type.GETRULE, family, _NAME))
    return Tables(
        chains=tuple(chain for reply in chains if (chain := parse_chain(reply.payload))),
        sets=tuple(one for reply in sets if (one := parse_set(reply.payload))),
        rules=tuple(rule for reply in rules if (rule := parse_rule(reply.payload))),
    )


def _final_counts(echoes: Iterable[Reply]) -> Counters:
    """The counters of deleted elements, from the kernel's echoes of their deletion."""
    payloads: dict[SetId, list[bytes]] = defaultdict(list)
    for echo in echoes:
        family = _FAMILIES.get(echo.family)
        if family and echo.kind == Type.DELSETELEM:
            name = parse_name(parse_attributes(echo.payload).get(LIST_SET, b""))
            payloads[SetId(family, SetName(name))].append(echo.payload)
    return {
        (set_id, element.key): parse_packets(element.counter)
        for set_id, found in payloads.items()
        for element in iter_elements(found)
    }
