"""Invariants of a single step, written anew from the review's words and not from the rules' code."""

from collections.abc import Iterable

from proxy.l2.actions import Action, Announce, Note, Reply, Report
from proxy.l2.candidates import Why
from proxy.l2.events import Event, Received, StopAsked
from proxy.l2.messages import Release
from proxy.l2.state import Hold, State, Wire
from proxy.l2.types import NOBODY, NODE_NETWORK, OWNING, Channel, Key, MemberId, Mine

MOST_LOOKS_MISSING = 2
REMEMBERED_S = 3600.0


class BrokenError(AssertionError):
    """An invariant doesn't hold."""


def check_step(node: str, before: State, event: Event, after: State, actions: tuple[Action, ...]) -> None:
    """Invariants 0, 2, 3, 4, 8 and 9."""
    late = after.last_step_s - before.last_step_s
    _check_forgotten(node, after, [before.holds[key] for key in before.holds.keys() - after.holds.keys()])
    for key, hold in after.holds.items():
        was = before.holds.get(key)
        if was is hold:
            continue
        _check_owner(node, after, hold)
        if was is not None and hold.known < was.known:
            raise BrokenError(f"3: {node} forgot {was.known} of {key} for {hold.known}")
        if was is not None and was.mine in OWNING and hold.mine not in OWNING:
            _check_loss(node, after, (was, hold), event)
        if hold.mine is Mine.HOLD and (was is None or was.mine not in OWNING):
            _check_take(node, (before, after), hold, actions)
    for action in actions:
        if isinstance(action, (Announce, Reply)):
            _check_word(node, after, action)
            if late > after.settings.timing.detect_s:
                raise BrokenError(f"9: {node} spoke for {action.key} after {late} s, {event}")


def _check_owner(node: str, after: State, hold: Hold) -> None:
    if (hold.owner == after.me) != (hold.mine in OWNING):
        raise BrokenError(f"0: {node} has owner {hold.owner} and does {hold.mine} for {hold.key}")
    if hold.owner not in (NOBODY, hold.known.owner):
        raise BrokenError(f"0: {node} knows {hold.known} of {hold.key} and owner {hold.owner}")
    if (hold.mine is not Mine.NONE) != (hold.key in after.mine):
        raise BrokenError(f"0: {node} has lost sight of {hold.key}")


def _check_loss(node: str, after: State, holds: tuple[Hold, Hold], event: Event) -> None:
    """Who is up, two-way with a majority and fit loses a key by a higher epoch only, as an offer brings about too."""
    was, hold = holds
    if hold.known > was.known or not _is_fit(after, hold.key) or isinstance(event, StopAsked):
        return
    if isinstance(event, Received) and isinstance(event.message.body, Release):
        return  # F13: its own gateway is silent, and others hear it on the node network only
    wire = after.wires[hold.key.wire]
    if wire.roster and _has_majority(after, wire):  # who has never heard anybody has no majority to speak of
        raise BrokenError(f"2: {node} let go of {hold.key} at {event}")


def _is_fit(state: State, key: Key) -> bool:
    vip, wire = state.table.vips.get(key), state.wires.get(key.wire)
    if vip is None or wire is None or not wire.carrier or state.draining:
        return False
    return vip.programmed and vip.mine.why is Why.ELIGIBLE


def _has_majority(state: State, wire: Wire) -> bool:
    """By what everybody who is heard counts."""
    channel, detect_s = _channel(wire), state.settings.timing.detect_s
    paths = [member.path(channel) for member in state.members.values() if not member.left]
    two_way = [path for path in paths if path.names_me and state.last_step_s - path.heard_s < detect_s]
    return (1 + len(two_way)) * 2 > max([1 + len(wire.roster), *(path.roster for path in two_way)])


def _channel(wire: Wire) -> Channel:
    """Where its members are judged (F13)."""
    return NODE_NETWORK if wire.blind else wire.name


def _check_forgotten(node: str, after: State, holds: Iterable[Hold]) -> None:
    """A key goes with its epoch only where nobody has it or wants it, for an hour, and nobody who may know is away."""
    for was in holds:
        kept = was.owner != NOBODY or was.mine is not Mine.NONE or was.key in after.table.vips
        if kept or after.last_step_s - was.orphan_s < REMEMBERED_S:
            raise BrokenError(f"3: {node} forgot {was.key}, which had {was.known}")
        wire = after.wires.get(was.key.wire)
        for member in wire.roster if wire is not None else ():
            path = after.members[member].path(_channel(wire)) if wire is not None else None
            if path is None or after.last_step_s - path.heard_s >= after.settings.timing.detect_s:
                raise BrokenError(f"3: {node} forgot {was.key} while a member is away")


def _check_take(node: str, states: tuple[State, State], hold: Hold, actions: tuple[Action, ...]) -> None:
    """A take needs looks, and fresh reports of a majority or a named exception; an offered key needs neither."""
    notes = {action.note for action in actions if isinstance(action, Report) and action.key == hold.key}
    if Note.RECEIVED in notes:
        return
    if not notes & {Note.TAKEN, Note.LAST_RESORT}:
        raise BrokenError(f"4: {node} holds {hold.key} without a word: {notes}")
    before, after = states
    was = before.holds[hold.key]
    wire = before.wires[hold.key.wire]
    owner = after.members.get(_taken_from(hold, actions))
    if owner is None:
        # Let go in this very step, or before; else it was asked for by broadcast.
        if not was.at_once and was.probes < MOST_LOOKS_MISSING and was.owner == NOBODY:
            raise BrokenError(f"4: {node} took {hold.key} unprobed")
        return
    path = owner.path(wire.name)
    if path.mac and path.looks < MOST_LOOKS_MISSING:
        raise BrokenError(f"4: {node} took {hold.key} after {path.looks} looks")
    timing = before.settings.timing
    if after.last_step_s - wire.proven_s < timing.detect_s:
        raise BrokenError(f"4: {node} took {hold.key} though its own way is proven for less than {timing.detect_s} s")
    if Note.LAST_RESORT in notes:
        return
    fresh = 1
    channel = _channel(wire)
    for member in after.members.values():
        heard = member.path(channel)
        is_two_way = heard.names_me and after.last_step_s - heard.heard_s < timing.detect_s
        fresh += is_two_way and heard.ages_s.get(owner.id, timing.detect_s) >= timing.detect_s / 2
    pair = len(wire.roster) == 1 and wire.gateway_ok_s > owner.path(channel).heard_s
    if fresh * 2 <= 1 + len(wire.roster) and not pair:
        raise BrokenError(f"4: {node} took {hold.key} on the word of {fresh}")


def _taken_from(hold: Hold, actions: tuple[Action, ...]) -> MemberId:
    for action in actions:
        if isinstance(action, Report) and action.key == hold.key and action.note in {Note.TAKEN, Note.LAST_RESORT}:
            return action.member
    return NOBODY


def _check_word(node: str, after: State, action: Announce | Reply) -> None:
    hold = after.holds[action.key]
    wire = after.wires[action.key.wire]
    shared = action.key in after.shared
    if shared and isinstance(action, Announce):
        raise BrokenError(f"{node} brings all clients of {action.key} to one node")
    if not shared and (hold.mine is Mine.NONE or (isinstance(action, Announce) and hold.mine is not Mine.HOLD)):
        raise BrokenError(f"8: {node} spoke for {action.key}, which it does {hold.mine} for")
    if wire.suspended or not wire.carrier or after.last_step_s < wire.listen_until_s:
        raise BrokenError(f"9: {node} spoke for {action.key} while it listens")
