"""The one place that every world lives in: nodes, and which addresses are answered where. The same for both proxies."""

from typing import NamedTuple

NODE = "node-1"  # the proxies' own
CLIENTS_NODE = "node-2"  # with the remote client
SERVERS_NODE = "node-3"  # it answers on all remote endpoints
NODES = (NODE, CLIENTS_NODE, SERVERS_NODE, "node-4", "node-5")  # the last two exist in slices only
ZONES = ("za", "zb", "zc")
TARGET_PORTS = (8080, 8081)  # what every server listens on, TCP and UDP
WRONG_PORT = 9999  # what nothing is at
OTHER_PROXY = "service.kubernetes.io/service-proxy-name"  # on a Service it hides it; on a slice it does nothing
HEADLESS = "service.kubernetes.io/headless"  # the other way round
HIDING_LABELS = (OTHER_PROXY, HEADLESS)

NAMESPACE = "differential"
MARKER = "marker"
ZONE_MARKER = "zone-marker"

# The clients: two pods of the node that are endpoints, too, the node itself, a pod elsewhere, and one outside.
LOCAL_PODS = ("pod-a", "pod-b")
SERVER_POD = "pod-c"  # on the same node, with all other local endpoints; a client there would meet itself on loopback
REMOTE_POD = "remote"
OUTSIDE = "outside"
CLIENTS = (*LOCAL_PODS, NODE, REMOTE_POD, OUTSIDE)

NODE_IPS = ("172.30.0.11", "fd00:172:30::b")
POD_IPS = (("10.244.1.2", "fd00:10:244:1::2"), ("10.244.1.3", "fd00:10:244:1::3"))
GATEWAY_IPS = ("10.244.1.1", "fd00:10:244:1::1")  # addresses of the node that its Node object doesn't name
LOCAL_RANGES = ("10.244.1.128/25", "fd00:10:244:1::80/121")  # pod-c has them all
REMOTE_RANGES = ("10.244.3.0/24", "fd00:10:244:3::/64")
VIP_RANGES = ("172.31.0.0/24", "fd00:172:31::/64")  # external and load-balancer addresses
SERVICE_RANGES = ("10.96.0.0/16", "fd00:10:96::/112")

# Who is in them: the node's pods, one of these, all pods, the LAN with the node, the outside client, nobody.
SOURCE_RANGES = (
    ("10.244.1.0/24", "fd00:10:244:1::/64"),
    ("10.244.1.2/32", "fd00:10:244:1::2/128"),
    ("10.244.0.0/16", "fd00:10:244::/56"),
    ("172.30.0.0/24", "fd00:172:30::/64"),
    ("172.30.0.200/32", "fd00:172:30::c8/128"),
    ("192.0.2.0/24", "2001:db8::/32"),
)


class Endpoints(NamedTuple):
    """Addresses of one family to choose endpoints from."""

    local: tuple[str, ...]
    remote: tuple[str, ...]


def endpoint_pool(*, ipv6: bool) -> Endpoints:
    """Every address that a server answers on; the first two local ones are the client pods, the last is the node."""
    family = int(ipv6)
    extra = [f"fd00:10:244:1::{number:x}" if ipv6 else f"10.244.1.{number}" for number in range(130, 134)]
    remote = [f"fd00:10:244:3::{number:x}" if ipv6 else f"10.244.3.{number}" for number in range(130, 140)]
    return Endpoints((*(pair[family] for pair in POD_IPS), *extra, NODE_IPS[family]), tuple(remote))


def cluster_ip(number: int, *, ipv6: bool) -> str:
    """ClusterIP `number`, 0 to 2,000."""
    return f"fd00:10:96::{0x1000 + number:x}" if ipv6 else f"10.96.{16 + number // 250}.{1 + number % 250}"


def vip(number: int, *, ipv6: bool) -> str:
    """External or load-balancer address `number`, 0 to 200."""
    return f"fd00:172:31::{1 + number:x}" if ipv6 else f"172.31.0.{1 + number}"
