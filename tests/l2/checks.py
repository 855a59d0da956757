"""Invariants of a single step, written anew from the review's words and not from the rules' code."""

from proxy.l2.actions import Action, Announce, Note, Reply, Report
from proxy.l2.events import Event
from proxy.l2.state import Hold, State
from proxy.l2.types import NOBODY, OWNING, MemberId, Mine

MOST_LOOKS_MISSING = 2


class BrokenError(AssertionError):
    """An invariant doesn't hold."""


def check_step(node: str, before: State, event: Event, after: State, actions: tuple[Action, ...]) -> None:
    """Invariants 0, 3, 4, 8 and 9."""
    late = after.last_step_s - before.last_step_s
    for key, hold in after.holds.items():
        was = before.holds.get(key)
        if was is hold:
            continue
        _check_owner(node, after, hold)
        if was is not None and hold.known < was.known:
            raise BrokenError(f"3: {node} forgot {was.known} of {key} for {hold.known}")
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
    if Note.LAST_RESORT in notes:
        return
    timing = before.settings.timing
    fresh = 1
    for member in after.members.values():
        heard = member.path(wire.name)
        is_two_way = heard.names_me and after.last_step_s - heard.heard_s < timing.detect_s
        fresh += is_two_way and heard.ages_s.get(owner.id, timing.detect_s) >= timing.detect_s / 2
    pair = len(wire.roster) == 1 and wire.gateway_ok_s > path.heard_s
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
    if hold.mine is Mine.NONE or (isinstance(action, Announce) and hold.mine is not Mine.HOLD):
        raise BrokenError(f"8: {node} spoke for {action.key}, which it does {hold.mine} for")
    if wire.suspended or not wire.carrier or after.last_step_s < wire.listen_until_s:
        raise BrokenError(f"9: {node} spoke for {action.key} while it listens")
