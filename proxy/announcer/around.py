"""What a proxy knows beyond what it serves: all Nodes, pools and advertisements, as its announcer is told of them.

No I/O. What isn't known says nothing: without Nodes every node is as good as another.
"""

from collections.abc import Iterable, Mapping

import msgspec

from endpointslice.types import Labels, NodeName, ServiceName
from proxy.addresses.decode import AdvertisementObject
from proxy.addresses.nodes import find_problems, is_excluded
from proxy.addresses.state import State, list_problems
from proxy.addresses.types import Advertisement, Kind, NodeState, Service
from proxy.announcer.reach import Advertising
from proxy.announcer.readiness import Readiness
from proxy.l2.candidates import NodeFacts, Reach


class Around(msgspec.Struct, frozen=True, omit_defaults=True):
    """For the announcer."""

    nodes: Mapping[NodeName, NodeFacts] = msgspec.field(default_factory=dict)
    whole: bool = False  # those are all Nodes that there are
    reaches: Mapping[str, Reach] = msgspec.field(default_factory=dict)  # by the names that addresses refer to
    problems: tuple[str, ...] = ()  # objects that are wrong, in one line each


NOTHING_KNOWN = Around()


class Surveyed(msgspec.Struct, frozen=True):
    """What the API has of it."""

    state: State = State()
    advertisements: Mapping[str, Advertisement] = {}  # the last good version of each

    @property
    def nodes(self) -> Mapping[str, NodeState]:
        """By name."""
        return self.state.of(Kind.NODE, NodeState)


def survey(before: Surveyed, state: State) -> Surveyed:
    """After a change; an advertisement that has become invalid keeps its last good version."""
    found = state.of(Kind.ADVERTISEMENT, AdvertisementObject)
    good = {
        name: one.advertisement for name, one in found.items() if one.advertisement is not None and not one.problems
    }
    held = {name: one for name, one in before.advertisements.items() if name in found}
    return Surveyed(state, {**held, **good})


def make_advertising(surveyed: Surveyed) -> Advertising:
    """What answers for addresses."""
    services = surveyed.state.of(Kind.SERVICE, Service)
    labels: dict[ServiceName, Labels] = {one.name: one.labels for one in services.values()}
    return Advertising(surveyed.state.accepted.pools, surveyed.advertisements, labels)


def describe_around(
    surveyed: Surveyed, readiness: Readiness, advertising: Advertising, reaches: Iterable[str]
) -> Around:
    """With the reaches of these names."""
    nodes = surveyed.nodes
    facts = {NodeName(name): _facts(node, readiness) for name, node in nodes.items()}
    for kind, name in surveyed.state.unreadable:
        if kind is Kind.NODE:  # it is there; nothing else is known, unless an earlier version could be read
            facts.setdefault(NodeName(name), NodeFacts(NodeName(name)))
    return Around(
        nodes=dict(sorted(facts.items())),
        whole=bool(nodes),
        reaches={name: advertising.spell_reach(name, nodes.values()) for name in sorted(set(reaches))},
        problems=show_problems(surveyed),
    )


def _facts(node: NodeState, readiness: Readiness) -> NodeFacts:
    return NodeFacts(
        node.name,
        ready=node.name not in readiness.lost,
        ready_now=node.ready,
        network_available=node.network_available,
        excluded=is_excluded(node),
        out_of_service=node.out_of_service,
        cordoned=node.cordoned,
        leaving=node.leaving,
        drained=node.drained,
        shutting_down=node.shutting_down,
    )


def show_problems(surveyed: Surveyed) -> tuple[str, ...]:
    """Objects that are wrong, in one line each."""
    found = {f"{kind} {name}": what for (kind, name), what in list_problems(surveyed.state).items()}
    found |= {f"{Kind.NODE} {name}": what for name, what in find_problems(surveyed.nodes.values()).items()}
    for (kind, name), why in surveyed.state.unreadable.items():
        held = surveyed.state.objects.get(kind, {}).get(name)
        found[f"{kind} {name}"] = f"unreadable: {why}" + ("; its last readable version stands" if held else "")
    return tuple(f"{name}: {what}" for name, what in sorted(found.items()))
