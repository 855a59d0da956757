"""EFFECT: builds and removes the cluster, and asks it for Services the way clients do.

The control plane lives in the LAN's namespace, so nodes reach the API server as they would in a rack.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from e2e.cluster.daemon import Daemon, Site
from e2e.cluster.kernel import list_rules
from e2e.controlplane.api import Api, ApiError, Object
from e2e.controlplane.cluster import ControlPlane
from e2e.controlplane.objects import node, node_status
from e2e.controlplane.settings import Settings
from e2e.controlplane.waiting import wait_for
from e2e.world.clients import Tally, Target, probe
from e2e.world.cluster import World
from e2e.world.hosts import NodeSpec, PodSpec

NODES = (
    NodeSpec("north-1", "north"),
    NodeSpec("north-2", "north"),
    NodeSpec("south-1", "south"),
    NodeSpec("east-1", "east"),
)
NAMES = tuple(spec.name for spec in NODES)
CLIENTS = tuple(f"client-{name}" for name in NAMES)  # one pod a node that serves nothing

RBAC = Path(__file__).parents[2] / "deploy" / "base" / "rbac.yaml"
ACCOUNT = ("kube-system", "closeby")

_LOOK_TRIES = 16
_COUNT_TRIES = 120
_SERVED_S = 120.0  # after an outage, watches come back within 30 s; and the machine may be busy
_ANSWER_S = 10.0  # of those that count: far more than a busy machine takes


def every_client(*nodes: str) -> dict[str, set[str]]:
    """Each node's client -> these nodes: what `Cluster.await_served` expects where place makes no difference."""
    return {client: set(nodes) for client in CLIENTS}


Flags = Callable[[Site], Sequence[str]]


class Cluster:
    """Nodes in three zones, their daemons, and the control plane; used as a context manager, needs root."""

    def __init__(self, binary: Path, folder: Path, label: str = "e2e", flags: Flags = lambda _site: ()) -> None:
        """`label` is in the namespaces' names; `flags` are those that a node's daemon gets besides."""
        self.folder = folder
        self._flags = flags
        self.world = World(label, NODES)
        lan = self.world.lan
        settings = Settings(netns=lan.netns, bind_address=lan.ipv4, port=6443)
        self.plane = ControlPlane(binary, folder / "plane", settings)
        self.api = self.plane.api
        self.kubeconfig = folder / "closeby.kubeconfig"
        self.daemons: dict[str, Daemon] = {}
        self._open = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as opening:
            opening.enter_context(self.world)
            opening.enter_context(self.plane)
            self.world.add_pods([PodSpec(f"client-{name}", name, ()) for name in NAMES])
            for name in NAMES:
                self.add_node(name)
            self.add_account(self.kubeconfig, RBAC.read_text(), ACCOUNT)
            for name in NAMES:
                site = Site(name, self.world.host(name).netns, self.folder / name)
                daemon = self.daemons[name] = Daemon(site, "--kubeconfig", str(self.kubeconfig), *self._flags(site))
                opening.callback(daemon.kill)
                daemon.start()
            for daemon in self.daemons.values():
                daemon.await_ready()
            self._open = opening.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def add_account(self, kubeconfig: Path, manifest: str, account: tuple[str, str]) -> None:
        """Apply the manifest, and write a kubeconfig with a token of the ServiceAccount (namespace, name) in it.

        Returns once it may list EndpointSlices, as the manifest says, and so whatever else its role allows.
        """
        wait_for(lambda: self._exists("Namespace", account[0]), f"the namespace {account[0]} is there")
        self.plane.kubectl("apply", "-f", "-", text=manifest)
        token = self.plane.service_account_token(*account)
        self.plane.kubeconfig(kubeconfig, token)
        api = Api(self.plane.access(token))
        wait_for(lambda: _may_list(api, "EndpointSlice"), f"the roles of {account[1]} are in force")

    def end_outage(self) -> None:
        """The API server is back, and controllers that work at once."""
        self.plane.start_apiserver()
        self.plane.restart_controllers()

    def restore(self) -> None:
        """Undo what a story that failed half-way left: every daemon and the API server run, as they did at first."""
        try:
            self.plane.pid("kube-apiserver")
        except KeyError:
            self.end_outage()
        for daemon in self.daemons.values():
            daemon.restore()

    def ask(self, client: str, target: Target) -> Tally:
        """One client's tries, counted."""
        return probe(self.world, {client: [target]})[client][0]

    def nodes_of(self, tally: Tally) -> Counter[str]:
        """Answers by the node that the pod is on; a server that is no pod counts under its own name."""
        counts: Counter[str] = Counter()
        for name, answers in tally.answers.items():
            pod = self.world.pods.get(name)
            counts[pod.node if pod else name] += answers
        return counts

    def await_served(
        self, target: Target, expected: Mapping[str, AbstractSet[str]], tries: int = _COUNT_TRIES
    ) -> dict[str, Tally]:
        """Returns once each client is answered from exactly its nodes, and was so `tries` times more, none failing.

        Nodes that serve a client must each have at least a third of their even share.
        """

        def look() -> bool:
            tallies = self._ask_all(target._replace(tries=_LOOK_TRIES, timeout_s=0.5), expected)
            return all(set(self.nodes_of(t)) == expected[client] and not t.failed for client, t in tallies.items())

        try:
            wait_for(look, f"{target} is served as {expected}", timeout_s=_SERVED_S)
        except TimeoutError as error:
            now = self._ask_all(target._replace(tries=_LOOK_TRIES, timeout_s=0.5), expected)
            raise AssertionError(f"{error}: {[(c, self.nodes_of(t), t.outcomes) for c, t in now.items()]}") from error
        tallies = self._ask_all(target._replace(tries=tries, timeout_s=_ANSWER_S), expected)
        for client, tally in tallies.items():
            counts = self.nodes_of(tally)
            assert set(counts) == expected[client], f"{client}: {counts}"
            assert tally.failed == 0, f"{client}: {tally.outcomes}"
            assert min(counts.values()) >= tries / len(counts) / 3, f"{client}: uneven, {counts}"
        return tallies

    def await_settled(self, service: Object, expected: Mapping[str, AbstractSet[str]]) -> None:
        """Returns once the Service is served at each of its ClusterIPs: no more of its slices is to come then.

        They are written one after the other, a family each.
        """
        port = service["spec"]["ports"][0]["port"]
        for ip in service["spec"]["clusterIPs"]:
            self.await_served(Target("tcp", ip, port), expected)

    def write_evidence(self, story: str) -> Path:
        """A folder with what each daemon believes, logged and wrote to the kernel, and what the API server holds."""
        folder = self.folder / "evidence" / "".join(c if c.isalnum() else "-" for c in story)
        folder.mkdir(parents=True, exist_ok=True)
        for name, daemon in self.daemons.items():
            (folder / f"{name}.log").write_bytes(daemon.log_file.read_bytes())
            (folder / f"{name}.nft").write_text(list_rules(daemon.site.netns))
            for command in ("dump", "plan"):
                done = daemon.command(command)
                (folder / f"{name}.{command}").write_text(done.output + done.error)
        try:
            objects = self.plane.kubectl("get", "-A", "-o", "yaml", "services,endpointslices,pods,daemonsets,nodes")
        except OSError as error:
            objects = str(error)
        (folder / "objects.yaml").write_text(objects)
        return folder

    def add_node(self, name: str) -> None:
        """The Node exists and is Ready, with the addresses that its host has."""
        built = self.world.nodes[name]
        self.api.apply(node(name, built.zone, pod_cidrs=built.pod_cidrs))
        self.api.patch_status("Node", name, node_status(addresses=(built.host.ipv4, built.host.ipv6)))

    def _exists(self, kind: str, name: str) -> bool:
        try:
            self.api.get(kind, name)
        except ApiError as error:
            if error.code != 404:
                raise
            return False
        return True

    def _ask_all(self, target: Target, clients: Mapping[str, object]) -> dict[str, Tally]:
        answers = probe(self.world, {client: [target] for client in clients})
        return {client: tally for client, (tally,) in answers.items()}


def _may_list(api: Api, kind: str) -> bool:
    """Whether the server lets this user: it hears of roles a moment after it has stored them."""
    try:
        api.items(kind)
    except ApiError as error:
        if error.code != 403:
            raise
        return False
    return True
