"""EFFECT: one kind cluster: made, asked, given images and manifests, removed."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from e2e.controlplane.waiting import wait_for
from e2e.kind.config import Wanted, render_config
from e2e.kind.daemon import folder
from e2e.kind.docker import CommandError, Docker
from e2e.kind.host import Host
from e2e.kind.images.node import Programs
from e2e.kind.routes import Node, decode_nodes, render_setup, routes_to
from e2e.kind.steps import Steps
from e2e.world.netns import run_ip

_CREATE_S = 900.0  # nodes unpack their images first, on few cores a matter of minutes
_READY_S = 300
_ANSWER_S = 300.0
_DELETE_TRIES = 5


class Cluster:
    """A cluster by its name; made by `create`, or by an earlier process."""

    def __init__(self, docker: Docker, programs: Programs, name: str) -> None:
        self.docker = docker
        self.name = name
        self.kubeconfig = folder() / "clusters" / f"{name}.kubeconfig"
        self._kind = str(programs.kind)
        self._kube = str(programs.kube)

    @property
    def control_plane(self) -> str:
        """The name of the node that runs the API server: nodes resolve it, with or without a service proxy."""
        return f"{self.name}-control-plane"

    def create(self, wanted: Wanted, host: Host, steps: Steps) -> None:
        """Make it, up to Ready nodes. CommandError, TimeoutError: what there is of it stays, for its logs."""
        self.kubeconfig.parent.mkdir(parents=True, exist_ok=True)
        with steps(f"kind create cluster: a control plane and {wanted.workers} workers"):
            create = (self._kind, "create", "cluster", "--config=-", f"--kubeconfig={self.kubeconfig}", "--retain")
            self.docker.run(*create, text=render_config(wanted, host), limit_s=_CREATE_S)
        with steps("pods' network"):
            self.connect_pods()
        with steps("nodes are Ready"):
            self.kubectl("wait", "--for=condition=Ready", "nodes", "--all", f"--timeout={_READY_S}s")

    def delete(self) -> None:
        """Remove its containers. CommandError."""
        delete = (self._kind, "delete", "cluster", f"--name={self.name}", f"--kubeconfig={self.kubeconfig}")
        for _ in range(_DELETE_TRIES - 1):  # dockerd waits but ten seconds for a container's end
            if self.docker.works(*delete):
                break
        else:
            self.docker.run(*delete)
        self.kubeconfig.unlink(missing_ok=True)

    def kubectl(self, *args: str, text: str | None = None) -> str:
        """What kubectl printed, run as administrator with `text` as its input. CommandError."""
        return self.docker.run(self._kube, "kubectl", f"--kubeconfig={self.kubeconfig}", *args, text=text)

    def kubectl_command(self, *args: str) -> list[str]:
        """For a caller that runs it in its own way, in this machine's namespace."""
        return self.docker.inside([self._kube, "kubectl", f"--kubeconfig={self.kubeconfig}", *args])

    def on(self, node: str, *argv: str, text: str | None = None) -> str:
        """What a command printed on a node. CommandError."""
        return self.docker.run("docker", "exec", "--interactive", node, *argv, text=text)

    def nodes(self) -> list[Node]:
        """As the API has them, sorted by name."""
        return decode_nodes(self.kubectl("get", "nodes", "-o", "json"))

    def load(self, archive: Path) -> None:
        """Import a `docker save` archive into every node. CommandError."""
        self.docker.run(self._kind, "load", "image-archive", str(archive), f"--name={self.name}")

    def apply(self, manifests: Path) -> None:
        """Apply a manifest, a folder of them, or a kustomization. CommandError."""
        kustomized = (manifests / "kustomization.yaml").exists()
        self.kubectl("apply", "--server-side", "-k" if kustomized else "-f", str(manifests))

    def connect_pods(self) -> None:
        """Give every node its plugins' configuration and its routes; so too a node that has joined since."""
        joined = self.docker.run(self._kind, "get", "nodes", f"--name={self.name}").split()

        def allotted() -> list[Node]:
            nodes = self.nodes()  # a kubelet may register itself only after kind has returned
            whole = len(nodes) == len(joined) and all(len(n.pod_cidrs) == len(n.addresses) > 0 for n in nodes)
            return nodes if whole else []

        nodes = wait_for(allotted, "every node has its pods' ranges", timeout_s=_ANSWER_S)
        for node in nodes:
            others = [other for other in nodes if other is not node]
            self.on(node.name, "sh", text=render_setup(node, others))
        if self.docker.netns:  # of our own: from there, pods are reached as from a router beside the nodes
            run_ip({self.docker.netns: [f"route replace {route}" for route in routes_to(nodes)]})

    def await_services(self) -> None:
        """Returns once Services work: CoreDNS, a pod, has the API by its ClusterIP, and each node has it too."""
        timeout = f"--timeout={_READY_S}s"
        self.kubectl("--namespace=kube-system", "rollout", "status", "deployment/coredns", timeout)
        vip = self.kubectl("get", "service", "kubernetes", "-o", "jsonpath={.spec.clusterIP}")
        for node in self.nodes():
            ask = (
                "docker",
                "exec",
                node.name,
                "curl",
                "--silent",
                "--insecure",
                "--max-time",
                "3",
                f"https://{vip}/livez",
            )
            wait_for(lambda: self.docker.works(*ask), f"{node.name} reaches the API at {vip}", timeout_s=_ANSWER_S)  # noqa: B023  # called in its own round

    def write_logs(self, target: Path) -> None:
        """Everything of it in one folder: nodes' journals, pods' logs, dockerd's log, objects, rulesets."""
        target.mkdir(parents=True, exist_ok=True)
        with _kept(target / "kind.txt") as said:
            said.append(self.docker.run(self._kind, "export", "logs", str(target), f"--name={self.name}"))
        with _kept(target / "objects.txt") as said:
            said.append(self.kubectl("get", "-A", "-o", "wide", "nodes,pods,services,endpointslices,events"))
        for name in self.docker.run(self._kind, "get", "nodes", f"--name={self.name}").split():
            with _kept(target / name / "ruleset.nft") as said:
                said.append(self.on(name, "nft", "list", "ruleset"))
        dockerd = folder() / "run" / "dockerd.log"
        if dockerd.exists():
            (target / "dockerd.log").write_bytes(dockerd.read_bytes())


def list_clusters(docker: Docker, kind: Path) -> list[str]:
    """Names of the clusters on this dockerd."""
    return docker.run(str(kind), "get", "clusters").split()


@contextmanager
def _kept(path: Path) -> Iterator[list[str]]:
    """Writes what was said, or why it could not be asked: one missing part must not cost the others."""
    said: list[str] = []
    try:
        yield said
    except CommandError as error:
        said.append(str(error))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(said))
