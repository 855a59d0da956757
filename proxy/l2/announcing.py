"""Rule 9: gratuitous packets, of what is held and only while it is: after a take, after a change of MAC, once a minute.

Linux ignores some forms within a second of the last change (locktime), so a schedule outlasts it; nothing is sent
again because the proxy's table changed.
"""

from msgspec.structs import replace

from proxy.l2.actions import Announce
from proxy.l2.draft import Draft
from proxy.l2.hearing import is_fresh_majority, speaks
from proxy.l2.spreading import tell_clients
from proxy.l2.state import Hold, Wire
from proxy.l2.types import LATER, Channel, Mine, key_hash

ROUNDS_S = (0.0, 1.1, 2.2, 4.4)
REFRESH_S = 60  # whole seconds: a key's own second in the minute comes from its hash
PER_SECOND = 500.0  # on a wire: 13,000 broadcasts in four seconds trip a switch's storm control
BURST = 50


def announce(draft: Draft) -> None:
    """Send what is due, as far as each wire's budget goes; first what clients asked for lately."""
    due: dict[Channel, list[Hold]] = {}
    for key in draft.busy:
        hold = draft.holds[key]
        if hold.announce_s == LATER:
            continue
        if hold.announce_s <= draft.now:
            due.setdefault(key.wire, []).append(hold)
        else:
            draft.hurry(hold.announce_s)
    for name, wished in due.items():
        wire = draft.wires.get(name)
        if wire is None or not speaks(draft, wire):
            draft.hurry(draft.now + draft.timing.interval_s)
            continue
        holds = _not_doubtful(draft, wire, wished)
        holds.sort(key=lambda hold: (-hold.asked_s, key_hash(hold.key)))
        allowed = _budget(draft, wire)
        for hold in holds[:allowed]:
            _announce(draft, hold)
        if len(holds) > allowed:
            draft.hurry(draft.now + BURST / 2 / PER_SECOND)
        spent = max(wire.spoken_s, draft.now - BURST / PER_SECOND) + min(allowed, len(holds)) / PER_SECOND
        draft.put_wire(replace(draft.wires[name], spoken_s=spent))


def _not_doubtful(draft: Draft, wire: Wire, holds: list[Hold]) -> list[Hold]:
    """Repeats wait while nobody is heard and it isn't clear yet who is cut off, or the gateway knows another."""
    unclear = bool(wire.roster) and wire.majority_s != LATER and not is_fresh_majority(draft, wire)
    unclear = unclear or (wire.majority_s == LATER and draft.now - wire.minority_s < draft.detect_s)
    sure = [hold for hold in holds if hold.rounds == 0 or not (unclear or hold.misses)]
    if len(sure) < len(holds):
        draft.hurry(draft.now + draft.timing.interval_s)
    return sure


def _budget(draft: Draft, wire: Wire) -> int:
    """How many packets may go out now."""
    return max(0, min(BURST, int((draft.now - wire.spoken_s) * PER_SECOND + 1e-6) if wire.spoken_s > 0 else BURST))


def _announce(draft: Draft, hold: Hold) -> None:
    if hold.mine is not Mine.HOLD:
        draft.put_hold(replace(hold, announce_s=LATER))
        return
    if hold.key not in draft.state.shared:  # a broadcast would bring all clients to one node
        draft.actions.append(Announce(hold.key, both=hold.rounds > 0, refresh=hold.rounds >= len(ROUNDS_S)))
    rounds = hold.rounds + 1
    gap = ROUNDS_S[rounds] - ROUNDS_S[rounds - 1] if rounds < len(ROUNDS_S) else LATER
    draft.put_hold(replace(hold, announce_s=draft.now + gap if gap != LATER else LATER, rounds=rounds))
    if gap != LATER:
        draft.hurry(draft.now + gap)


def announce_again(draft: Draft, wire_name: Channel) -> None:
    """The MAC or the carrier changed: clients must learn it."""
    for key in tuple(draft.mine):
        hold = draft.holds[key]
        if key.wire == wire_name and hold.mine is Mine.HOLD:
            draft.put_hold(replace(hold, announce_s=draft.now, rounds=0))
    for key in sorted(draft.state.shared):
        if key.wire == wire_name:
            tell_clients(draft, key)


def refresh(draft: Draft, since_s: float) -> None:
    """Once a minute each address, so that switches don't forget where it is (their tables age in five)."""
    first, last = int(since_s), int(draft.now)
    seconds = {second % REFRESH_S for second in range(max(first, last - REFRESH_S) + 1, last + 1)}
    for key in tuple(draft.mine) if seconds else ():
        hold = draft.holds[key]
        if key_hash(key) % REFRESH_S in seconds and hold.mine is Mine.HOLD and hold.announce_s == LATER:
            draft.put_hold(replace(hold, announce_s=draft.now, rounds=len(ROUNDS_S)))
