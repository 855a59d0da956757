"""Who is heard, by whom, and whether that is a majority. Read-only.

Members count as they were heard, never as Node objects say: a node without the daemon stops nobody (F5).
"""

from proxy.l2.draft import Draft
from proxy.l2.messages import Flags
from proxy.l2.state import Member, Path, Wire
from proxy.l2.types import LATER, NODE_NETWORK, Channel, MemberId

FRESH_INTERVALS = 2


def channel_of(wire: Wire) -> Channel:
    """Where members of the wire are judged: on the wire itself, unless none was ever heard there (F13)."""
    return NODE_NETWORK if wire.blind else wire.name


def death_s(draft: Draft, member: Member) -> float:
    """How long the member may be silent."""
    return draft.timing.restart_s if Flags.RESTARTING in member.flags else draft.detect_s


def is_up(draft: Draft, member: Member, channel: Channel) -> bool:
    """Whether its messages come in."""
    return not member.left and draft.now - member.path(channel).heard_s < death_s(draft, member)


def is_heard(draft: Draft, path: Path) -> bool:
    """The same for a path alone, by the plain time of detection."""
    return draft.now - path.heard_s < draft.detect_s


def two_way(draft: Draft, wire: Wire) -> list[Member]:
    """The members that are heard on the wire and say that they hear us (F16)."""
    channel = channel_of(wire)
    found = []
    for member in draft.members.values():
        path = member.paths.get(channel)
        if path is not None and path.names_me and not member.left and draft.now - path.heard_s < draft.detect_s:
            found.append(member)
    return found


def all_are_heard(draft: Draft) -> bool:
    """Whether every member that lives hears us on each wire that both have, and we it: the node network judges none."""
    for member in draft.members.values():
        if member.left or not is_heard(draft, member.path(NODE_NETWORK)):
            continue
        for name in member.wires:
            path = member.paths.get(name)
            if name in draft.wires and (path is None or path.silent or not path.names_me):
                return False
    return not any(wire.blind for wire in draft.wires.values())


def roster(draft: Draft, wire: Wire) -> list[Member]:
    """The others that count on the wire, dead ones too."""
    return [draft.members[member] for member in wire.roster if member in draft.members]


def roster_size(draft: Draft, wire: Wire) -> int:
    """How many members there are, ourselves included: the most that anybody who is heard counts.

    So one that has just come knows that there are more than it has heard.
    """
    channel = channel_of(wire)
    return max([1 + len(wire.roster), *(member.path(channel).roster for member in two_way(draft, wire))])


def has_majority(draft: Draft, wire: Wire) -> bool:
    """Whether more than half of the roster hears us, and we them."""
    return (1 + len(two_way(draft, wire))) * 2 > roster_size(draft, wire)


def confirms(draft: Draft, wire: Wire, suspect: MemberId) -> bool:
    """Whether a majority says that the suspect is silent, too, in what it sent last.

    A node that is cut off loses its peers one by one; until the last is gone it would count those whose own news are
    old (F2). So a peer counts only if its last heartbeat names us and tells half a detection time of silence. One
    that doesn't know the suspect counts once it has been heard for a whole detection time.
    """
    channel = channel_of(wire)
    votes = 1
    for member in two_way(draft, wire):
        path = member.path(channel)
        if member.id == suspect or draft.now - path.beat_s >= draft.detect_s:
            continue
        age = path.ages_s.get(suspect)
        if age is None:
            votes += draft.now - member.since_s >= draft.detect_s
        else:
            votes += age >= draft.detect_s / 2
    return votes * 2 > roster_size(draft, wire)


def is_fresh_majority(draft: Draft, wire: Wire) -> bool:
    """A majority that was heard within two intervals: for an address that nobody owns."""
    channel = channel_of(wire)
    limit = FRESH_INTERVALS * draft.timing.interval_s
    near = [member for member in two_way(draft, wire) if draft.now - member.path(channel).heard_s <= limit]
    return (1 + len(near)) * 2 > roster_size(draft, wire)


def is_listening(draft: Draft, wire: Wire) -> bool:
    """Whether we only listen there: started, late, or back."""
    return draft.now < wire.listen_until_s


def speaks(draft: Draft, wire: Wire | None) -> bool:
    """Whether we may answer, take and announce on the wire at all."""
    return wire is not None and wire.carrier and not wire.suspended and draft.now >= wire.listen_until_s


def majority_back(draft: Draft, wire: Wire) -> bool:
    """Whether a majority of several has been there for the time of detection."""
    return bool(wire.roster) and wire.majority_s != LATER and draft.now - wire.majority_s >= draft.detect_s
