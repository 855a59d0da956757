"""What the demo's cluster holds, as values: Services, their endpoints, DaemonSets, and the edits that change them."""

from enum import StrEnum
from typing import Any

import msgspec

from e2e.world.hosts import PodSpec


class Hints(StrEnum):
    """What the control plane writes into a Service's slices."""

    NONE = "none"  # slices written by hand
    ZONE = "zone"  # as for PreferClose and PreferSameZone
    NODE = "node"  # as for PreferSameNode: the zone as well


class Port(msgspec.Struct, frozen=True):
    """A Service port; every one of them is named by its protocol."""

    protocol: str  # "TCP" or "UDP"
    port: int
    target_port: int
    node_port: int = 0  # 0: none


class Member(msgspec.Struct, frozen=True):
    """A pod behind a Service."""

    pod: str
    ready: bool = True
    serving: bool = True
    terminating: bool = False


class Offer(msgspec.Struct, frozen=True):
    """A Service with its endpoints."""

    name: str  # "namespace/name"
    shows: str  # what it is in the demo for, as the title of its table says it
    cluster_ips: tuple[str, ...]
    ports: tuple[Port, ...]
    members: tuple[Member, ...] = ()
    hints: Hints = Hints.NONE
    spec: dict[str, Any] = {}  # what else stands in the Service's spec
    load_balancer_ips: tuple[str, ...] = ()
    app: str = ""  # selector and pod label; "": the Service's own name


class DaemonSet(msgspec.Struct, frozen=True):
    """A DaemonSet with its pods."""

    name: str  # "namespace/name"
    pods: tuple[str, ...]


class Cast(msgspec.Struct, frozen=True):
    """Everything that the folder of manifests says besides the Nodes."""

    offers: tuple[Offer, ...]
    daemon_sets: tuple[DaemonSet, ...]

    def offer(self, name: str) -> Offer:
        """The Service of that name. KeyError if there is none."""
        return {offer.name: offer for offer in self.offers}[name]


def replace_offer(cast: Cast, offer: Offer) -> Cast:
    """The cast with this Service in the place of its namesake."""
    return msgspec.structs.replace(cast, offers=tuple(offer if old.name == offer.name else old for old in cast.offers))


def mark_pods(cast: Cast, pods: frozenset[str], *, ready: bool, serving: bool, terminating: bool) -> Cast:
    """The pods' conditions in every Service that they are behind."""

    def mark(member: Member) -> Member:
        return Member(member.pod, ready, serving, terminating) if member.pod in pods else member

    offers = (msgspec.structs.replace(o, members=tuple(mark(m) for m in o.members)) for o in cast.offers)
    return msgspec.structs.replace(cast, offers=tuple(offers))


def move_pod(cast: Cast, gone: str, came: str) -> Cast:
    """A ready pod in the place of another, wherever that one was."""

    def move(pods: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(came if pod == gone else pod for pod in pods)

    offers = (
        msgspec.structs.replace(o, members=tuple(Member(came) if m.pod == gone else m for m in o.members))
        for o in cast.offers
    )
    sets = (msgspec.structs.replace(d, pods=move(d.pods)) for d in cast.daemon_sets)
    return Cast(tuple(offers), tuple(sets))


def remove_pods(cast: Cast, pods: frozenset[str]) -> Cast:
    """The pods behind no Service any more."""
    offers = (msgspec.structs.replace(o, members=tuple(m for m in o.members if m.pod not in pods)) for o in cast.offers)
    return msgspec.structs.replace(cast, offers=tuple(offers))


def edit_spec(cast: Cast, service: str, **fields: str | None) -> Cast:
    """The Service's spec with these fields; None takes one out."""
    offer = cast.offer(service)
    spec = {key: value for key, value in {**offer.spec, **fields}.items() if value is not None}
    return replace_offer(cast, msgspec.structs.replace(offer, spec=spec))


def client_pod(node: str) -> PodSpec:
    """The node's pod that only asks."""
    return PodSpec(f"client-{node.replace('-', '')}", node, ())
