"""EFFECT: the demo's cluster with its daemons up, and what can be done on it: ask everyone, and change the world."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from e2e.closeby import Closeby
from e2e.controlplane.waiting import sleep_awake
from e2e.demo.acts import Act, list_streams
from e2e.demo.cast import Cast, Offer
from e2e.demo.folder import Folder, edit_file, replace_file
from e2e.demo.judge import Addresses, count_tries, judge_change, judge_tally
from e2e.demo.manifests import file_of, render_folder
from e2e.demo.promises import Plan, Promise, ask_plans, choose_promise
from e2e.demo.shop import CAST
from e2e.demo.tables import Asked, Moved
from e2e.demo.visits import Visit, list_visits, visit_from_node
from e2e.world.clients import Target, Traffic, probe
from e2e.world.cluster import World
from e2e.world.hosts import CLUSTER_CIDRS

_READY_S = 90.0
_DROP_S = 0.5  # less than the second after which a SYN is sent again
_ANSWER_S = 2.0
_BEFORE_S = 0.5  # how long traffic runs before a change, and after it
_AFTER_S = 1.3
_INTERVAL_S = 0.004
_TYPO_S = 0.5  # how long a broken file stays

Apply = Callable[[], Mapping[str, float]]  # writes; when the write of each file began


class Stage:
    """The cluster, its manifests, and a daemon on each node. The world must hold the cast's pods."""

    def __init__(self, world: World, scratch: Path) -> None:
        self.world = world
        self.cast: Cast = CAST
        self.folder = Folder(scratch / "manifests")
        self.daemons: dict[str, Closeby] = {}
        self.connections = 0
        self._ahead = Folder(scratch / "ahead")  # the same folder as it will be, to be planned on
        self._scratch = scratch
        self._plans: dict[str, Plan] = {}

    def start_daemons(self) -> None:
        """Write the manifests, plan, and start closeby on every node; returns when each has synced once."""
        files = self._render(self.cast)
        self.folder.write(files, replace_file)
        source = ["--manifests", str(self.folder.root), "--cluster-cidr", ",".join(CLUSTER_CIDRS)]
        for name, node in self.world.nodes.items():
            self.daemons[name] = Closeby(node.host.netns, name, source, self._scratch)
        self._plans = self._plan_ahead(files)
        for daemon in self.daemons.values():
            daemon.wait_ready(_READY_S)

    def stop_daemons(self) -> None:
        """End them; what they wrote goes with the namespaces."""
        for daemon in self.daemons.values():
            daemon.terminate()
        for daemon in self.daemons.values():
            daemon.stop()

    def ask_everyone(self, offer: Offer) -> list[Asked]:
        """Every visit to a Service, judged; one row for each kind of client."""
        visits = list_visits(offer, self.world)
        promises = [self._promise(visit) for visit in visits]
        orders: dict[str, list[Target]] = {}
        for visit, promise in zip(visits, promises, strict=True):
            orders.setdefault(visit.client, []).append(_size(visit.target, promise))
        tallies = {client: iter(found) for client, found in probe(self.world, orders).items()}
        rows: dict[tuple[str, Promise], Asked] = {}
        for visit, promise in zip(visits, promises, strict=True):
            tally = next(tallies[visit.client])
            addresses = self._addresses(visit)
            row = rows.setdefault((visit.who, promise), Asked(visit, promise, addresses))
            row.tallies.append(tally)
            row.complaints += judge_tally(promise, tally, addresses)
            self.connections += sum(tally.outcomes.values())
        return list(rows.values())

    def perform(self, act: Act) -> list[Moved]:
        """Change the world while the act's traffic runs."""
        self.world.add_pods(act.brings)
        cast = act.edit(self.cast)
        files = self._render(cast)
        visits = list_streams(act, cast, self.world)
        before = [self._promise(visit) for visit in visits]
        self._plans = self._plan_ahead(files)
        moved = self._run_traffic(visits, before, lambda: self.folder.write(files, act.write))
        self.cast = cast
        self.world.remove_pods(act.takes)
        return moved

    def misspell(self, service: str, nodes: Sequence[str]) -> list[Moved]:
        """Save a Service's file with a typo, as an editor does, and mend it soon, while its traffic runs."""
        files = self._render(self.cast)
        name = file_of(service)
        wrong = {name: files[name].replace("ports:\n", "ports: [\n", 1)}

        def misspell_and_mend() -> Mapping[str, float]:
            began = self.folder.write(wrong, edit_file)
            sleep_awake(_TYPO_S)
            self.folder.write(files, edit_file)
            return began

        offer = self.cast.offer(service)
        visits = [next(iter(visit_from_node(offer, self.world, node))) for node in nodes]
        return self._run_traffic(visits, [self._promise(visit) for visit in visits], misspell_and_mend)

    def _run_traffic(self, visits: Sequence[Visit], before: Sequence[Promise], apply: Apply) -> list[Moved]:
        """Run a stream for each visit, change the world in its midst, and judge; the stage's plans are the new ones."""
        orders: dict[str, list[Target]] = {}
        for visit in visits:
            orders.setdefault(visit.client, []).append(visit.target._replace(timeout_s=_DROP_S))
        with Traffic(self.world, orders, _INTERVAL_S) as traffic:
            sleep_awake(_BEFORE_S)
            written = apply()
            sleep_awake(_AFTER_S)
            records = traffic.stop()
        self.connections += sum(map(len, records.values()))
        moved: list[Moved] = []
        indexes = dict.fromkeys(orders, 0)
        for visit, old in zip(visits, before, strict=True):
            mine = [record for record in records[visit.client] if record.target == indexes[visit.client]]
            indexes[visit.client] += 1
            promises = (old, self._promise(visit))
            change = judge_change(promises, mine, written[file_of(visit.service)], self._addresses(visit))
            moved.append((visit, promises, change))
        return moved

    def _render(self, cast: Cast) -> dict[str, str]:
        return render_folder(cast, self.world.nodes, self.world.pods)

    def _plan_ahead(self, files: Mapping[str, str]) -> dict[str, Plan]:
        self._ahead.write(files, replace_file)
        return ask_plans(self._ahead.root, self.world.nodes)

    def _promise(self, visit: Visit) -> Promise:
        pods = {ip: pod.host.name for pod in self.world.pods.values() for ip in (pod.host.ipv4, pod.host.ipv6)}
        return choose_promise(self._plans[visit.node], visit, pods)

    def _addresses(self, visit: Visit) -> Addresses:
        client, node = self.world.host(visit.client), self.world.nodes[visit.node]
        of_node = frozenset({node.host.ipv4, node.host.ipv6, *node.gateways})
        own = of_node if visit.client == visit.node else frozenset({client.ipv4, client.ipv6})
        return Addresses(own, of_node, visit.client)


def _size(target: Target, promise: Promise) -> Target:
    """As many tries as the promise needs, each with time enough."""
    timeout_s = _DROP_S if promise.verdict == "drop" else _ANSWER_S
    return target._replace(tries=count_tries(promise), timeout_s=timeout_s)
