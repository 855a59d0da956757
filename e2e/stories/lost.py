"""A worker is lost for good, as by a power cut, and clients on the other nodes go on."""

import time
from collections.abc import Iterator
from itertools import pairwise

from e2e.controlplane.waiting import wait_for
from e2e.stories.noticed import Told
from e2e.stories.shop import NEAR, WEB, Shop, cluster_ip_targets, node_port_targets
from e2e.stories.telling import Story, make_command
from e2e.stories.watching import Watching, is_ready, serving_on

_NOTICED_S = 300.0  # the node lifecycle controller's grace period is 50 s
_AFTER_S = 5.0
_LOST = "lasting flows to its servers"


def tell(shop: Shop) -> Iterator[Told]:
    """The last worker dies."""
    node = shop.workers[-1]
    staying = [name for name in shop.nodes if name != node]
    web, near = shop.frontend(WEB), shop.frontend(NEAR)
    groups = {
        "a Service with servers there, too": cluster_ip_targets(web),
        "a Service without": cluster_ip_targets(near) + node_port_targets(near, shop.nodes[shop.workers[0]].addresses),
    }
    with (
        shop.clients(staying) as clients,
        Watching(shop.cluster, "node", node) as nodes,
        Watching(shop.cluster, "endpointslices", f"--selector=kubernetes.io/service-name={WEB}") as slices,
        shop.asked(clients, groups) as asking,
        shop.steps(f"{node} is lost"),
    ):
        began = time.monotonic()
        shop.cluster.docker.run("docker", "kill", node)
        noticed = wait_for(
            lambda: next((at for at, told in nodes.states() if at > began and not is_ready(told)), None),
            f"{node} is not Ready",
            timeout_s=_NOTICED_S,
        )
        names = {told["metadata"]["name"] for _, told in slices.states()}
        gone = [
            wait_for(
                lambda: _when_gone(slices, name, node),  # noqa: B023  # called in its own round
                f"no endpoint of {name} is on {node}",
                timeout_s=_NOTICED_S,
            )
            for name in names
        ]
        time.sleep(_AFTER_S)
        seen = asking.end()
    times = {"the node isn't Ready after": noticed - began, "its endpoints are gone after": max(gone) - began}
    lasting = seen.lasting(lambda server: _LOST if server.endswith(f"@{node}") else "lasting flows to others")
    yield Told(shop.proxy, "a node is lost", seen.new(began), lasting, times, (next(iter(groups)), _LOST))


def _when_gone(slices: Watching, name: str, node: str) -> float | None:
    """When the slice was told to have no ready endpoint on the node, if that is still so."""
    states = [(at, serving_on(told, node)) for at, told in slices.states() if told["metadata"]["name"] == name]
    if states[-1][1]:
        return None
    return max((after for (_, had), (after, has) in pairwise(states) if had and not has), default=0)


STORY = Story(
    "lost",
    "Kill a worker while clients on the other nodes ask a Service that has servers there and one that has none. "
    "Until the controllers take its endpoints away, no proxy knows. Five minutes with each proxy.",
    tell,
)
main = make_command(STORY)
