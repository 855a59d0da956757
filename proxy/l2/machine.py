"""One step of ownership: a state, the time and an event give the next state and what to do.

The order at every step is the rules': first whether we stood still, then the event, then what is due. Equal input gives
equal output, so a recording can be played again.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec.structs import replace

from proxy.l2 import (
    announcing,
    beats,
    claims,
    clients,
    doubt,
    evidence,
    forgetting,
    giving,
    local,
    sessions,
    spreading,
    taking,
)
from proxy.l2.actions import Action, Note, SetTimer
from proxy.l2.draft import Draft
from proxy.l2.election import NO_HEIRS
from proxy.l2.events import (
    ArpSeen,
    DrainAsked,
    DrainEnded,
    EchoReply,
    Event,
    LinkChanged,
    MemberDeleted,
    MoveAsked,
    ProxyGone,
    Received,
    RestartAsked,
    StopAsked,
    TableChanged,
    TableFresh,
    Tick,
    WireActive,
)
from proxy.l2.guard import guard, saw_frame, watch_wires
from proxy.l2.hearing import channel_of, is_up
from proxy.l2.messages import Bye, Claims, Clients, Offer, Release, Want
from proxy.l2.pace import TICKS_AN_INTERVAL, choose_pause_s, says_otherwise
from proxy.l2.placing import place_of, standings
from proxy.l2.state import Hold, State
from proxy.l2.types import LATER, NEVER, NOBODY, NODE_NETWORK, OWNING, MemberId
from proxy.l2.words import news_of, note_word

SLOW_S = 1.0
MOST_CHANGES = 300  # of keys in one step: thousands would make us late, and whoever is late begins anew
SHORTEST_S = 0.001  # no two ticks come closer, and one that is no more than this early counts, as times are rounded


class Step(NamedTuple):
    """What a step gives."""

    state: State
    actions: tuple[Action, ...]


def step(state: State, now: float, event: Event, *, more: bool = False) -> Step:
    """`now` is monotonic; a clock that goes back stands still instead. Never raises, whatever the event holds.

    `more`: other events wait to be told. Nothing that time alone brings is done before them: who woke late would take
    an address though the claim of another lies in its socket.
    """
    draft = Draft(state, max(now, state.last_step_s))
    handler = _HANDLERS.get(type(event))
    if (guard(draft) or isinstance(event, _OWN)) and handler is not None and not state.stopped:
        handler(draft, event)
    reached_s = draft.now + SHORTEST_S if isinstance(event, Tick) else draft.now
    if draft.state.stopped:
        draft.due_s = LATER
    elif not more and reached_s >= draft.due_s:
        _pass_time(draft)
        draft.due_s = max(draft.due_s, draft.now + SHORTEST_S)
    claims.flush_claims(draft)
    giving.flush_offers(draft)
    if state.kept_s > draft.now and says_otherwise(draft, state):
        draft.keep((), NEVER)
        if not draft.state.stopped:
            draft.set(beat_s=draft.now)
            draft.hurry()
    if draft.due_s != state.due_s:
        draft.actions.append(SetTimer(draft.due_s))
    return Step(draft.freeze(), tuple(draft.actions))


def _pass_time(draft: Draft) -> None:
    """All that time alone may bring, in the rules' order; each says when it must be looked at again."""
    draft.passing = True
    pause_s = choose_pause_s(draft)
    draft.crowded = pause_s > draft.timing.interval_s
    draft.due_s = draft.now + pause_s
    watch_wires(draft)
    # A little sooner costs nothing, and saves a wake-up of its own.
    longest_s = max(pause_s, draft.timing.interval_s)
    watches = draft.now >= draft.watch_s - longest_s / TICKS_AN_INTERVAL
    if watches:
        # Nobody's silence matters sooner: a member that speaks moves that away, and none is new and silent.
        draft.watch_s = draft.now + longest_s
        beats.watch_members(draft)
    beats.send_beats(draft)
    if watches:
        taking.look_at_suspects(draft)
    draft.hurry(draft.watch_s)
    if draft.now >= draft.state.slow_s:
        _look_slowly(draft)
    _name_heirs(draft)
    _look_at_keys(draft)
    claims.flush_claims(draft)
    doubt.doubt(draft)
    claims.flush_claims(draft)
    announcing.announce(draft)
    if draft.state.shared or draft.state.sharing:
        spreading.watch_shares(draft)
        clients.pass_due(draft)


def _look_at_keys(draft: Draft) -> None:
    grounds: taking.Grounds = {}
    ripe: taking.Ripe = {}
    due = [key for key in draft.busy if _is_due(draft, draft.holds[key], ripe)]
    ups = {name: standings(draft, name) for name in draft.wires} if due else {}
    most = draft.puts + MOST_CHANGES
    for key in sorted(due, key=lambda key: (_turn_s(draft, draft.holds[key]), key)):
        hold = draft.holds[key]
        if draft.puts > most:
            draft.hurry(draft.now + SHORTEST_S)
            break
        if hold.until_s != LATER:
            giving.mature(draft, hold)
            hold = draft.holds[key]
        if hold.mine in OWNING:
            if hold.better_s != LATER or hold.unfit_s != LATER or hold.offered is not None:
                giving.review(draft, hold, ups.get(key.wire, {}))
        else:
            taking.consider(draft, hold, grounds)


def _turn_s(draft: Draft, hold: Hold) -> float:
    """When it will be our turn with the key, as far as is known: a step changes only so many, the first ones first."""
    if hold.owner == draft.me:
        return NEVER
    if hold.take_s is not None:
        return hold.take_s
    if hold.owner != NOBODY or hold.heirs != NO_HEIRS:
        return draft.now
    return draft.now if place_of(draft, hold.key) == draft.me else LATER


def _is_due(draft: Draft, hold: Hold, ripe: taking.Ripe) -> bool:
    """Whether time may have changed the key by now. Asked of each busy key at each tick, so it must cost little."""
    if hold.until_s != LATER:
        return True
    if hold.mine in OWNING:
        if hold.better_s == LATER and hold.unfit_s == LATER and hold.offered is None:
            return False  # it only announces
        if draft.now < hold.due_s:
            draft.hurry(hold.due_s)
            return False
        return True
    return not taking.must_wait(draft, hold, ripe)


def _look_slowly(draft: Draft) -> None:
    """Once a second: heirs, balance, bars, refreshing, causes to give keys away, and what may be forgotten."""
    since_s = draft.state.slow_s - SLOW_S
    draft.set(slow_s=draft.now + SLOW_S)
    beats.watch_blindness(draft)
    doubt.lift_bars(draft)
    announcing.refresh(draft, since_s)
    local.review_again(draft)
    giving.balance(draft)
    forgetting.forget_absent(draft)
    forgetting.forget_keys(draft)
    _renew_heirs(draft)
    state = draft.state
    if state.draining and not draft.mine and not state.drained:
        draft.set(drained=True)
        draft.report(Note.DRAINED)


def _renew_heirs(draft: Draft) -> None:
    """Let heirs be named anew when somebody came or went, or the table changed."""
    seen = frozenset(
        (name, member.id)
        for name, wire in draft.wires.items()
        for member in draft.members.values()
        if is_up(draft, member, channel_of(wire))
    )
    state = draft.state
    if not state.heirs_due and seen == state.members_seen:
        return
    owned = [key for key in draft.mine if draft.holds[key].mine in OWNING]
    draft.set(members_seen=seen, heirs_due=False, heirless=tuple(sorted(owned)))


def _name_heirs(draft: Draft) -> None:
    """A few at a time, each few spread equally."""
    waiting = draft.state.heirless
    if not waiting:
        return
    draft.set(heirless=waiting[MOST_CHANGES:])
    draft.hurry(draft.now + SHORTEST_S)
    owned = [key for key in waiting[:MOST_CHANGES] if draft.hold(key).mine in OWNING]
    changed = []
    for key, heirs in claims.heirs_of(draft, owned).items():
        if heirs != draft.holds[key].heirs:
            draft.put_hold(replace(draft.holds[key], heirs=heirs))
            changed.append(claims.state_of(draft.holds[key]))
    if changed:
        claims.tell(draft, changed)


def _receive(draft: Draft, event: Received) -> None:
    member = sessions.admit(draft, event)
    if member is None:
        return
    body = event.message.body
    if isinstance(body, Bye):
        _hear_bye(draft, member.id)
        return
    member = beats.hear(draft, event, member)
    seq, words = event.message.header.seq, member.words
    if (noted := note_word(words, seq, body)) is not words:
        member = replace(draft.members[member.id], words=noted)
        draft.put_member(member)
    if isinstance(body, Claims):
        news = news_of(words, seq, body)
        if news is not None:
            claims.hear_claims(draft, member, news)
    elif isinstance(body, Want):
        claims.tell_all(draft, event.channel, member.id)
    elif isinstance(body, Offer):
        giving.hear_offer(draft, member, body)
    elif isinstance(body, Release):
        claims.hear_release_wish(draft, member, body)
    elif isinstance(body, Clients):
        spreading.hear_clients(draft, body)


def _hear_bye(draft: Draft, sender: MemberId) -> None:
    member = draft.members[sender]
    past = member.past | {member.session} if member.session is not None else member.past
    draft.put_member(replace(member, left=True, session=None, past=past, paths={}, digest=0, count=0))
    for wire in draft.wires.values():
        draft.put_wire(replace(wire, roster=wire.roster - {member.id}))
    draft.report(Note.MEMBER_LEFT, member=member.id)
    claims.forget(draft, member.id)


def _delete_member(draft: Draft, event: MemberDeleted) -> None:
    if event.member in draft.members and not any(
        is_up(draft, draft.members[event.member], channel) for channel in (NODE_NETWORK, *draft.wires)
    ):
        _hear_bye(draft, event.member)


def _frame(draft: Draft, event: WireActive) -> None:
    saw_frame(draft, draft.wires.get(event.wire))


_HANDLERS: dict[type, Callable[[Draft, Any], None]] = {
    Received: _receive,
    ArpSeen: evidence.see_arp,
    WireActive: _frame,
    EchoReply: doubt.hear_echo,
    LinkChanged: local.change_link,
    TableChanged: local.change_table,
    TableFresh: local.freshen_table,
    ProxyGone: local.lose_proxy,
    DrainAsked: local.begin_drain,
    DrainEnded: local.end_drain,
    RestartAsked: local.begin_restart,
    StopAsked: local.stop_all,
    MoveAsked: local.move_key,
    MemberDeleted: _delete_member,
}
# What this node's own parts say is true however late we are.
_OWN = (LinkChanged, TableChanged, TableFresh, ProxyGone, DrainAsked, DrainEnded, RestartAsked, StopAsked, MoveAsked)
