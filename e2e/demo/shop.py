"""The demo's cluster: two zones, four nodes, and one Service for each thing that closeby promises.

A pod is named by its app and node: web-east1 is web's pod on east-1. (A DaemonSet's pods end in five characters.)
"""

from e2e.demo.cast import Cast, DaemonSet, Hints, Member, Offer, Port
from e2e.world.hosts import NodeSpec, PodSpec

NODES = (NodeSpec("east-1", "east"), NodeSpec("east-2", "east"), NodeSpec("west-1", "west"), NodeSpec("west-2", "west"))
EVERYWHERE = tuple(node.name for node in NODES)
VIP_AT_EAST_1 = "203.0.113.80"  # the outside client reaches it through east-1, which has an endpoint
VIP_AT_WEST_2 = "203.0.113.81"  # through west-2, which has none

_HTTP = (Port("TCP", 80, 8080),)
_DNS_IPS = ("10.96.0.10", "fd00:10:96::a")
_WEB_IPS = ("10.96.0.20", "fd00:10:96::14")


def pod_on(app: str, node: str) -> str:
    """Name of the app's pod on the node."""
    return f"{app}-{node.replace('-', '')}"


def _members(app: str, *nodes: str) -> tuple[Member, ...]:
    return tuple(Member(pod_on(app, node)) for node in nodes)


_APPS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {  # where each app's pods run, and what they listen on
    "dns": (EVERYWHERE, ("tcp:53", "udp:53")),
    "web": (EVERYWHERE, ("tcp:8080",)),
    "cart": (("east-1", "west-1", "west-2"), ("tcp:8080",)),
    "cache": (("east-1", "east-2", "west-1"), ("tcp:8080",)),
    "logs": (("east-1", "east-2", "west-1"), ("tcp:8080", "udp:514")),
    "front": (("east-1", "west-1"), ("tcp:8080",)),
}


def pod_spec(app: str, node: str) -> PodSpec:
    """The app's pod on the node."""
    return PodSpec(pod_on(app, node), node, _APPS[app][1])


PODS = tuple(pod_spec(app, node) for app, (nodes, _) in _APPS.items() for node in nodes)


def _behind(app: str) -> tuple[Member, ...]:
    return _members(app, *_APPS[app][0])


CAST = Cast(
    offers=(
        Offer(
            "kube-system/dns",
            "PreferClose, one DaemonSet pod on every node: each node asks its own",
            _DNS_IPS,
            (Port("UDP", 53, 53), Port("TCP", 53, 53)),
            _behind("dns"),
            Hints.ZONE,
            {"trafficDistribution": "PreferClose"},
        ),
        Offer(
            "shop/web",
            "PreferClose, a Deployment with the control plane's zone hints",
            _WEB_IPS,
            _HTTP,
            _behind("web"),
            Hints.ZONE,
            {"trafficDistribution": "PreferClose"},
        ),
        Offer(
            "shop/cart",
            "PreferClose, slices written by hand, without hints: the endpoints' own zones",
            ("10.96.0.30",),
            _HTTP,
            _behind("cart"),
            Hints.NONE,
            {"trafficDistribution": "PreferClose"},
        ),
        Offer(
            "shop/cache",
            "PreferSameNode; west-2 has no pod of it",
            ("10.96.0.40",),
            _HTTP,
            _behind("cache"),
            Hints.NODE,
            {"trafficDistribution": "PreferSameNode"},
        ),
        Offer(
            "infra/logs",
            "PreferClose, a DaemonSet meant for three of the four nodes",
            ("10.96.0.50",),
            (Port("UDP", 514, 514),),
            _behind("logs"),
            Hints.ZONE,
            {"trafficDistribution": "PreferClose"},
        ),
        Offer(
            "infra/agent",
            "internalTrafficPolicy Local, the same pods as logs: west-2 has none, so drop",
            ("10.96.0.51",),
            (Port("TCP", 9090, 8080),),
            _behind("logs"),
            Hints.NONE,
            {"internalTrafficPolicy": "Local"},
            app="logs",
        ),
        Offer(
            "shop/front",
            "LoadBalancer, externalTrafficPolicy Local: the outside client's address is kept",
            ("10.96.0.60",),
            _HTTP,
            _behind("front"),
            Hints.NONE,
            {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "allocateLoadBalancerNodePorts": False},
            (VIP_AT_EAST_1, VIP_AT_WEST_2),
        ),
        Offer(
            "shop/admin",
            "NodePort 30080 on every node, externalTrafficPolicy Cluster: masqueraded",
            ("10.96.0.70", "fd00:10:96::46"),
            (Port("TCP", 80, 8080, 30080),),
            _behind("web"),
            Hints.NONE,
            {"type": "NodePort", "externalTrafficPolicy": "Cluster"},
            app="web",
        ),
        Offer("shop/later", "no endpoints yet: refused, not left hanging", ("10.96.0.80",), _HTTP),
    ),
    daemon_sets=(
        DaemonSet("kube-system/dns", tuple(pod_on("dns", node) for node in _APPS["dns"][0])),
        DaemonSet("infra/logs", tuple(pod_on("logs", node) for node in _APPS["logs"][0])),
    ),
)
