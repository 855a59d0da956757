"""The API server is away for two minutes, containers of servers are restarted meanwhile, and clients go on."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from e2e.controlplane.waiting import wait_for
from e2e.kind.docker import CommandError
from e2e.stories.noticed import Told, find_windows, notice, without_windows
from e2e.stories.servers import PORT, render_service
from e2e.stories.shop import NEAR, WEB, Groups, Shop
from e2e.stories.telling import Story, make_command
from e2e.world.clients import Target

AWAY_S = 120.0
_BACK_S = 300.0
_MANIFEST = "/etc/kubernetes/manifests/kube-apiserver.yaml"
_ASIDE = "/etc/kubernetes/kube-apiserver.yaml"
_LATE = "late"
_LABEL = "story"
_DIRECT = "at its own address, "  # a server, asked past every proxy


def tell(shop: Shop, away_s: float = AWAY_S) -> Iterator[Told]:
    """The outage, and a Service that is made as soon as it is over."""
    pods = {pod["metadata"]["name"]: pod for name in (WEB, NEAR) for pod in shop.pods(f"app={name}")}
    direct = {f"{_DIRECT}{name}": [Target("tcp", pod["status"]["podIP"], PORT)] for name, pod in pods.items()}
    groups = {"ClusterIPs and NodePorts": shop.everything(shop.workers)}
    restarted = [pod for name, pod in pods.items() if name.startswith(f"{WEB}-")]
    with shop.clients(shop.nodes) as clients, shop.asked(clients, groups | direct, (NEAR,)) as asking:
        with (
            shop.steps(f"no API server for {away_s:g} s, and {len(restarted)} containers restarted"),
            without_api(shop),
        ):
            began = time.monotonic()
            for pod in restarted:
                time.sleep(away_s / (len(restarted) + 1))
                shop.kill_container(pod)
            time.sleep(max(0.0, began + away_s - time.monotonic()))
            tried = time.monotonic()
        with shop.steps("everything is caught up"):
            times = {"the API server is back after": time.monotonic() - tried} | catch_up(shop, list(pods.values()))
        seen = asking.end()
    yield judge(shop, seen, began, times)


def judge(shop: Shop, seen: Groups, began: float, times: dict[str, float]) -> Told:
    """What failed although every server was there, apart from what its servers' restarts cost."""
    records = {group: of_group for group, of_group in seen.records.items() if not group.startswith(_DIRECT)}
    windows = [
        window
        for group, of_group in seen.records.items()
        if group.startswith(_DIRECT)
        for window in find_windows(of_group)
    ]
    new = {}
    for group, of_group in records.items():
        kept, excused = without_windows(of_group, windows)
        new[f"{group} ({excused} more failed at servers that were just restarted)"] = notice(kept, began)
    return Told(shop.proxy, "two minutes without API server", new, seen.lasting(lambda _: "not restarted"), times)


@contextmanager
def without_api(shop: Shop) -> Iterator[None]:
    """The API server's static pod is away while the block runs; returns once it answers again."""
    node = shop.cluster.control_plane
    shop.cluster.on(node, "mv", _MANIFEST, _ASIDE)
    try:
        wait_for(lambda: not _answers(shop), "the API server is away", timeout_s=_BACK_S)
        yield
    finally:
        shop.cluster.on(node, "mv", _ASIDE, _MANIFEST)
        wait_for(lambda: _answers(shop), "the API server is back", timeout_s=_BACK_S)


def _answers(shop: Shop) -> bool:
    ask = ("curl", "--silent", "--insecure", "--fail", "--max-time", "2", "https://127.0.0.1:6443/readyz")
    return shop.cluster.docker.works("docker", "exec", shop.cluster.control_plane, *ask)


def catch_up(shop: Shop, pods: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Seconds until a Service that is made now, with slices that no controller has to write, answers on each node."""
    spec = {"selector": None, "type": "ClusterIP"}
    service = render_service(_LATE, spec) | {"metadata": {"name": _LATE, "labels": {_LABEL: _LATE}}}
    objects = service, *_slices(pods)
    wait_for(lambda: _is_applied(shop, *objects), "the API server takes a Service", timeout_s=_BACK_S)
    began = time.monotonic()
    front = shop.frontend(_LATE)
    urls = f"http://{front.ipv4}/", f"http://[{front.ipv6}]/"
    curl = ("curl", "--silent", "--output", "/dev/null", "--max-time", "1")
    times = {}
    for node in shop.nodes:
        asks = [("docker", "exec", node, *curl, url) for url in urls]
        wait_for(lambda: all(shop.cluster.docker.works(*ask) for ask in asks), f"{node} serves it", timeout_s=_BACK_S)  # noqa: B023  # called in its own round
        times[node] = time.monotonic() - began
    shop.cluster.kubectl("delete", "services,endpointslices", f"--selector={_LABEL}={_LATE}")
    return {"a new Service answers on every node after": max(times.values())}


def _is_applied(shop: Shop, *objects: dict[str, object]) -> bool:
    """Whether the API server took them: ready as it is, it may still refuse for a moment."""
    try:
        shop.apply(*objects)
    except CommandError:
        return False
    return True


def _slices(pods: Sequence[dict[str, Any]]) -> list[dict[str, object]]:
    """One a family, of the pods' addresses."""
    slices: list[dict[str, object]] = []
    for family in ("IPv4", "IPv6"):
        ips = [ip["ip"] for pod in pods for ip in pod["status"]["podIPs"]]
        addresses = [ip for ip in ips if (":" in ip) == (family == "IPv6")]
        slices.append(
            {
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": {
                    "name": f"{_LATE}-{family.lower()}",
                    "labels": {"kubernetes.io/service-name": _LATE, _LABEL: _LATE},
                },
                "addressType": family,
                "ports": [{"name": name, "protocol": name.upper(), "port": PORT} for name in ("tcp", "udp")],
                "endpoints": [{"addresses": [address]} for address in addresses],
            }
        )
    return slices


STORY = Story(
    "outage",
    "Take the API server away for two minutes and kill servers meanwhile, which the kubelet restarts in place. "
    "What fails only because a server is not there yet is counted apart. Five minutes with each proxy.",
    tell,
)
main = make_command(STORY)
