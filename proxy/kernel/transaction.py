"""A change as messages: one transaction, or several in an order that misleads no packet between them. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from endpointslice.types import Family
from proxy.kernel.batch import Message, batch_bytes
from proxy.kernel.change import Change, Elements, MapChange
from proxy.kernel.elements import pack_adds, pack_deletes
from proxy.kernel.ruleset import LAYOUTS, Data, SetId, parse_pick

_GOTO = b"goto "


def missing_chains(change: Change, chains: set[tuple[Family, str]]) -> set[tuple[Family, str]]:
    """The pick chains that the change's verdicts lead to and that do not exist yet."""
    wanted = {
        (set_id.family, verdict[len(_GOTO) :].decode())
        for set_id, part in change.sets.items()
        if part.add and LAYOUTS[set_id.name].data is Data.VERDICT
        for verdict in set(part.add.values())
        if verdict.startswith(_GOTO)
    }
    return {(family, chain) for family, chain in wanted - chains if parse_pick(chain)}


def plan_elements(change: Change) -> list[Message]:
    """Every delete, then every add.

    A key in both goes first: the kernel has no replace, refuses an add of a live key with other data (EEXIST), and in a
    set at its size limit takes delete and add only in this order.
    """
    messages: list[Message] = []
    parts = _kernel_parts(change)
    for set_id, part in parts:
        messages += pack_deletes(set_id, part.delete)
    for set_id, part in parts:
        messages += pack_adds(set_id, part.add)
    return messages


def _kernel_parts(change: Change) -> list[tuple[SetId, MapChange]]:
    return [(set_id, part) for set_id, part in change.sets.items() if LAYOUTS[set_id.name].data is not Data.OBJECTS]


class Objects(NamedTuple):
    """Tables, chains, maps and rules to make before a change's elements come, and to delete once they are gone."""

    new: Sequence[Message] = ()
    old: Sequence[Message] = ()
    bindings: Sequence[Message] = ()  # elements of new maps, which come before any packet can write there


def plan_batches(change: Change, objects: Objects, limit_bytes: int) -> list[Sequence[Message]]:
    """The change and its objects in one batch if the socket takes it, else in several, each atomic by itself.

    In order: new objects, bindings, and what verdicts may lead to (endpoints, masquerading); then the verdicts; then
    the deletes of what no verdict leads to any more, and old objects. Both halves of a replaced key stay in one batch.
    """
    whole = [*objects.new, *objects.bindings, *plan_elements(change), *objects.old]
    if batch_bytes(whole) <= limit_bytes:
        return [whole] if whole else []
    verdicts: list[tuple[SetId, MapChange]] = []
    others: list[tuple[SetId, MapChange]] = []
    for set_id, part in _kernel_parts(change):
        (verdicts if LAYOUTS[set_id.name].data is Data.VERDICT else others).append((set_id, part))
    kept = [(set_id, _without_pure_deletes(set_id, part)) for set_id, part in others]
    freed = [(set_id, MapChange(delete=_pure_deletes(set_id, part), add={})) for set_id, part in others]
    elements = (*_cut(kept, limit_bytes), *_cut(verdicts, limit_bytes), *_cut(freed, limit_bytes))
    groups = (objects.new, *([message] for message in objects.bindings), *elements, objects.old)
    return _join(groups, limit_bytes)


def _join(groups: Iterable[Sequence[Message]], limit_bytes: int) -> list[Sequence[Message]]:
    """The groups in their order in as few batches as have at most `limit_bytes`; no group is cut."""
    batches: list[list[Message]] = []
    size = limit_bytes + 1
    for group in groups:
        own = batch_bytes(group)
        if size + own > limit_bytes and group:
            batches.append([])
            size = 0
        if group:
            batches[-1] += group
            size += own
    return list(batches)


def _pure_deletes(set_id: SetId, part: MapChange) -> Elements:
    if LAYOUTS[set_id.name].interval:  # ranges may overlap the added ones: they go together
        return {}
    return {key: data for key, data in part.delete.items() if key not in part.add}


def _without_pure_deletes(set_id: SetId, part: MapChange) -> MapChange:
    if LAYOUTS[set_id.name].interval:
        return part
    return MapChange(delete={key: data for key, data in part.delete.items() if key in part.add}, add=part.add)


def _cut(parts: Iterable[tuple[SetId, MapChange]], limit_bytes: int) -> Iterator[list[Message]]:
    """Groups of messages, each below the limit, no key's delete and add in different groups."""
    for set_id, part in parts:
        messages = [*pack_deletes(set_id, part.delete), *pack_adds(set_id, part.add)]
        if batch_bytes(messages) <= limit_bytes or LAYOUTS[set_id.name].interval:
            if messages:
                yield messages
            continue
        for half in _halves(part):
            yield from _cut([(set_id, half)], limit_bytes)


def _halves(part: MapChange) -> Iterator[MapChange]:
    keys = sorted({*part.delete, *part.add})
    for half in (keys[: len(keys) // 2], keys[len(keys) // 2 :]):
        yield MapChange(delete=_pick(part.delete, half), add=_pick(part.add, half))


def _pick(elements: Elements, keys: Iterable[bytes]) -> Elements:
    return {key: elements[key] for key in keys if key in elements}
