"""The values that addresses are decided from, once the API's objects are decoded and checked. Frozen, no I/O."""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

import msgspec

from endpointslice.types import IP, Family, Labels, NodeName, ServiceName


class Kind(StrEnum):
    """The kinds of object that the controller reads."""

    SERVICE = "Service"
    NAMESPACE = "Namespace"
    NODE = "Node"
    POOL = "IPAddressPool"
    ADVERTISEMENT = "L2Advertisement"
    L2_STATUS = "ServiceL2Status"  # of closeby.dev, as nodes write it


class Operator(StrEnum):
    """Of a LabelSelector's requirement (meta/v1)."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


class Requirement(msgspec.Struct, frozen=True):
    """One term of a LabelSelector; its matchLabels are IN with one value."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()


Selector = tuple[Requirement, ...]  # all must hold; () matches everything, as in Kubernetes


class Range(msgspec.Struct, frozen=True, gc=False):
    """Addresses of one family from the first to the last, both included, as numbers."""

    family: Family
    first: int
    last: int


class Pool(msgspec.Struct, frozen=True):
    """A valid IPAddressPool."""

    name: str
    ranges: tuple[Range, ...]  # in the order of spec.addresses, disjoint
    auto_assign: bool = True
    avoid_buggy_ips: bool = False
    priority: int = 0  # the lowest first, 0 last
    namespaces: frozenset[str] | None = None  # None: the pool names none
    namespace_selectors: tuple[Selector, ...] | None = None
    service_selectors: tuple[Selector, ...] | None = None
    labels: Labels = frozenset()
    created: str = ""  # creationTimestamp, sorts as text

    @property
    def is_pinned(self) -> bool:
        """Whether it is for some namespaces or Services only."""
        parts = (self.namespaces, self.namespace_selectors, self.service_selectors)
        return any(part is not None for part in parts)


class Preference(msgspec.Struct, frozen=True):
    """One of an advertisement's preferredNodeSelectors."""

    weight: int  # 1..100
    nodes: Selector


class Advertisement(msgspec.Struct, frozen=True):
    """A valid L2Advertisement; an empty tuple or set is "all"."""

    name: str
    pools: frozenset[str] = frozenset()
    pool_selectors: tuple[Selector, ...] = ()
    node_selectors: tuple[Selector, ...] = ()
    preferences: tuple[Preference, ...] = ()
    interfaces: frozenset[str] = frozenset()
    service_selectors: tuple[Selector, ...] = ()
    spreads: bool = False  # several nodes answer for one address, each some clients (experimental)


class Namespace(msgspec.Struct, frozen=True):
    """A Namespace's labels."""

    name: str
    labels: Labels = frozenset()


class Node(msgspec.Struct, frozen=True):
    """A Node's own addresses, which no Service may have."""

    name: NodeName
    addresses: frozenset[IP] = frozenset()


class NodeState(msgspec.Struct, frozen=True):
    """What a Node says that decides whether load-balancer addresses may be announced from it."""

    name: NodeName
    labels: Labels = frozenset()
    ready: bool = True  # condition Ready; no conditions at all: True
    network_available: bool = True
    out_of_service: bool = False
    cordoned: bool = False
    leaving: bool = False  # being deleted, or the cluster autoscaler says so
    drained: bool = False  # by annotation
    shutting_down: bool = False
    problems: tuple["Problem", ...] = ()


class DualStack(StrEnum):
    """spec.ipFamilyPolicy."""

    SINGLE = "SingleStack"
    PREFER = "PreferDualStack"
    REQUIRE = "RequireDualStack"


class Condition(msgspec.Struct, frozen=True):
    """A metav1.Condition, as far as it says something."""

    status: str  # "True" or "False"
    reason: str
    message: str = ""
    since: str = ""  # lastTransitionTime as written; "": not written yet


class Service(msgspec.Struct, frozen=True, gc=False):
    """A Service, as far as its load-balancer addresses depend on it. The API took it, so it is what it says."""

    name: ServiceName
    uid: str = ""
    version: str = ""  # metadata.resourceVersion
    created: str = ""
    wants: bool = True  # type LoadBalancer
    load_balancer_class: str | None = None
    families: tuple[Family, ...] = (Family.IPV4,)  # of spec.clusterIPs, the primary one first; (): it has none
    dual_stack: DualStack = DualStack.SINGLE
    backends: str = ""  # "" under externalTrafficPolicy Cluster, the selector's text under Local
    ports: frozenset[tuple[str, int]] = frozenset()  # protocol and port
    labels: Labels = frozenset()
    annotations: Mapping[str, str] = {}  # those that say something of addresses
    load_balancer_ip: str = ""  # spec.loadBalancerIP as written
    held: tuple[IP, ...] = ()  # of status.loadBalancer.ingress
    granted: Condition | None = None  # our condition in its status
    conflict: Condition | None = None  # and the one that tells of foreign hosts

    @property
    def namespace(self) -> str:
        """The part before the slash."""
        return self.name.partition("/")[0]


class Conflicts(msgspec.Struct, frozen=True):
    """What one node tells of hosts that are no nodes and answer for a Service's addresses."""

    service: ServiceName
    strangers: tuple[tuple[str, str], ...] = ()  # address and MAC


class PoolStatus(NamedTuple):
    """IPAddressPool.status of the published schema."""

    assigned_ipv4: int = 0
    assigned_ipv6: int = 0
    available_ipv4: int = 0
    available_ipv6: int = 0


class Problem(NamedTuple):
    """Why an object, or the use of one beside others, is refused."""

    field: str  # "spec.addresses[1]"; "": the object as a whole
    what: str

    def __str__(self) -> str:
        return f"{self.field}: {self.what}" if self.field else self.what
