"""EFFECT: the stages of the story of zones, one after the other, on a cluster with traffic."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import yaml

from e2e.controlplane.waiting import wait_for
from e2e.kind.cluster import Cluster
from e2e.kind.config import ZONE_LABEL
from e2e.kind.steps import Steps
from e2e.stories.servers import render_programs, render_service, render_workload
from e2e.stories.zone_shares import Stage
from e2e.stories.zone_watch import EndpointWatch

WEB, AGENT = "web", "agent"
GONE = "east"
_REPLICAS = 6
_COST = "controller.kubernetes.io/pod-deletion-cost"
_LIMIT = "--timeout=300s"
_LIMIT_S = 300.0
_MARGIN_S = 5.0  # proxies on busy machines may be that late
_TAINT = "story=gone:NoExecute"


class Stages:
    """Changes to the workloads of docs/zones.yaml, each with the time until it has settled and a while after."""

    def __init__(self, cluster: Cluster, watch: EndpointWatch, steps: Steps, steady_s: float) -> None:
        self._cluster = cluster
        self._watch = watch
        self._steps = steps
        self._steady_s = steady_s
        self.zones = {node.name: node.zone for node in cluster.nodes() if node.zone}
        self.done: list[Stage] = []
        self.began = 0.0  # monotonic seconds

    def run(self) -> None:
        """All stages; the traffic has begun. CommandError, TimeoutError."""
        self.began = time.monotonic()
        everywhere = len(self.zones)
        in_two = sum(zone != GONE for zone in self.zones.values())
        self._stage(f"{_REPLICAS} replicas", lambda: None, _REPLICAS, everywhere)
        self._stage("scaled to 3", lambda: self._scale(3), 3, everywhere)
        self._stage("scaled to 12", lambda: self._scale(12), 12, everywhere)
        self._stage("scaled to 2", lambda: self._scale(2), 2, everywhere)
        self._stage(f"scaled to {_REPLICAS}", lambda: self._scale(_REPLICAS), _REPLICAS, everywhere)
        self._stage("rolling update", self._restart, _REPLICAS, everywhere)
        # what the zone had is not started elsewhere: the spread over zones is demanded, not preferred
        self._stage(f"zone {GONE} empty", lambda: self._taint(_TAINT), _REPLICAS * in_two // everywhere, in_two)
        self._stage(f"zone {GONE} back", lambda: self._taint(f"{_TAINT}-"), _REPLICAS, everywhere)

    def _stage(self, name: str, change: Callable[[], None], web: int, agents: int) -> None:
        with self._steps(name):
            began = time.monotonic() - self.began
            change()
            for service, ready in ((WEB, web), (AGENT, agents)):
                settled = partial(self._watch.is_settled, service, ready)
                wait_for(settled, f"{name}: {ready} endpoints of {service}", timeout_s=_LIMIT_S)
            time.sleep(_MARGIN_S)
            at = time.monotonic() - self.began
            time.sleep(self._steady_s)
            self.done.append(Stage(name, began, at, time.monotonic() - self.began))

    def _scale(self, replicas: int) -> None:
        """Which pods are taken is no matter of zones to Kubernetes: their costs say that as many stay in each."""
        pods = json.loads(self._cluster.kubectl("get", "pods", f"--selector=app={WEB}", "--output=json"))
        for pod, cost in plan_costs(pods["items"], self.zones).items():
            self._cluster.kubectl("annotate", "--overwrite", "pod", pod, f"{_COST}={cost}")
        self._cluster.kubectl("scale", f"deployment/{WEB}", f"--replicas={replicas}")

    def _restart(self) -> None:
        workloads = (f"deployment/{WEB}", f"daemonset/{AGENT}")
        self._cluster.kubectl("rollout", "restart", *workloads)
        for workload in workloads:
            self._cluster.kubectl("rollout", "status", workload, _LIMIT)

    def _taint(self, taint: str) -> None:
        self._cluster.kubectl("taint", "nodes", f"--selector={ZONE_LABEL}={GONE}", taint)


def plan_costs(pods: list[dict[str, Any]], zones: Mapping[str, str]) -> dict[str, int]:
    """Pod -> its deletion cost, by which each zone loses pods in turn, and the zone `GONE` its last one first. Pure."""
    order = sorted(set(zones.values()), key=lambda zone: (zone == GONE, zone))
    seen = dict.fromkeys(order, 0)
    costs = {}
    for pod in sorted(pods, key=lambda pod: str(pod["metadata"]["name"])):
        zone = zones[pod["spec"]["nodeName"]]
        costs[pod["metadata"]["name"]] = 1000 - len(order) * seen[zone] - order.index(zone)
        seen[zone] += 1
    return costs


def render_story(example: str, image: str) -> list[dict[str, object]]:
    """The manifests of docs/zones.yaml, with the story's servers in place of its containers, and UDP as well. Pure."""
    manifests = [render_programs()]
    for manifest in yaml.safe_load_all(example):
        name, spec = manifest["metadata"]["name"], manifest["spec"]
        if manifest["kind"] == "Service":
            manifests.append(render_service(name, {"trafficDistribution": spec["trafficDistribution"]}))
            continue
        template = spec.pop("template")["spec"]
        pod = {key: value for key, value in template.items() if key != "containers"}
        manifests.append(render_workload(manifest["kind"], name, image, spec, pod))
    return manifests


@contextmanager
def started(cluster: Cluster, example: str, image: str) -> Iterator[dict[str, str]]:
    """Service -> its ClusterIP, once all its pods are ready. The example itself is shown to the API server as well."""
    cluster.kubectl("apply", "--dry-run=server", "-f", "-", text=example)
    manifests = "---\n".join(yaml.safe_dump(manifest) for manifest in render_story(example, image))
    cluster.kubectl("apply", "-f", "-", text=manifests)
    for workload in (f"deployment/{WEB}", f"daemonset/{AGENT}"):
        cluster.kubectl("rollout", "status", workload, _LIMIT)
    yield {
        service: cluster.kubectl("get", "service", service, "--output=jsonpath={.spec.clusterIP}")
        for service in (WEB, AGENT)
    }
    cluster.kubectl("delete", "-f", "-", text=manifests)
