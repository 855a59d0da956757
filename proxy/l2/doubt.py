"""Rule 7: an owner that may have been replaced asks the gateway, which answers to the MAC that it believes in.

An echo from our own address is answered and one from the address isn't: somebody else has it. A cut between members
hides the other's packets, and ARP carries no epoch; this sees it all the same (F3).
"""

from msgspec.structs import replace

from proxy.l2.actions import Echo, Note
from proxy.l2.claims import own, release
from proxy.l2.draft import Draft
from proxy.l2.events import EchoReply
from proxy.l2.evidence import give_in
from proxy.l2.guard import saw_frame
from proxy.l2.hearing import channel_of, has_majority, is_fresh_majority, majority_back, speaks
from proxy.l2.state import Hold, Wire
from proxy.l2.taking import PAIR, SUSPECT
from proxy.l2.types import LATER, NEVER, Key, Mine, MinorityHold

SAMPLE = 8
DOUBT_S = 60.0  # how long a member's loss leaves an owner with a majority in doubt
MISSES_OF_MAJORITY = 4
MISSES_OF_MINORITY = 5
CLAIM_AGAIN_S = 0.5
TRY_S = 1.0  # between echoes that only find out whether the gateway answers at all


def hear_echo(draft: Draft, event: EchoReply) -> None:
    """The gateway answered."""
    wire = draft.wires.get(event.wire)
    if wire is None:
        return
    saw_frame(draft, wire)
    wire = draft.wires[event.wire]
    if event.vip is None:
        draft.put_wire(replace(wire, gateway_ok_s=draft.now))
    else:
        draft.put_wire(replace(wire, answered=wire.answered | {event.vip}, vips_answered=True))


def doubt(draft: Draft) -> None:
    """Ask each wire's gateway where there is a reason to, and judge the answers to the last round."""
    for name, wire in draft.wires.items():
        if not wire.carrier:
            continue
        if wire.gateway is None:
            _stop_blind(draft, wire)
            continue
        pace = _pace(draft, wire)
        if pace == LATER:
            continue
        if draft.now < wire.echo_s + pace:
            draft.hurry(wire.echo_s + pace)
            continue
        if speaks(draft, wire):
            _judge(draft, wire)
        _ask(draft, draft.wires[name])
        draft.hurry(draft.now + pace)


def _pace(draft: Draft, wire: Wire) -> float:
    """How long between echoes; LATER: there is nothing to ask."""
    timing = draft.timing
    lately = draft.now - max(wire.loss_s, wire.minority_s, draft.base.up_s) < DOUBT_S
    if _is_doubtful(draft, wire) or _wants_witness(draft, wire):
        return timing.look_s if lately else timing.interval_s if wire.roster else TRY_S
    if wire.vips_answered or not any(key.wire == wire.name for key in draft.mine):
        return LATER
    return TRY_S if draft.now - draft.base.up_s < DOUBT_S else DOUBT_S


def _is_doubtful(draft: Draft, wire: Wire) -> bool:
    """Whether we own something, and others may have taken it unheard."""
    if not any(key.wire == wire.name for key in draft.mine):
        return False
    # Who has never heard anybody may be cut off since its start.
    return not wire.roster or wire.majority_s == LATER or draft.now - wire.loss_s < DOUBT_S


def _wants_witness(draft: Draft, wire: Wire) -> bool:
    """Whether the gateway's vote is needed to take something: of a pair, or where no majority is left."""
    if wire.majority_s == LATER:
        return True
    if 1 + len(wire.roster) != PAIR:
        return False
    channel = channel_of(wire)
    limit = SUSPECT * draft.detect_s
    return any(
        draft.now - draft.members[other].path(channel).heard_s >= limit
        for other in wire.roster
        if other in draft.members
    )


def _ask(draft: Draft, wire: Wire) -> None:
    """From our own address, and from a few of those that we hold, in turn."""
    gateway = wire.gateway
    if gateway is None:
        return
    # The gateway is a client of a shared address, and need not be ours.
    owned = (key for key in draft.mine - draft.state.shared if key.wire == wire.name)
    held = sorted(key for key in owned if draft.holds[key].mine is Mine.HOLD)
    sample: list[Key] = []
    if held:
        first = wire.sample_from % len(held)
        sample = (held[first:] + held[:first])[:SAMPLE]
    draft.actions.append(Echo(wire.name, gateway))
    draft.actions += [Echo(wire.name, gateway, key.vip) for key in sample]
    again = len(held) <= SAMPLE or any(draft.holds[key].misses for key in sample)
    draft.put_wire(
        replace(
            wire,
            echo_s=draft.now,
            sampled=tuple(sample),
            sample_from=wire.sample_from if again else wire.sample_from + SAMPLE,
            answered=frozenset(),
        )
    )


def _judge(draft: Draft, wire: Wire) -> None:
    """Count misses only where our own echo came back and the gateway has ever answered one of our addresses."""
    if wire.gateway_ok_s < wire.echo_s:
        _stop_blind(draft, wire)
        return
    majority = bool(wire.roster) and has_majority(draft, wire)
    # Just after a cut the majority is still counted: only one that was heard since may defend.
    fresh = majority and is_fresh_majority(draft, wire)
    for key in wire.sampled:
        hold = draft.hold(key)  # a sample may be as old as the last doubt, and its keys forgotten
        if hold.mine is not Mine.HOLD or hold.since_s > wire.echo_s:
            continue
        if key.vip in wire.answered:
            if hold.misses:
                draft.put_hold(replace(hold, misses=0))
        elif wire.vips_answered or hold.contested:
            _miss(draft, hold, majority=majority, defends=fresh)


def _miss(draft: Draft, hold: Hold, *, majority: bool, defends: bool) -> None:
    hold = replace(hold, misses=hold.misses + 1)
    draft.put_hold(hold)
    if not majority:
        if hold.misses >= MISSES_OF_MINORITY:
            give_in(draft, hold)
        return
    if defends and hold.misses >= MISSES_OF_MAJORITY and draft.now - hold.claimed_s >= CLAIM_AGAIN_S:
        own(draft, hold, Mine.HOLD)
        draft.put_hold(replace(draft.holds[hold.key], claimed_s=draft.now))
        draft.report(Note.DEFENDED, hold.key)


def _stop_blind(draft: Draft, wire: Wire) -> None:
    """Where nothing can be looked up and no majority is left, stop if the settings say so."""
    if wire.majority_s != LATER or draft.settings.minority_hold is not MinorityHold.STOP:
        return
    if draft.now - max(wire.gateway_ok_s, wire.minority_s) < draft.detect_s:
        return
    draft.report(Note.GATEWAY_SILENT, detail=wire.name)
    for key in sorted(draft.mine):
        if key.wire == wire.name and draft.holds[key].owner == draft.me:
            release(draft, draft.holds[key])


def lift_bars(draft: Draft) -> None:
    """A bar ends when a majority is back for the time of detection."""
    for wire in draft.wires.values():
        if majority_back(draft, wire):
            for key in sorted(key for key in draft.barred if key.wire == wire.name):
                hold = draft.holds[key]
                if hold.yielded or hold.barred_s > draft.now:
                    draft.put_hold(replace(hold, barred_s=NEVER, resort_s=NEVER, yielded=False))
