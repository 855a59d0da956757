"""EFFECT: the stages in order, each under look-ups from every client, and a row of figures for each."""

import time
from collections.abc import Iterable, Iterator

from e2e.controlplane.waiting import wait_for
from e2e.kind.steps import Steps
from e2e.stories.clients import PodClients
from e2e.stories.dns.coredns import NodeDns
from e2e.stories.dns.queries import Ask, Resolvers
from e2e.stories.dns.rows import Row, count
from e2e.stories.dns.stages import Scene, Stage, Touches

_FOLLOWED_S = 120.0


def tell(scene: Scene, stages: Iterable[Stage], clients: PodClients, steps: Steps) -> Iterator[Row]:
    """A row for each stage, as soon as it is over. CommandError, TimeoutError, ProgramError."""
    ask = _ask(scene.dns)
    node_of = {name: clients.node_of(name) for name in clients.names}
    touched = {Touches.NONE: [], Touches.ONE: [scene.node], Touches.ALL: list(node_of.values())}
    for stage in stages:
        with steps(stage.title), Resolvers(clients, dict.fromkeys(clients.names, ask)) as resolvers:
            stage.act(scene)
            lookups = resolvers.stop()
        yield count(stage.title, lookups, node_of, touched[stage.touches])


def find_broken(stages: Iterable[Stage], rows: Iterable[Row]) -> list[str]:
    """Titles of the stages in which look-ups failed although the proxies were told in time. Pure."""
    lossy = {stage.title for stage in stages if not stage.told}
    return [row.stage for row in rows if row.failed and row.stage not in lossy]


def await_own_nodes(dns: NodeDns, clients: PodClients) -> None:
    """Returns once all look-ups of a second were answered by the clients' own nodes. TimeoutError."""
    node_of = {name: clients.node_of(name) for name in clients.names}

    def all_own() -> bool:
        with Resolvers(clients, dict.fromkeys(clients.names, _ask(dns))) as resolvers:
            time.sleep(1.0)
            row = count("", resolvers.stop(), node_of, [])
        return 0 < row.lookups == row.own

    wait_for(all_own, "every client is answered by its own node", timeout_s=_FOLLOWED_S)


def _ask(dns: NodeDns) -> Ask:
    return Ask(dns.ways(), dns.names())
