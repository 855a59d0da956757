"""EFFECT. Carries bindings of session affinity over the replacement of our tables."""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import structlog

from endpointslice.types import Family
from proxy.kernel.attributes import pack_name
from proxy.kernel.base import SET_TABLE, Base, parse_set
from proxy.kernel.batch import Message, Type
from proxy.kernel.bindings import (
    MOST_IN_MAP,
    Binding,
    KeptMap,
    choose_bindings,
    find_kept_maps,
    iter_bindings,
    pack_bindings,
)
from proxy.kernel.change import Elements, KernelError
from proxy.kernel.connection import Connection
from proxy.kernel.elements import LIST_SET
from proxy.kernel.ruleset import TABLE, SetId, SetName

log = structlog.get_logger()

MOST = 2 * MOST_IN_MAP  # in all maps together, about a second: the tables that are there may be broken meanwhile
_ATTEMPTS = 3  # at a dump that lists no binding twice; under a flood of new clients there may be none
_NAME = pack_name(SET_TABLE, TABLE)


class Kept(NamedTuple):
    """What the new tables get besides their elements."""

    messages: Sequence[Message] = ()
    bindings: int = 0
    left_out: int = 0  # for want of room


def read_bindings(
    connection: Connection, families: Collection[Family], elements: Mapping[SetId, Elements], base: Base
) -> Kept:
    """The bindings in our tables of the affinities that these elements have too; nothing where they can't be read."""
    messages: list[Message] = []
    count = left_out = 0
    try:
        for family in families:
            affinities = elements.get(SetId(family, SetName.AFFINITIES), {})
            for kept in _list_maps(connection, family, affinities, base):
                bindings = choose_bindings(kept, _read_map(connection, kept))
                room = min(MOST_IN_MAP, MOST - count)
                left_out += max(0, len(bindings) - room)
                chosen = dict(islice(bindings.items(), room))
                count += len(chosen)
                messages += pack_bindings(kept, chosen)
    except KernelError as error:
        log.warning("bindings_lost", why=error.reason)
        return Kept()
    return Kept(messages, count, left_out)


def install_with(kept: Kept, install: Callable[[Sequence[Message]], object]) -> None:
    """Call `install` with the messages; where the kernel refuses, without them: Services matter more."""
    if not kept.messages:
        install(())
        return
    try:
        install(kept.messages)
    except KernelError as error:
        install(())
        log.warning("bindings_lost", why=error.reason, count=kept.bindings)
    else:
        log.info("bindings_kept", count=kept.bindings, left_out=kept.left_out)


def _list_maps(connection: Connection, family: Family, affinities: Elements, base: Base) -> list[KeptMap]:
    if not affinities:
        return []
    sets = connection.dump(Message(Type.GETSET, family, _NAME))
    return find_kept_maps(family, [one for reply in sets if (one := parse_set(reply.payload))], affinities, base)


def _read_map(connection: Connection, kept: KeptMap) -> dict[bytes, Binding]:
    """Client to binding; several dumps together where packets or the kernel move them meanwhile."""
    found: dict[bytes, Binding] = {}
    names = _NAME + pack_name(LIST_SET, kept.name)
    for _attempt in range(_ATTEMPTS):
        dump = connection.dump(Message(Type.GETSETELEM, kept.family, names))
        listed: dict[bytes, Binding] = {}
        number = 0
        for client, binding in iter_bindings(kept, (reply.payload for reply in dump)):
            number += 1
            if len(listed) < MOST_IN_MAP:
                listed[client] = binding
        found |= listed
        if number == len(listed):
            break  # none twice is none missed
    return found
