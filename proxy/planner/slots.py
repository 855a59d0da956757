"""Which index an endpoint has in its map: dense, and moved as little as possible.

`numgen random mod N` draws an index below N, so indexes 0..N-1 must all exist. Removing one endpoint moves the last one
into its place, so a change costs two or three elements however many endpoints there are.
"""

from collections.abc import Mapping, Sequence

from proxy.planner.keys import pack_index


def held_slots(elements: Mapping[bytes, bytes], prefix: bytes) -> list[bytes]:
    """The targets that a map holds behind one frontend, by index from 0 to the first gap."""
    slots: list[bytes] = []
    while (data := elements.get(prefix + pack_index(len(slots)))) is not None:
        slots.append(data)
    return slots


def assign_slots(held: Sequence[bytes], wanted: Sequence[bytes]) -> Sequence[bytes]:
    """The wanted targets by index; those held already keep theirs, unless they fill a gap from the end."""
    if not held:
        return wanted
    missing = set(wanted)
    slots: list[bytes | None] = []
    for target in held:
        slots.append(target if target in missing else None)
        missing.discard(target)
    fresh = [target for target in wanted if target in missing]
    fresh.reverse()
    for index, slot in enumerate(slots):
        if slot is None and fresh:
            slots[index] = fresh.pop()
    fresh.reverse()
    slots.extend(fresh)
    return _close_gaps(slots)


def _close_gaps(slots: list[bytes | None]) -> list[bytes]:
    """No gaps: the last target moves into the first one."""
    index = 0
    while index < len(slots):
        if slots[-1] is None:
            slots.pop()
        elif slots[index] is None:
            slots[index] = slots.pop()
        else:
            index += 1
    return [slot for slot in slots if slot is not None]
