"""A worker restarts (`docker restart`), and clients on the other nodes go on."""

import time
from collections.abc import Iterator
from typing import Any

from e2e.controlplane.waiting import wait_for
from e2e.stories.noticed import Told
from e2e.stories.shop import NEAR, WEB, Frontend, Shop, are_back, cluster_ip_targets, node_port_targets, restarts
from e2e.stories.telling import Story, make_command

_BACK_S = 300.0
_AFTER_S = 10.0
_ITS_PORTS = "NodePorts at that node"
_ITS_SERVERS = "servers on that node"


def tell(shop: Shop) -> Iterator[Told]:
    """The last worker restarts."""
    node = shop.workers[-1]
    staying = [name for name in shop.nodes if name != node]
    web, near = shop.frontend(WEB), shop.frontend(NEAR)
    groups = {
        "a Service with servers there, too": cluster_ip_targets(web),
        "a Service without": cluster_ip_targets(near) + node_port_targets(near, shop.nodes[shop.workers[0]].addresses),
        _ITS_PORTS: node_port_targets(near, shop.nodes[node].addresses),
    }
    before = {pod["metadata"]["uid"]: restarts(pod) for pod in _its_pods(shop, node)}
    with shop.clients(staying) as clients, shop.asked(clients, groups) as asking, shop.steps(f"{node} restarts"):
        began = time.monotonic()
        shop.cluster.docker.run("docker", "restart", node)
        times = {"docker restart took": time.monotonic() - began}
        wait_for(lambda: asks(shop, node, near), f"{node} reaches a ClusterIP", timeout_s=_BACK_S)
        times["the node reaches ClusterIPs after"] = time.monotonic() - began
        wait_for(
            lambda: are_back(_its_pods(shop, node), before), f"the pods of {node} are ready again", timeout_s=_BACK_S
        )
        times["its pods are ready again after"] = time.monotonic() - began
        time.sleep(_AFTER_S)
        seen = asking.end()
    lasting = seen.lasting(lambda server: _ITS_SERVERS if server.endswith(f"@{node}") else "other servers")
    doomed = (next(iter(groups)), _ITS_PORTS, _ITS_SERVERS)
    yield Told(shop.proxy, "a node restarts", seen.new(began), lasting, times, doomed)


def asks(shop: Shop, node: str, front: Frontend) -> bool:
    """Whether the node itself is answered at both ClusterIPs."""
    urls = f"http://{front.ipv4}/", f"http://[{front.ipv6}]/"
    curl = ("curl", "--silent", "--output", "/dev/null", "--max-time", "3")
    return all(shop.cluster.docker.works("docker", "exec", node, *curl, url) for url in urls)


def _its_pods(shop: Shop, node: str) -> list[dict[str, Any]]:
    """Servers there, and the proxy."""
    on_node = f"--field-selector=spec.nodeName={node}"
    return [*shop.pods(f"app={WEB}", on_node), *shop.proxy_pods(on_node)]


STORY = Story(
    "restart",
    "Restart a worker while clients on the other nodes ask two Services, and NodePorts at that worker. "
    "Five minutes with each proxy.",
    tell,
)
main = make_command(STORY)
