"""Rule 1: whose message it is, and whether it is new. What comes through is a sign of life.

A start has a random session, which is accepted after one challenge; within it only rising numbers are, and words that
were overtaken on their way. No wall clock and no stored counter can then ban a node whose clock went back or whose disk
is new (F9).
"""

import hashlib

from msgspec.structs import replace

from proxy.l2.actions import Note
from proxy.l2.clocks import note_clock
from proxy.l2.draft import Draft
from proxy.l2.events import Received
from proxy.l2.guard import saw_frame, stood_still
from proxy.l2.messages import Answer, Beat, Challenge, Header
from proxy.l2.state import Member
from proxy.l2.types import NODE_NETWORK, MemberId
from proxy.l2.words import may_be_new


def admit(draft: Draft, event: Received) -> Member | None:
    """The sender as known after this message's header, or None if nothing of it may be believed."""
    header, channel = event.message.header, event.channel
    if header.sender == draft.me:
        if header.session != draft.base.session:
            draft.report(Note.SAME_NAME)
        return None
    if channel != NODE_NETWORK:
        if channel not in draft.wires:
            return None
        saw_frame(draft, draft.wires[channel])
    if event.message.to not in (0, draft.me):
        return None
    body = event.message.body
    if isinstance(body, Challenge):
        draft.send(channel, Answer(body.nonce, draft.settings.node), header.sender)
    member = draft.members.get(header.sender) or Member(header.sender)
    if header.session != member.session:
        if not isinstance(body, Answer) or not _proves(member, header, body):
            _challenge(draft, event, member)
            return None
        member = _accept(draft, member, header, body)
    elif header.seq <= member.seqs.get(channel, -1):
        return member if _is_late_news(draft, event, member) else None
    return _note_header(draft, event, member)


def _is_late_news(draft: Draft, event: Received, member: Member) -> bool:
    """Whether it was overtaken, by no more than an interval, and wasn't heard yet."""
    header, came_s = event.message.header, draft.now - event.age_s
    if member.clock is None or -member.clock.stood_s(header.clock_s, came_s) > draft.timing.interval_s:
        return False
    return may_be_new(member.words, header.seq, event.message.body)


def _proves(member: Member, header: Header, answer: Answer) -> bool:
    return member.asked == (header.session, answer.nonce) and answer.nonce != 0


def _challenge(draft: Draft, event: Received, member: Member) -> None:
    """Once an interval for each session; a session that is over isn't asked again."""
    header = event.message.header
    session = header.session
    asked_lately = draft.now - member.asked_s < draft.timing.interval_s and member.asked[0] == session
    if session in member.past or asked_lately:
        return
    nonce = _nonce(draft, member.id)
    # What it can read is believed at once: the challenge itself must be understood.
    draft.put_member(
        replace(
            member,
            asked=(session, nonce),
            asked_s=draft.now,
            formats=header.formats,
            newest_key=header.newest_key,
        )
    )
    draft.send(event.channel, Challenge(nonce), member.id)


def _nonce(draft: Draft, member: MemberId) -> int:
    """Never the same twice, and not to be guessed without this process's secret."""
    text = draft.base.secret + f"{member} {draft.seq}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") or 1


def _accept(draft: Draft, member: Member, header: Header, answer: Answer) -> Member:
    """A member that starts. It may have come back, so addresses without an owner wait for what it says (F15)."""
    past = member.past if member.session is None else member.past | {member.session}
    if member.session is None:
        draft.report(Note.MEMBER_JOINED, member=member.id, detail=answer.node)
    draft.set(joined_s=draft.now, beat_s=draft.now)
    draft.hurry()
    accepted = Member(
        id=member.id,
        node=answer.node,
        session=header.session,
        past=past,
        since_s=draft.now,
        paths={
            channel: replace(path, ages_s={}, names_me=False, shares=False) for channel, path in member.paths.items()
        },
    )
    draft.put_member(accepted)
    return accepted


def _note_header(draft: Draft, event: Received, member: Member) -> Member:
    header = event.message.header
    came_s = draft.now - event.age_s
    if member.clock is not None and isinstance(event.message.body, Beat):
        stood_s = member.clock.stood_s(header.clock_s, came_s)
        if stood_s > draft.detect_s / 2:
            stood_still(draft, Note.CLOCK_STOOD, stood_s)
    changed = replace(
        member,
        seqs={**member.seqs, event.channel: header.seq},
        clock=note_clock(member.clock, header.clock_s, came_s),
        word_s=came_s,
        flags=header.flags,
        table_age_s=header.table_age_s,
        formats=header.formats,
        newest_key=header.newest_key,
        digest=header.digest,
        count=header.count,
        left=False,
    )
    draft.put_member(changed)
    return changed
