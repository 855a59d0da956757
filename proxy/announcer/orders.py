"""What Nodes order an announcer: to drain, to take part again, to forget a member; and a person, to move. No I/O."""

from collections.abc import Iterator

from endpointslice.types import IP, NodeName
from proxy.announcer.around import Around
from proxy.l2.events import DrainAsked, DrainEnded, MemberDeleted, MoveAsked
from proxy.l2.state import State
from proxy.l2.types import DrainCause, member_id

Order = DrainAsked | DrainEnded | MemberDeleted


def read_orders(state: State, around: Around) -> Iterator[Order]:
    """What isn't carried out yet. A node of which nothing is known stays as it is."""
    facts = around.nodes.get(state.settings.node)
    if facts is None:
        return
    for cause, wanted in ((DrainCause.ANNOTATION, facts.drained), (DrainCause.SHUTDOWN, facts.shutting_down)):
        if wanted != (cause in state.drains):
            yield DrainAsked(cause) if wanted else DrainEnded(cause)
    if around.whole:
        known = {member_id(node) for node in around.nodes}
        yield from (MemberDeleted(one.id) for one in state.members.values() if one.id not in known and not one.left)


def order_move(state: State, vip: IP, to: NodeName) -> Iterator[MoveAsked]:
    """Of the address, on each wire on which it is ours."""
    yield from (MoveAsked(key, member_id(to)) for key in sorted(state.mine) if key.vip == vip)
