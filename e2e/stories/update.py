"""The proxy itself is updated, node by node, while clients go on."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from e2e.controlplane.waiting import wait_for
from e2e.kind.config import Proxy
from e2e.stories.clients import PodClients
from e2e.stories.noticed import Told
from e2e.stories.shop import IMAGE, NEAR, SYSTEM, WEB, Shop, are_back, restarts
from e2e.stories.telling import Story, make_command

_LONG = "--timeout=300s"
_RESTARTED_S = 300.0
_NEXT = "closeby:next"


class Update(NamedTuple):
    """A way to update."""

    name: str
    begin: Callable[[Shop], object]
    lasting: Sequence[str] = (WEB, NEAR)  # Services whose servers stay


def restart(shop: Shop) -> None:
    """As it is."""
    shop.cluster.kubectl(SYSTEM, "rollout", "restart", _daemon_set(shop))


def restart_all(shop: Shop) -> None:
    """With the servers of web."""
    restart(shop)
    shop.cluster.kubectl("rollout", "restart", f"deployment/{WEB}")


def kill(shop: Shop) -> None:
    """Returns once the kubelet has restarted every one of them in place."""
    before = {pod["metadata"]["uid"]: restarts(pod) for pod in shop.proxy_pods()}
    for pod in shop.proxy_pods():
        shop.kill_container(pod)
    wait_for(lambda: are_back(shop.proxy_pods(), before), "every container is restarted", timeout_s=_RESTARTED_S)


def change(shop: Shop) -> None:
    """To another tag of the image, and a configuration with which closeby writes other rules."""
    tagged = f"docker.io/library/{_NEXT}"
    for node in shop.nodes:
        shop.cluster.on(node, "ctr", "--namespace=k8s.io", "images", "tag", f"docker.io/library/{IMAGE}", tagged)
    pod = json.loads(shop.cluster.kubectl(SYSTEM, "get", _daemon_set(shop), "-o", "json"))["spec"]["template"]["spec"]
    named = pod["volumes"][0]["configMap"]["name"]
    config = json.loads(shop.cluster.kubectl(SYSTEM, "get", "configmap", named, "-o", "json"))
    config["metadata"] = {"name": "closeby-next", "namespace": "kube-system"}
    config["data"]["config.conf"] += "nftables: {masqueradeAll: true}\n"
    shop.apply(config)
    changes = {"containers/0/image": _NEXT, "volumes/0/configMap/name": "closeby-next"}
    patch = [{"op": "replace", "path": f"/spec/template/spec/{at}", "value": to} for at, to in changes.items()]
    shop.cluster.kubectl(SYSTEM, "patch", _daemon_set(shop), "--type=json", f"--patch={json.dumps(patch)}")


RESTART = Update("rollout restart", restart)
WITH_SERVERS = Update("rollout restart, and web's servers rolled too", restart_all, (NEAR,))
KILL = Update("its containers are killed", kill)
CHANGE = Update("another image and another configuration", change)


def tell(shop: Shop) -> Iterator[Told]:
    """Every way, one after the other."""
    with shop.clients(shop.nodes) as clients:
        for update in (RESTART, WITH_SERVERS, KILL, *([CHANGE] if shop.proxy is Proxy.CLOSEBY else [])):
            with shop.steps(update.name):
                yield measure(shop, clients, update)


def measure(shop: Shop, clients: PodClients, update: Update) -> Told:
    """One update, from a second before to a second after."""
    groups = {"ClusterIPs and NodePorts": shop.everything(shop.workers)}
    with shop.asked(clients, groups, update.lasting) as asking:
        began = time.monotonic()
        update.begin(shop)
        shop.cluster.kubectl(SYSTEM, "rollout", "status", _daemon_set(shop), _LONG)
        shop.cluster.kubectl("rollout", "status", f"deployment/{WEB}", _LONG)
        took_s = time.monotonic() - began
        seen = asking.end()
    new = seen.new(began)
    return Told(shop.proxy, update.name, new, seen.lasting(lambda _: "all"), {"the update took": took_s})


def _daemon_set(shop: Shop) -> str:
    return f"daemonset/{shop.proxy}"


STORY = Story(
    "update",
    "Replace the proxy's pods node by node: restarted, restarted while servers are rolled too, killed, and (closeby) "
    "with another image and another configuration. Ten minutes.",
    tell,
)
main = make_command(STORY)
