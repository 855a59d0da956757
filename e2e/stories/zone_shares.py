"""Where connections of the story of zones went, as shares over time and by stage, and what was promised. No I/O."""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

import msgspec

from e2e.stories.page import render_rows
from e2e.world.clients import Outcome, Record


class Place(StrEnum):
    """Where the server of a connection is, seen from its client."""

    NODE = "same node"
    ZONE = "same zone"
    ELSEWHERE = "elsewhere"
    FAILED = "failed"


NEAR = frozenset({Place.NODE, Place.ZONE})


class Reach(NamedTuple):
    """From a moment on, the nodes with ready endpoints of a Service."""

    at: float  # monotonic seconds
    nodes: frozenset[str]


class Visit(NamedTuple):
    """One connection or exchange."""

    began: float  # monotonic seconds
    place: Place
    best: Place  # the nearest where an endpoint was ready; FAILED: nowhere


class Second(msgspec.Struct, frozen=True):
    """Visits that began in one second."""

    places: dict[Place, int]
    near: int  # those with a ready endpoint in their own zone


class Stage(msgspec.Struct, frozen=True):
    """A part of the story; seconds since the traffic's start."""

    name: str
    began: float
    settled: float  # what was changed is done, and has been for a while
    ended: float


class Row(msgspec.Struct, frozen=True):
    """One stage of one Service."""

    stage: str
    visits: int
    on_node: int
    in_zone: int  # on the node or elsewhere in the zone
    near: int  # those with a ready endpoint in their own zone
    failed: int


class Told(msgspec.Struct, frozen=True):
    """The story with one proxy, as it is kept in a file."""

    proxy: str
    run: str  # when and on what
    stages: list[Stage]
    seconds: dict[str, list[Second]]  # of each Service
    rows: dict[str, list[Row]]
    broken: list[str]  # promises, in words
    failures: list[str]


def find_place(node: str | None, client: str, zones: Mapping[str, str]) -> Place:
    """Where a server's node is for a client's; None: no server."""
    if node is None:
        return Place.FAILED
    if node == client:
        return Place.NODE
    return Place.ZONE if zones[node] == zones[client] else Place.ELSEWHERE


def see_visits(
    records: Iterable[Record], client: str, zones: Mapping[str, str], reaches: Sequence[Reach]
) -> list[Visit]:
    """The visits of a client, named by its node, to one Service whose endpoints were there as `reaches` tells."""
    times = [reach.at for reach in reaches]
    visits = []
    for record in records:
        answered = record.outcome is Outcome.ANSWERED
        server = record.name.rpartition("@")[2] if answered else None
        known = bisect_right(times, record.began)
        ready = reaches[known - 1].nodes if known else frozenset()
        order = list(Place)
        best = min((find_place(node, client, zones) for node in ready), key=order.index, default=Place.FAILED)
        visits.append(Visit(record.began, find_place(server, client, zones), best))
    return visits


def bin_visits(visits: Iterable[Visit], began: float, seconds: int) -> list[Second]:
    """The visits of each second since `began`; what is outside is left out."""
    places: list[Counter[Place]] = [Counter() for _ in range(seconds)]
    near: Counter[int] = Counter()
    for visit in visits:
        at = int(visit.began - began)
        if began <= visit.began and at < seconds:
            places[at][visit.place] += 1
            near[at] += visit.best in NEAR
    return [Second(dict(counts), near[at]) for at, counts in enumerate(places)]


def sum_stage(stage: Stage, visits: Iterable[Visit], began: float) -> Row:
    """The whole stage, from the change that begins it on."""
    within = [visit for visit in visits if stage.began <= visit.began - began < stage.ended]
    places = Counter(visit.place for visit in within)
    return Row(
        stage=stage.name,
        visits=len(within),
        on_node=places[Place.NODE],
        in_zone=places[Place.NODE] + places[Place.ZONE],
        near=sum(visit.best in NEAR for visit in within),
        failed=places[Place.FAILED],
    )


def find_broken(stage: Stage, visits: Iterable[Visit], began: float, *, same_node: bool) -> list[str]:
    """What was promised for the time after the stage has settled, and wasn't kept, in words.

    Nothing fails, and who has an endpoint in the own zone is answered there; with `same_node` also on the node.
    """
    steady = [visit for visit in visits if stage.settled <= visit.began - began < stage.ended]
    broken: Counter[str] = Counter()
    for visit in steady:
        if visit.place is Place.FAILED:
            broken["failed"] += 1
        elif visit.best in NEAR and visit.place is Place.ELSEWHERE:
            broken["left a zone that had endpoints"] += 1
        elif same_node and visit.best is Place.NODE and visit.place is not Place.NODE:
            broken["left a node that had an endpoint"] += 1
    if not steady:
        return [f"{stage.name}: no connection at all"]
    return [f"{stage.name}: {number} of {len(steady)} {what}" for what, number in broken.items()]


def render_table(service: str, stories: Sequence[Told]) -> str:
    """Markdown: a row a stage and proxy, of the whole stage and of the time when it has settled.

    Shares are of what was answered.
    """
    whole = ("connections", "failed", "on the node", "in the zone", "could be in the zone")
    rows = [
        (stage.name, told.proxy, *_whole(told.rows[service][at]), *_settled(stage, told.seconds[service]))
        for at in range(len(stories[0].stages))
        for told, stage in ((told, told.stages[at]) for told in stories)
    ]
    return render_rows(("stage", "proxy", *whole, "settled: on the node", "settled: in the zone"), rows, words=2)


def _whole(row: Row) -> tuple[int, int, str, str, str]:
    answered = row.visits - row.failed
    shares = (share(row.on_node, answered), share(row.in_zone, answered), share(row.near, row.visits))
    return (row.visits, row.failed, *shares)


def _settled(stage: Stage, seconds: Sequence[Second]) -> tuple[str, str]:
    """On the node and in the zone, of the whole seconds between what was changed is done and the next change."""
    places: Counter[Place] = Counter()
    for second in seconds[math.ceil(stage.settled) : math.floor(stage.ended)]:
        places.update(second.places)
    answered = places.total() - places[Place.FAILED]
    near = sum(places[place] for place in NEAR)
    return (share(places[Place.NODE], answered), share(near, answered))


def share(part: int, whole: int) -> str:
    """Per cent with one decimal, never rounded up to all nor down to none of it."""
    if whole == 0:
        return "-"
    if part in {0, whole}:
        return "100 %" if part else "0 %"
    return f"{min(99.9, max(0.1, 100 * part / whole)):.1f} %"
