"""EFFECT: one story's Kubernetes namespace: what a kubelet would do for its pods is done here, in the world."""

from collections import Counter
from collections.abc import Sequence

from e2e.cluster.cluster import Cluster
from e2e.controlplane.api import ApiError, Object
from e2e.controlplane.objects import add_namespace, add_running_pod, pod, pod_status, service
from e2e.controlplane.waiting import wait_for
from e2e.world.clients import Target
from e2e.world.hosts import PodSpec

PORT = 80  # of every Service, TCP and UDP
POD_PORT = 8080
DRAIN_S = 30


def target(obj: Object, protocol: str = "tcp", *, ip: str = "") -> Target:
    """A Service's ClusterIP, or another of its addresses, as something to ask."""
    return Target(protocol, ip or obj["spec"]["clusterIP"], PORT)


class Space:
    """A namespace with pods that serve, named `<namespace>-<app>-<node>`; `close` takes all of it away."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.name = name
        self._cluster = cluster
        self._api = cluster.api
        self._pods: set[str] = set()  # in the world
        add_namespace(self._api, name)

    def close(self) -> None:
        """Nothing of it is left; the controllers take the Services' slices away in their own time."""
        for kind in ("DaemonSet", "Service", "Pod"):
            for item in self._api.items(kind, self.name):
                self._drop(kind, f"{self.name}/{item['metadata']['name']}")
        self._cluster.world.remove_pods(self._pods)
        self._api.delete("Namespace", self.name)

    def _drop(self, kind: str, name: str) -> None:
        try:
            self._api.delete(kind, name)
        except ApiError as error:  # a DaemonSet's pod goes with it, by the hand of a controller
            if error.code != 404:
                raise

    def add_pods(self, app: str, nodes: Sequence[str]) -> tuple[str, ...]:
        """Ready pods, one for each mention of a node; their names."""
        nth: Counter[str] = Counter()
        specs = []
        for node in nodes:
            nth[node] += 1
            suffix = f"-{nth[node]}" if nth[node] > 1 else ""
            specs.append(PodSpec(f"{self.name}-{app}-{node}{suffix}", node))
        self._build(specs)
        for spec in specs:
            obj = pod(f"{self.name}/{spec.name}", node_name=spec.node, labels={"app": app})
            add_running_pod(self._api, obj, *self._addresses(spec.name))
        return tuple(spec.name for spec in specs)

    def set_ready(self, name: str, *, ready: bool) -> None:
        """Write the pod's readiness, as a kubelet does after a probe."""
        self._api.patch_status("Pod", f"{self.name}/{name}", pod_status(*self._addresses(name), ready=ready))

    def drain_pod(self, name: str) -> None:
        """Delete the pod gracefully: it terminates and serves on."""
        self._api.delete("Pod", f"{self.name}/{name}", grace_s=DRAIN_S)

    def remove_pod(self, name: str) -> None:
        """Delete the pod, and its server and namespace with it."""
        self._api.delete("Pod", f"{self.name}/{name}")
        self._cluster.world.remove_pods([name])
        self._pods.remove(name)

    def add_service(self, name: str, **spec: object) -> Object:
        """The Service as stored: dual stack, TCP and UDP on PORT, to pods of app=<name>, unless `spec` differs."""
        obj = service(f"{self.name}/{name}", {}, **spec)
        obj["spec"]["ports"] = [
            {"name": protocol.lower(), "protocol": protocol, "port": PORT, "targetPort": POD_PORT}
            for protocol in ("TCP", "UDP")
        ]
        return self._api.apply(obj)

    def add_daemon_set(self, app: str) -> dict[str, str]:
        """A DaemonSet whose pods, made by its controller, are bound, run and ready; node -> pod name."""
        labels = {"app": app}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "none"}]}}
        spec = {"selector": {"matchLabels": labels}, "template": template}
        meta = {"name": f"{self.name}-{app}", "namespace": self.name}
        self._api.apply({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": meta, "spec": spec})
        return self.run_daemon_pods(app)

    def run_daemon_pods(self, app: str) -> dict[str, str]:
        """Bind and run the DaemonSet's pods that don't run yet, once there is one for each node; node -> pod name."""
        wanted = len(self._cluster.world.nodes)
        pods = wait_for(lambda: self._daemon_pods(app, wanted), "the DaemonSet's controller made a pod a node")
        fresh = {node: name for node, name in pods.items() if name not in self._pods}
        self._build([PodSpec(name, node) for node, name in fresh.items()])
        for node, name in fresh.items():
            binding = {"kind": "Binding", "metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
            path = self._api.path("Pod", f"{self.name}/{name}") + "/binding"
            self._api.request("POST", path, {"apiVersion": "v1", **binding})
            self.set_ready(name, ready=True)
        return pods

    def _daemon_pods(self, app: str, wanted: int) -> dict[str, str]:
        """Node -> pod name, by the affinity that the controller gives each pod; {} until all are there."""
        found = {}
        for item in self._api.items("Pod", self.name, selector=f"app={app}"):
            required = item["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
            field = required["nodeSelectorTerms"][0]["matchFields"][0]
            found[field["values"][0]] = item["metadata"]["name"]
        return found if len(found) == wanted else {}

    def _build(self, specs: Sequence[PodSpec]) -> None:
        self._cluster.world.add_pods(specs)
        self._pods.update(spec.name for spec in specs)

    def _addresses(self, name: str) -> tuple[str, str]:
        host = self._cluster.world.host(name)
        return host.ipv4, host.ipv6
