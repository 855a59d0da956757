"""EFFECT: what is done to the owner and to the LAN, one function a scenario."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from e2e.lan.cuts import cut_all, cut_around
from e2e.lan.hogs import run_hogs
from e2e.lan.lan import Lan
from e2e.lan.measure import Figure
from e2e.lan.members import Member
from e2e.lan.speakers.speaker import Speaker
from e2e.lan.watching import await_owner

CUT_S = 6.0
_PAUSE_S = 5.0
_RESTART_S = 1.0
_OUTAGE_S = 60.0
_REST_S = 100.0  # an address too many is let go after a minute, and a hand-over takes half a one
_HOGS = 8
_AFTER_S = 8.0
_GRACE_S = 40.0  # closeby forwards for 30 s


class Stage(NamedTuple):
    """Where a scenario plays: the owner at the moment, and what can be done."""

    lan: Lan
    speaker: Speaker
    family: str
    owner: Member
    during: ExitStack  # closed when the run ends

    @property
    def bystander(self) -> Member:
        """A node that isn't the owner: the last of these."""
        return next(node for node in reversed(self.lan.nodes) if node != self.owner)


Act = Callable[[Stage], None]


class Scenario(NamedTuple):
    """`prepare` is done before the clients look, `act` while they do, which begins the window; then they look on.

    `served`: somebody owns the VIP when the clients begin, and `rest_s` after the daemons' start. `wanted` are the
    figures that matter, each with the issue's target for closeby, "" without one.
    """

    name: str
    act: Act
    wanted: tuple[tuple[Figure, str], ...]
    prepare: Act | None = None
    after_s: float = _AFTER_S
    served: bool = True
    rest_s: float = 0.0

    @property
    def flag(self) -> str:
        """Its name in a command line."""
        return "-".join(re.findall(r"\w+", self.name.lower()))


def nothing(stage: Stage) -> None:
    """What the rig shows where all is well: its floor."""


def lose(stage: Stage) -> None:
    """The owner's link is cut."""
    stage.lan.cut_link(stage.owner)


def start_hogs(stage: Stage) -> None:
    """Processes that want all of the CPU, until the run's end."""
    stage.during.enter_context(run_hogs(_HOGS))


def lose_without_api(stage: Stage) -> None:
    """The same in the middle of two minutes without an API server."""
    stage.speaker.lose_api()
    time.sleep(_OUTAGE_S)
    lose(stage)


def lose_and_await(stage: Stage) -> None:
    """The owner's link is cut, and another node owns the VIP by now."""
    lose(stage)
    await_owner(stage.lan, stage.family)


def join(stage: Stage) -> None:
    """The first owner's link is there again."""
    stage.lan.join_link(stage.owner)


def kill(stage: Stage) -> None:
    """The owner's daemon is killed; the node lives on."""
    stage.speaker.kill(stage.owner)


def pause(stage: Stage) -> None:
    """The owner's daemon is stopped for five seconds."""
    stage.speaker.stop(stage.owner)
    time.sleep(_PAUSE_S)
    stage.speaker.cont(stage.owner)


def drain(stage: Stage) -> None:
    """The owner gives all away, as planned."""
    stage.speaker.drain(stage.owner)


def drain_and_await(stage: Stage) -> None:
    """The same, done before."""
    drain(stage)
    await_owner(stage.lan, stage.family)


def start(stage: Stage) -> None:
    """The first owner's daemon runs again."""
    stage.speaker.start(stage.owner)


def restart_all(stage: Stage) -> None:
    """A rolling update: each node gets its next daemon, one after the other, the owner first."""
    for node in sorted(stage.lan.nodes, key=lambda node: node != stage.owner):
        stage.speaker.restart(node)
        time.sleep(_RESTART_S)


def cut_heartbeats(stage: Stage) -> None:
    """Only heartbeats are cut between the owner and the other nodes, then come through again."""
    with _cut_for(stage):
        stage.lan.cut(cut_around(stage.owner, stage.lan.nodes, stage.speaker.heartbeats))


def cut_owner(stage: Stage) -> None:
    """No frame passes between the owner and the other nodes; clients and router reach all of them."""
    with _cut_for(stage):
        stage.lan.cut(cut_around(stage.owner, stage.lan.nodes))


def cut_bystander(stage: Stage) -> None:
    """The same around a node that owns nothing."""
    with _cut_for(stage):
        stage.lan.cut(cut_around(stage.bystander, stage.lan.nodes))


def cut_everyone(stage: Stage) -> None:
    """No frame passes between any two nodes; clients and router reach all of them."""
    with _cut_for(stage):
        stage.lan.cut(cut_all(stage.lan.nodes))


def change_mac(stage: Stage) -> None:
    """The owner's interface gets another MAC."""
    stage.lan.change_mac(stage.owner)


def take_out_all(stage: Stage) -> None:
    """No node has its interface; the daemons begin without."""
    for node in stage.lan.nodes:
        stage.speaker.end(node)
    for node in stage.lan.nodes:
        stage.lan.take_out(node)
    for node in stage.lan.nodes:
        stage.speaker.start(node)
    time.sleep(_RESTART_S)


def put_in_all(stage: Stage) -> None:
    """The interfaces appear."""
    for node in stage.lan.nodes:
        stage.lan.put_in(node)


@contextmanager
def _cut_for(stage: Stage) -> Iterator[None]:
    yield
    time.sleep(CUT_S)
    stage.lan.cut(())


_D, _L, _C, _T, _M, _B = Figure.DARK, Figure.LOST, Figure.COLD, Figure.TWO, Figure.MOVES, Figure.BROKEN
_LOST = (
    (_D, "p50 < 1.0, p99 < 1.3; fast: p50 < 0.32, max < 0.42"),
    (_C, ""),
    (_L, ""),
    (_T, ""),
    (Figure.ANNOUNCED, ""),
)
_OUTAGE = ((_D, "as node lost"), (_M, "1"), (_T, "0"))
_KEPT = ((_M, "0"), (_T, "0"), (_L, "0"), (_C, ""))

SCENARIOS = (
    Scenario("nothing done", nothing, ((_D, ""), (_C, ""), (_L, "0"), (_T, "0"), (_B, "0")), after_s=4.0),
    Scenario("node lost", lose, _LOST),
    Scenario("node lost, 8 CPU hogs", lose, _LOST, prepare=start_hogs),
    Scenario("node lost in 2 min without an API server", lose_without_api, _OUTAGE, after_s=_OUTAGE_S, rest_s=_REST_S),
    Scenario("node returns", join, ((_T, "<= 0.2"), (_L, "0"), (_M, "0")), prepare=lose_and_await),
    Scenario("daemon killed", kill, ((_C, "as node lost"), (_T, ""), (_L, ""))),
    Scenario("daemon stopped for 5 s", pause, ((_T, "0"), (_C, ""), (_L, ""))),
    Scenario("planned drain", drain, ((_L, "0"), (_B, "0"), (_T, "0"), (_C, ""), (_D, ""))),
    Scenario("planned drain, past its grace", drain, ((_L, "0"), (_T, "0"), (_C, "")), after_s=_GRACE_S),
    Scenario("drained node returns", start, ((_L, "0"), (_T, "<= 0.2"), (_M, "0")), prepare=drain_and_await),
    Scenario("rolling restart of the daemons", restart_all, _KEPT),
    Scenario("only heartbeats cut around the owner, 6 s", cut_heartbeats, _KEPT),
    Scenario("all frames cut around the owner, 6 s", cut_owner, ((_T, "<= 0.5"), (_L, ""), (_M, ""))),
    Scenario("all frames cut around another node, 6 s", cut_bystander, _KEPT),
    Scenario("all frames cut between all nodes, 6 s", cut_everyone, ((_T, ""), (_L, ""), (_M, ""))),
    Scenario("owner's MAC changes", change_mac, ((_D, ""), (_C, ""), (_L, ""))),
    Scenario("interfaces appear late", put_in_all, ((_C, ""),), prepare=take_out_all, served=False),
)
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
BY_FLAG = {scenario.flag: scenario for scenario in SCENARIOS}
