"""EFFECT: client pods on chosen nodes of a kind cluster, whose namespaces are entered from this machine.

A client's programs run here, in the pod's network namespace: no exec through the API, so that an outage of the API
server or a node's restart costs no measurement. It takes a dockerd on this machine.
"""

import json
import subprocess
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from e2e.kind.cluster import Cluster
from e2e.world.hosts import Host
from e2e.world.netns import remove_namespaces, unique_prefix

_FOLDER = Path("/run/netns")
_READY = "--timeout=180s"
_FIRST_PORT = 1024
_PORTS = 65536 - _FIRST_PORT
_SLEEP = ["/usr/bin/python3.11", "-I", "-S", "-c", "import signal; signal.pause()"]


class PodClients:
    """A `Hosts` of pods named `client-<node>`, one on each node; used as a context manager, which removes them."""

    def __init__(self, cluster: Cluster, nodes: Iterable[str], *, image: str) -> None:
        self._cluster = cluster
        self._prefix = unique_prefix("pods")
        self._image = image
        self._nodes = {f"client-{node}": node for node in nodes}
        self._hosts: dict[str, Host] = {}
        self._ports: Counter[str] = Counter()

    @property
    def names(self) -> list[str]:
        """The clients' names, in the nodes' order."""
        return list(self._nodes)

    def node_of(self, name: str) -> str:
        """The node that a client is on."""
        return self._nodes[name]

    def host(self, name: str) -> Host:
        """As Hosts."""
        return self._hosts[name]

    def reserve_ports(self, host: str, number: int) -> int:
        """As Hosts; after 60,000 they come again."""
        first = self._ports[host]
        self._ports[host] += number
        return _FIRST_PORT + first % _PORTS

    def __enter__(self) -> Self:
        self._cluster.kubectl("apply", "-f", "-", text=json.dumps(render_clients(self._nodes, self._image)))
        try:
            for name, node in self._nodes.items():
                self._cluster.kubectl("wait", "--for=condition=Ready", f"pod/{name}", _READY)
                self._hosts[name] = self._attach(name, node)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        remove_namespaces(host.netns for host in self._hosts.values())
        self._hosts.clear()
        self._cluster.kubectl("delete", "pod", "--ignore-not-found", "--grace-period=0", "--wait=false", *self._nodes)

    def _attach(self, name: str, node: str) -> Host:
        """The pod's namespace under a name of this machine: the node's own, seen through the node's first process."""
        pod = json.loads(self._cluster.kubectl("get", "pod", name, "-o", "json"))
        sandbox = self._cluster.on(node, "crictl", "pods", "--quiet", "--state=Ready", f"--name=^{name}$").split()[0]
        inspected = json.loads(self._cluster.on(node, "crictl", "inspectp", sandbox))
        spaces = inspected["info"]["runtimeSpec"]["linux"]["namespaces"]
        named = next(space["path"] for space in spaces if space["type"] == "network")
        inside = self._cluster.on(node, "readlink", "--canonicalize", named).strip()  # /var/run would lead to ours
        init = self._cluster.docker.run("docker", "inspect", "--format={{.State.Pid}}", node).strip()
        netns = f"{self._prefix}{name}"
        (_FOLDER / netns).touch()
        source = f"/proc/{init}/root{inside}"
        subprocess.run(["mount", "--bind", source, str(_FOLDER / netns)], check=True, capture_output=True)
        addresses = [address["ip"] for address in pod["status"]["podIPs"]]
        ipv6 = next((ip for ip in addresses if ":" in ip), "")
        return Host(name, netns, next(ip for ip in addresses if ":" not in ip), ipv6)


def render_clients(nodes: dict[str, str], image: str) -> dict[str, object]:
    """Pods that only hold their namespaces open, each bound to its node whatever the node's taints. Pure.

    The image is closeby's, or another one that has its Python.
    """
    container = {"name": "client", "image": image, "imagePullPolicy": "Never", "command": _SLEEP}
    return {
        "apiVersion": "v1",
        "kind": "List",
        "items": [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "labels": {"story": "client"}},
                "spec": {
                    "nodeName": node,
                    "terminationGracePeriodSeconds": 0,
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [container],
                },
            }
            for name, node in nodes.items()
        ],
    }
