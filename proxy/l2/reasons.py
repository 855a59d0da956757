"""Why a candidate may not own an address now, as this node sees it. Read-only."""

from proxy.l2.candidates import Candidate, Why
from proxy.l2.draft import Draft
from proxy.l2.evidence import is_in_use
from proxy.l2.hearing import channel_of, is_listening, is_up
from proxy.l2.messages import Flags
from proxy.l2.state import Hold, Wire
from proxy.l2.types import Key, member_id


def find_why(draft: Draft, key: Key, candidate: Candidate) -> Why:
    """The first reason that stands in the way; ELIGIBLE if none does."""
    wire = draft.wires.get(key.wire)
    if candidate.why is not Why.ELIGIBLE:
        return candidate.why
    member = member_id(candidate.node)
    if member == draft.me:
        return _my_why(draft, wire, draft.hold(key))
    other = draft.members.get(member)
    if other is None or wire is None:
        return Why.SILENT
    if other.left:
        return Why.LEFT
    if not is_up(draft, other, channel_of(wire)):
        return Why.SILENT
    return Why.DRAINING if Flags.DRAINING in other.flags else Why.ELIGIBLE


def _my_why(draft: Draft, wire: Wire | None, hold: Hold) -> Why:
    why = draft.fit(hold.key)
    if why is not Why.ELIGIBLE or wire is None:
        return why
    if is_listening(draft, wire):
        return Why.LISTENING
    if wire.suspended:
        return Why.SUSPENDED
    if is_in_use(hold, draft.now):
        return Why.ADDRESS_IN_USE
    return Why.BARRED if hold.barred_s > draft.now else Why.ELIGIBLE
