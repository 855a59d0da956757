"""The changes of the demo, in their order: what is done to the cast, and which traffic runs meanwhile."""

from collections.abc import Callable
from typing import NamedTuple

from e2e.demo import cast as edits
from e2e.demo.cast import Cast
from e2e.demo.folder import Write, edit_file, replace_file
from e2e.demo.shop import VIP_AT_EAST_1, VIP_AT_WEST_2, pod_spec
from e2e.demo.visits import Visit, visit_from_node, visit_vip
from e2e.world.cluster import World
from e2e.world.hosts import PodSpec

Edit = Callable[[Cast], Cast]


class Act(NamedTuple):
    """One change."""

    title: str
    edit: Edit
    streams: tuple[tuple[str, str], ...]  # Service, and the node whose client asks; or "outside:NODE"
    write: Write = replace_file
    brings: tuple[PodSpec, ...] = ()  # started before the write
    takes: tuple[str, ...] = ()  # ended when the traffic has moved


def list_streams(act: Act, cast: Cast, world: World) -> list[Visit]:
    """The act's traffic, each stream at one address."""
    visits = []
    for service, asker in act.streams:
        offer = cast.offer(service)
        outside = asker.removeprefix("outside:")
        if outside != asker:
            visits.append(visit_vip(offer, outside, VIP_AT_EAST_1 if outside == "east-1" else VIP_AT_WEST_2))
        else:
            visits.append(next(iter(visit_from_node(offer, world, asker))))
    return visits


def _mark(*pods: str, ready: bool = False, serving: bool = False, terminating: bool = False) -> Edit:
    return lambda cast: edits.mark_pods(cast, frozenset(pods), ready=ready, serving=serving, terminating=terminating)


def _mark_zone(zone: str, *, ready: bool) -> Edit:
    """Every pod of the zone, by its name: its endpoints all go unready, or come back."""

    def edit(cast: Cast) -> Cast:
        pods = {member.pod for offer in cast.offers for member in offer.members if f"-{zone}" in member.pod}
        return edits.mark_pods(cast, frozenset(pods), ready=ready, serving=ready, terminating=False)

    return edit


def _drop_and_move(cast: Cast) -> Cast:
    return edits.move_pod(edits.remove_pods(cast, frozenset({"web-east1"})), "logs-east2", "logs-west2")


ACTS = (
    Act(
        "The dns pod of east-1 goes unready",
        _mark("dns-east1"),
        (("kube-system/dns", "east-1"), ("kube-system/dns", "west-1")),
    ),
    Act(
        ".. and is ready again",
        _mark("dns-east1", ready=True, serving=True),
        (("kube-system/dns", "east-1"), ("kube-system/dns", "west-1")),
    ),
    Act(
        "Two pods drain, terminating but still serving: web's on east-1, and east-2's DaemonSet pod of logs and agent",
        _mark("web-east1", "logs-east2", serving=True, terminating=True),
        (("shop/web", "east-1"), ("infra/logs", "east-2"), ("infra/agent", "east-2")),
    ),
    Act(
        "The DaemonSet's pod has moved from east-2 to west-2",
        _drop_and_move,
        (("infra/logs", "west-2"), ("infra/agent", "west-2"), ("infra/agent", "east-2"), ("infra/logs", "east-2")),
        brings=(pod_spec("logs", "west-2"),),
        takes=("logs-east2", "web-east1"),
    ),
    Act(
        "Zone west dies: every endpoint of it goes unready",
        _mark_zone("west", ready=False),
        (("shop/web", "west-1"), ("shop/cart", "west-2"), ("shop/web", "east-2")),
    ),
    Act(
        ".. and comes back",
        _mark_zone("west", ready=True),
        (("shop/web", "west-1"), ("shop/cart", "west-2"), ("shop/web", "east-2")),
    ),
    Act(
        "Somebody edits shop-front.yaml by hand: externalTrafficPolicy Local becomes Cluster",
        lambda cast: edits.edit_spec(cast, "shop/front", externalTrafficPolicy="Cluster"),
        (("shop/front", "outside:east-1"), ("shop/front", "outside:west-2"), ("shop/front", "west-1")),
        write=edit_file,
    ),
    Act(
        "Somebody edits shop-cart.yaml by hand: trafficDistribution is taken out",
        lambda cast: edits.edit_spec(cast, "shop/cart", trafficDistribution=None),
        (("shop/cart", "east-1"), ("shop/cart", "west-1")),
        write=edit_file,
    ),
)
