"""A state while one step changes it: maps are copied at their first write, so the state before stays whole."""

from collections.abc import Mapping

from msgspec.structs import replace

from proxy.l2.actions import Action, Keep, Note, Owned, Report, Send, Withdraw
from proxy.l2.candidates import Vip, Why
from proxy.l2.dialect import choose_dialect
from proxy.l2.election import Order, Standing
from proxy.l2.messages import Body, ClaimState, Flags, Header, Message
from proxy.l2.state import NOTHING, Dealt, Hold, Member, Path, State, Tally, Wire
from proxy.l2.types import (
    LATER,
    MASK,
    NEVER,
    NOBODY,
    NODE_NETWORK,
    OWNING,
    Channel,
    Key,
    MemberId,
    Mine,
    claim_digest,
)

STALE_S = 60.0  # a table older than that ranks its node last (F10)


Keys = set[Key] | frozenset[Key]
_NO_KEYS: frozenset[Key] = frozenset()


class Draft:
    """What the rules read and write; `freeze` gives the next state."""

    def __init__(self, state: State, now: float) -> None:
        self.base = state
        self.now = now
        self.me = state.me
        self.settings = state.settings
        self.timing = state.settings.timing
        self.detect_s = state.settings.timing.detect_s
        self.actions: list[Action] = []
        self.dealt: dict[Channel, Dealt] = {}  # what this step goes by for keys that nobody owns
        self.puts = 0  # of holds
        self.offers: dict[tuple[Channel, MemberId, bool], list[tuple[Key, int]]] = {}
        self.released: list[ClaimState] = []  # what we let go, to be told with them
        self.claimed: dict[Key, None] = {}  # claims of ours to be told at the end of the step
        self.scalars: dict[str, object] = {}
        self.crowded = False  # all that comes in is looked at seldom
        self.passing = False  # in the timed rules, which say themselves when they are due again
        self.seq = state.seq
        self.due_s = state.due_s
        self.watch_s = state.watch_s
        self.members: dict[MemberId, Member] | Mapping[MemberId, Member] = state.members
        self.wires: dict[Channel, Wire] | Mapping[Channel, Wire] = state.wires
        self.holds: dict[Key, Hold] | Mapping[Key, Hold] = state.holds
        self.tallies: dict[MemberId, Tally] | Mapping[MemberId, Tally] = state.tallies
        self.busy: Keys = state.busy
        self.mine: Keys = state.mine
        self.barred: Keys = state.barred
        self.owned: dict[MemberId, Keys] | Mapping[MemberId, Keys] = state.owned
        self.orders: dict[tuple[Channel, int, int], Order] = {}
        self.ups: dict[Channel, dict[MemberId, Standing]] = {}  # what this step found of members that are up

    def freeze(self) -> State:
        """The next state."""
        return replace(
            self.base,
            seq=self.seq,
            last_step_s=self.now,
            due_s=self.due_s,
            watch_s=self.watch_s,
            members=self.members,
            wires=self.wires,
            holds=self.holds,
            tallies=self.tallies,
            busy=frozenset(self.busy),
            mine=frozenset(self.mine),
            barred=frozenset(self.barred),
            owned=self._freeze_owned(),
            **self.scalars,
        )

    def _freeze_owned(self) -> Mapping[MemberId, frozenset[Key]]:
        if self.owned is self.base.owned:
            return self.base.owned
        return {owner: frozenset(keys) for owner, keys in self.owned.items() if keys}

    # What the state says of itself.

    @property
    def state(self) -> State:
        """The base with the scalars that this step has set; its maps may be behind."""
        if self.scalars:
            self.base = replace(self.base, **self.scalars)
            self.scalars = {}
        return self.base

    def set(self, **scalars: object) -> None:
        """Change fields of the state that aren't maps."""
        self.scalars |= scalars
        self.ups.clear()

    def hurry(self, at_s: float | None = None) -> None:
        """Let the timed rules run then at the latest; None: in this step."""
        self.due_s = min(self.due_s, self.now if at_s is None else at_s)

    def watch(self, at_s: float) -> None:
        """Let members' silence be looked at then at the latest."""
        self.watch_s = min(self.watch_s, at_s)
        self.hurry(at_s)

    # Writes.

    def put_member(self, member: Member) -> None:
        """Replace what is known of a member."""
        if self.members is self.base.members:
            self.members = dict(self.members)
        self.members[member.id] = member  # type: ignore[index]  # a copy since the line before
        self.ups.clear()
        self.orders.clear()

    def drop_member(self, member: MemberId) -> None:
        """Forget one that owns nothing and counts on no wire."""
        self.members = {each: known for each, known in self.members.items() if each != member}
        self.tallies = {owner: tally for owner, tally in self.tallies.items() if owner != member}
        self.owned = {owner: keys for owner, keys in self.owned.items() if owner != member}
        self.ups.clear()
        self.orders.clear()

    def put_path(self, member: Member, channel: Channel, path: Path) -> Member:
        """Replace what is heard of a member on one channel; the new member."""
        changed = replace(member, paths={**member.paths, channel: path})
        self.put_member(changed)
        return changed

    def put_wire(self, wire: Wire) -> None:
        """Replace what is known of a wire."""
        self.wires = {**self.wires, wire.name: wire}
        self.ups.clear()

    def put_hold(self, hold: Hold) -> None:
        """Replace what is known of a key, and keep count of who owns what."""
        before = self.holds.get(hold.key)
        self.puts += 1
        if self.holds is self.base.holds:
            self.holds = dict(self.holds)
        self.holds[hold.key] = hold  # type: ignore[index]  # a copy since the line before
        if before is None or before.owner != hold.owner or before.known != hold.known:
            if before is not None:
                self._count(before, -1)
            self._count(hold, 1)
        was = before.mine if before is not None else Mine.NONE
        if (was is Mine.NONE) != (hold.mine is Mine.NONE):
            self.actions.append(Withdraw(hold.key) if hold.mine is Mine.NONE else Owned(hold.key))
            self.mine = _mark(self.mine, hold.key, present=hold.mine is not Mine.NONE)
        if (hold.yielded or hold.barred_s > NEVER) != (hold.key in self.barred):
            self.barred = _mark(self.barred, hold.key, present=hold.key not in self.barred)
        self.note_busy(hold)
        if hold.key in self.busy and not self.passing:
            self.hurry()

    def drop_hold(self, key: Key) -> None:
        """Forget a key that nobody has and that time doesn't change."""
        if self.holds is self.base.holds:
            self.holds = dict(self.holds)
        del self.holds[key]  # type: ignore[union-attr]  # a copy since the line before
        self.busy = _mark(self.busy, key, present=False)
        self.barred = _mark(self.barred, key, present=False)

    def note_busy(self, hold: Hold) -> None:
        """Whether time may change the key, so that the timed rules look at it."""
        if self._is_busy(hold) != (hold.key in self.busy):
            self.busy = _mark(self.busy, hold.key, present=hold.key not in self.busy)
            if hold.key in self.busy and not self.passing:
                self.hurry()

    def _is_busy(self, hold: Hold) -> bool:
        if hold.mine in OWNING:
            return (
                hold.mine is Mine.QUIET
                or hold.announce_s != LATER
                or hold.offered is not None
                or hold.unfit_s != LATER
                or hold.better_s != LATER
            )
        if hold.mine is Mine.LINGER:
            return True
        return self.may_be_free(hold) and self.fit(hold.key) is Why.ELIGIBLE

    def may_be_free(self, hold: Hold) -> bool:
        """Whether the owner isn't known to be up on the key's wire."""
        owner = self.members.get(hold.owner)
        if owner is None or owner.left:
            return True
        wire = self.wires.get(hold.key.wire)
        return owner.path(NODE_NETWORK if wire is not None and wire.blind else hold.key.wire).silent

    def _count(self, hold: Hold, sign: int) -> None:
        if hold.owner == NOBODY:
            return
        if self.tallies is self.base.tallies:
            self.tallies, self.owned = dict(self.tallies), dict(self.owned)
        before = self.tallies.get(hold.owner, NOTHING)
        digest = (before.digest + sign * claim_digest(hold.key, hold.known)) & MASK
        self.tallies[hold.owner] = Tally(digest, before.size + sign)  # type: ignore[index]  # a copy, as above
        keys = self.owned.get(hold.owner, _NO_KEYS)
        self.owned[hold.owner] = _mark(keys, hold.key, present=sign > 0)  # type: ignore[index]  # a copy, as above

    # Reads.

    def hold(self, key: Key) -> Hold:
        """What is known of a key; of a new one nothing."""
        return self.holds.get(key) or Hold(key, orphan_s=self.now)

    def vip(self, key: Key) -> Vip | None:
        """What the proxy's table says."""
        return self.state.table.vips.get(key)

    def fit(self, key: Key) -> Why:
        """Whether this member may own the key, judged by itself alone."""
        vip = self.vip(key)
        if vip is None:
            return Why.NOT_IN_TABLE
        wire = self.wires.get(key.wire)
        if wire is None:
            return Why.NO_INTERFACE
        if not wire.carrier:
            return Why.NO_CARRIER
        if self.state.draining or self.state.stopped:
            return Why.DRAINING
        if not vip.programmed:
            return Why.NOT_PROGRAMMED
        return vip.mine.why

    def is_stale(self) -> bool:
        """Whether this node's table is older than what others should rely on."""
        return self.state.proxy_gone or self.now - self.state.fresh_s > STALE_S

    # What goes out.

    def send(self, channel: Channel, body: Body, to: MemberId = NOBODY) -> None:
        """A message, with the header that is true now."""
        self.actions.append(self.letter(channel, body, to))

    def letter(self, channel: Channel, body: Body, to: MemberId = NOBODY) -> Send:
        """The same, for who keeps it."""
        self.seq += 1
        state = self.state
        tally = self.tallies.get(self.me, NOTHING)
        header = Header(
            sender=self.me,
            session=state.session,
            seq=self.seq,
            clock_s=self.now,
            flags=self._flags(channel),
            table_age_s=max(0.0, self.now - state.fresh_s),
            digest=tally.digest,
            count=tally.size,
            formats=self.settings.formats,
            newest_key=self.settings.keys[-1],
        )
        dialect = choose_dialect(self.settings, self.members.values(), self.now)
        return Send(channel, Message(header, body, to), dialect.key_id, dialect.format)

    def keep(self, sends: tuple[Send, ...], at_s: float) -> None:
        """Let heartbeats go out then, with that time in them."""
        later = (
            replace(send, message=replace(send.message, header=replace(send.message.header, clock_s=at_s)))
            for send in sends
        )
        self.actions.append(Keep(tuple(later), at_s))
        self.set(kept_s=at_s)

    def report(self, note: Note, key: Key | None = None, member: MemberId = NOBODY, detail: str = "") -> None:
        """Something for people."""
        self.actions.append(Report(note, key, member, detail))

    def _flags(self, channel: Channel) -> Flags:
        flags = Flags.DRAINING if self.state.draining else Flags.NONE
        flags |= Flags.RESTARTING if self.state.restarting else Flags.NONE
        # Whoever listens shares nothing, though the rule that notes it comes later in the step.
        shares = (name for name in self.state.sharing if channel in {name, NODE_NETWORK})
        if any(name in self.wires and self.now >= self.wires[name].listen_until_s for name in shares):
            flags |= Flags.SHARES
        return flags | (Flags.STALE if self.is_stale() else Flags.NONE)


def _mark(keys: Keys, key: Key, *, present: bool) -> set[Key]:
    """The keys with this one in or out; a step's first change copies them, as the state before shares them."""
    changed = keys if isinstance(keys, set) else set(keys)
    if present:
        changed.add(key)
    else:
        changed.discard(key)
    return changed
