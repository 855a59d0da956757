"""What this node's own parts tell: links, the proxy's table, and what a person or the system asks for."""

from collections.abc import Iterable

from msgspec.structs import replace

from proxy.l2.announcing import announce_again
from proxy.l2.claims import flush_claims, release
from proxy.l2.draft import Draft
from proxy.l2.events import (
    DrainAsked,
    DrainEnded,
    LinkChanged,
    MoveAsked,
    ProxyGone,
    RestartAsked,
    StopAsked,
    TableChanged,
    TableFresh,
)
from proxy.l2.giving import move, review
from proxy.l2.guard import RETURN_INTERVALS, RETURN_S, listen
from proxy.l2.hearing import has_majority
from proxy.l2.messages import Bye
from proxy.l2.placing import circumstances, standings
from proxy.l2.spreading import share_table
from proxy.l2.state import Hold, Member, Wire
from proxy.l2.types import LATER, NODE_NETWORK, OWNING, UNCLAIMED, Key


def change_link(draft: Draft, event: LinkChanged) -> None:
    """An interface came, went, or changed."""
    before = draft.wires.get(event.wire)
    if event.gone:
        _lose_wire(draft, event)
        return
    if before is None:
        _meet_wire(draft, event)
        return
    changed = replace(before, mac=event.mac, carrier=event.carrier, gateway=event.gateway)
    draft.put_wire(changed)
    if event.carrier and not before.carrier:
        draft.put_wire(replace(changed, last_frame_s=draft.now))
        listen(draft, draft.wires[event.wire], max(RETURN_INTERVALS * draft.timing.interval_s, RETURN_S))
    if event.carrier and (not before.carrier or before.mac != event.mac):
        announce_again(draft, event.wire)
    if event.carrier != before.carrier:
        _note_wire_keys(draft, event)
        review_all(draft)
    draft.hurry()


def _lose_wire(draft: Draft, event: LinkChanged) -> None:
    if event.wire in draft.wires:
        for key in sorted(draft.mine):
            if key.wire == event.wire:
                _let_go(draft, draft.holds[key])
        draft.wires = {name: wire for name, wire in draft.wires.items() if name != event.wire}
        _note_wire_keys(draft, event)


def _let_go(draft: Draft, hold: Hold) -> None:
    if hold.owner == draft.me:
        release(draft, hold)
    else:
        draft.put_hold(replace(hold, mine=hold.mine.NONE, until_s=LATER))


def _meet_wire(draft: Draft, event: LinkChanged) -> None:
    """A new wire: listen for a whole detection time before the first word."""
    known = draft.base.memory.rosters.get(event.wire, frozenset())
    wire = Wire(
        event.wire,
        mac=event.mac,
        carrier=event.carrier,
        gateway=event.gateway,
        roster=known,
        last_frame_s=draft.now,
        minority_s=draft.now,
    )
    for member in known - set(draft.members):
        draft.put_member(Member(member))
    draft.put_wire(wire)
    listen(draft, wire, draft.detect_s)
    wire = draft.wires[event.wire]
    if has_majority(draft, wire):
        draft.put_wire(replace(wire, majority_s=draft.now))
    _note_wire_keys(draft, event)
    draft.set(beat_s=draft.now)
    draft.hurry()


def _note_wire_keys(draft: Draft, event: LinkChanged) -> None:
    for hold in draft.holds.values():
        if hold.key.wire == event.wire:
            draft.note_busy(hold)


def change_table(draft: Draft, event: TableChanged) -> None:
    """A new table: look at what is ours at once, and at what we might own now. It makes nobody announce again."""
    before = draft.base.table.vips
    draft.set(table=event.table, fresh_s=draft.now - event.age_s, proxy_gone=False, heirs_due=True, dealt={})
    after = event.table.vips
    changed = [key for key, vip in after.items() if before.get(key) is not vip]
    gone = before.keys() - after.keys()
    for key in changed:
        hold = draft.holds.get(key)
        if hold is None:
            floor = draft.base.memory.held.get(key, UNCLAIMED)
            draft.put_hold(Hold(key, known=floor, orphan_s=draft.now))
        else:
            draft.note_busy(hold)
    for key in gone:
        hold = draft.holds.get(key)
        if hold is not None:
            draft.note_busy(hold)
    review_some(draft, [key for key in (*changed, *gone) if key in draft.mine])
    if changed or gone:
        share_table(draft)
    draft.hurry()


def review_all(draft: Draft) -> None:
    """Whether there is a cause to give any key of ours away."""
    draft.set(reviewed=circumstances(draft))
    review_some(draft, draft.mine)


def review_again(draft: Draft) -> None:
    """The same if anything has changed on which a cause may rest; a cause that lasts has its own clock."""
    if circumstances(draft) != draft.state.reviewed:
        review_all(draft)


def review_some(draft: Draft, keys: Iterable[Key]) -> None:
    """The same for these keys of ours."""
    ups = {name: standings(draft, name) for name in draft.wires}
    for key in sorted(keys):
        hold = draft.holds[key]
        if hold.mine in OWNING:
            review(draft, hold, ups.get(key.wire, {}))


def freshen_table(draft: Draft, event: TableFresh) -> None:
    """The table stands."""
    draft.set(fresh_s=draft.now - event.age_s, proxy_gone=False)


def lose_proxy(draft: Draft, _event: ProxyGone) -> None:
    """Keep answering for what it last reported, and rank last as a taker."""
    draft.set(proxy_gone=True)


def begin_drain(draft: Draft, event: DrainAsked) -> None:
    """Give everything away, quietly."""
    draft.set(drains=draft.state.drains | {event.cause})
    if not draft.state.draining:
        draft.set(draining=True, drained=False, beat_s=draft.now)
        _note_all(draft)
        review_all(draft)
        draft.hurry()


def end_drain(draft: Draft, event: DrainEnded) -> None:
    """Take part again, unless there is another cause."""
    draft.set(drains=draft.state.drains - {event.cause})
    if draft.state.draining and not draft.state.drains:
        draft.set(draining=False, drained=False, beat_s=draft.now)
        _note_all(draft)
        review_all(draft)
        draft.hurry()


def _note_all(draft: Draft) -> None:
    for hold in draft.holds.values():
        draft.note_busy(hold)


def begin_restart(draft: Draft, _event: RestartAsked) -> None:
    """A restart is no drain: nothing moves, others wait for us (F8)."""
    draft.set(restarting=True, beat_s=draft.now)
    draft.hurry()


def stop_all(draft: Draft, _event: StopAsked) -> None:
    """Leave for good."""
    for key in sorted(draft.mine):
        _let_go(draft, draft.holds[key])
    flush_claims(draft)
    for channel in (NODE_NETWORK, *draft.wires):
        draft.send(channel, Bye())
    draft.set(stopped=True)


def move_key(draft: Draft, event: MoveAsked) -> None:
    """Somebody wants a key elsewhere."""
    move(draft, event.key, event.to)
