"""What the API has, as last heard: objects by kind and name, and how changes and our own writes add up. Pure.

An object that is newer than a change of it stays: our own write is known before the watch tells of it, and a change
that was on its way meanwhile must not undo it. resourceVersions of one kind are numbers that grow (KEP-5504).
"""

from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec

from endpointslice.types import IP, ServiceName
from proxy.addresses.accept import Accepted, accept_pools
from proxy.addresses.allocate import Classes, World
from proxy.addresses.decode import AdvertisementObject, Change, PoolObject
from proxy.addresses.types import Kind, Namespace, Node, Service

T = TypeVar("T")
Unreadable = Mapping[tuple[Kind, str], str]


class State(msgspec.Struct, frozen=True):
    """Never changed in place."""

    objects: Mapping[Kind, Mapping[str, Change]] = {}
    complete: frozenset[Kind] = frozenset()  # a whole list of it came
    accepted: Accepted = Accepted()
    unreadable: Unreadable = {}  # objects whose newest version isn't, and why
    revision: int = 0  # grows when an object changed in what is read of it: a Node's heartbeat is no news

    def of(self, kind: Kind, type_: type[T]) -> dict[str, T]:
        """The objects of a kind that can be used, by name."""
        found = self.objects.get(kind, {})
        return {name: change.object for name, change in found.items() if isinstance(change.object, type_)}


def apply_list(state: State, kind: Kind, changes: Iterable[Change]) -> State:
    """All objects of the kind: what isn't among them is gone."""
    before = state.objects.get(kind, {})
    now: dict[str, Change] = {}
    unreadable = {place: why for place, why in state.unreadable.items() if place[0] is not kind}
    for change in changes:
        held = before.get(change.name)
        newest = _newer(held, change)
        if newest is not None:
            now[change.name] = newest
        if _is_unreadable(held, change):
            unreadable[kind, change.name] = change.problem
    return _with(state, kind, now, state.complete | {kind}, unreadable)


def apply_changes(state: State, kind: Kind, changes: Iterable[Change]) -> State:
    """Some objects of the kind, the later ones counting."""
    now = dict(state.objects.get(kind, {}))
    unreadable = dict(state.unreadable)
    for change in changes:
        held = now.get(change.name)
        newest = _newer(held, change)
        if _is_unreadable(held, change):
            unreadable[kind, change.name] = change.problem
        elif newest is not held or newest is None:
            unreadable.pop((kind, change.name), None)
        if newest is None:
            now.pop(change.name, None)
        else:
            now[change.name] = newest
    return _with(state, kind, now, state.complete, unreadable)


def _is_unreadable(held: Change | None, change: Change) -> bool:
    stale = held is not None and _number(held.version) > _number(change.version)
    return change.object is None and bool(change.problem) and not stale


def _newer(held: Change | None, change: Change) -> Change | None:
    """Which of the two counts; None: there is no such object, or none that was ever readable."""
    if held is not None and _number(held.version) > _number(change.version):
        return held
    if _is_unreadable(held, change):  # it is there, and its last readable version stands
        return held
    return change if change.object is not None else None


def _number(version: str) -> int:
    return int(version) if version.isdecimal() else 0


def _with(
    state: State, kind: Kind, now: Mapping[str, Change], complete: frozenset[Kind], unreadable: Unreadable
) -> State:
    before = state.objects.get(kind, {})
    news = (complete, unreadable) != (state.complete, state.unreadable) or before.keys() != now.keys()
    changed = ((change, before[name]) for name, change in now.items() if not news and change is not before[name])
    news = news or any(change.object != held.object for change, held in changed)
    objects, revision = {**state.objects, kind: now}, state.revision + news
    state = msgspec.structs.replace(state, objects=objects, complete=complete, unreadable=unreadable, revision=revision)
    if kind is not Kind.POOL:
        return state
    reads = {name: pool.read for name, pool in state.of(Kind.POOL, PoolObject).items()}
    return msgspec.structs.replace(state, accepted=accept_pools(state.accepted.pools, reads))


def build_world(state: State, classes: Classes) -> World:
    """What an answer depends on."""
    reserved: frozenset[IP] = frozenset()
    nodes = state.of(Kind.NODE, Node)
    return World(
        services={ServiceName(name): one for name, one in state.of(Kind.SERVICE, Service).items()},
        pools=state.accepted.pools,
        namespaces=state.of(Kind.NAMESPACE, Namespace),
        reserved=reserved.union(*(node.addresses for node in nodes.values())),
        doubtful=state.objects.get(Kind.POOL, {}).keys() != state.accepted.pools.keys(),
        classes=classes,
    )


def list_problems(state: State) -> dict[tuple[Kind, str], str]:
    """What is wrong with pools and advertisements, in one line each."""
    told = {(Kind.POOL, name): "; ".join(map(str, problems)) for name, problems in state.accepted.problems.items()}
    for name, advertisement in state.of(Kind.ADVERTISEMENT, AdvertisementObject).items():
        wrong = (*advertisement.problems, *advertisement.remarks)
        if wrong:
            told[Kind.ADVERTISEMENT, name] = "; ".join(map(str, wrong))
    return told
