"""EFFECT: what happens to the CoreDNS of a node while the pods ask on. Each ends as it began, every CoreDNS ready."""

import json
import time
from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from e2e.controlplane.waiting import wait_for
from e2e.kind.cluster import Cluster
from e2e.stories.dns.coredns import DAEMON_SET, NAMESPACE, PODS, NodeDns

_NOTICED_S = 120.0
_TABLE = "inet closeby-story"


class Pace(NamedTuple):
    """How long things are left as they are."""

    steady_s: float = 20.0
    held_s: float = 12.0  # a state out of the ordinary
    settled_s: float = 5.0  # after all is well again


class Scene(NamedTuple):
    """Where it happens."""

    cluster: Cluster
    dns: NodeDns
    node: str  # to which it happens
    pace: Pace


class Touches(StrEnum):
    """Which nodes' CoreDNS a stage has to do with."""

    NONE = "none"
    ONE = "one"
    ALL = "all"


class Stage(NamedTuple):
    """Something that happens."""

    name: str
    title: str
    touches: Touches
    act: Callable[[Scene], None]
    told: bool = True  # whether anybody tells the proxies before look-ups can fail


def keep_steady(scene: Scene) -> None:
    """Nothing happens."""
    time.sleep(scene.pace.steady_s)


def drain(scene: Scene) -> None:
    """The node is cordoned and drained, and given back. The clients, pods of nobody, stay."""
    kubectl = scene.cluster.kubectl
    kubectl("cordon", scene.node)
    try:
        kubectl("drain", scene.node, "--ignore-daemonsets", "--delete-emptydir-data", "--pod-selector=story!=client")
        time.sleep(scene.pace.held_s)
    finally:
        kubectl("uncordon", scene.node)
    time.sleep(scene.pace.settled_s)


def roll_out(scene: Scene) -> None:
    """Every node's CoreDNS is replaced, as by a change of its template."""
    scene.cluster.kubectl(NAMESPACE, "rollout", "restart", DAEMON_SET)
    _settle(scene)


def delete_pod(scene: Scene) -> None:
    """The node's CoreDNS is deleted, and the DaemonSet makes another."""
    name, _ = _pod(scene)
    scene.cluster.kubectl(NAMESPACE, "delete", "pod", name, "--timeout=120s")
    _settle(scene)


def make_unready(scene: Scene) -> None:
    """The kubelet finds the port of the readiness probe closed; CoreDNS goes on answering."""
    name, ip = _pod(scene)
    table = f"""\
table {_TABLE} {{
    chain probes {{
        type filter hook output priority 0
        ip daddr {ip} tcp dport 8181 reject with tcp reset
    }}
}}
"""
    scene.cluster.on(scene.node, "nft", "-f", "-", text=table)
    try:
        scene.cluster.kubectl(NAMESPACE, "wait", "--for=condition=Ready=false", f"pod/{name}", "--timeout=120s")
        time.sleep(scene.pace.held_s)
    finally:
        scene.cluster.on(scene.node, "nft", "delete", "table", *_TABLE.split())
    _settle(scene)


def kill(scene: Scene) -> None:
    """The node's CoreDNS is killed (SIGKILL), and the kubelet starts it again."""
    name, _ = _pod(scene)
    on = scene.cluster.on
    container = on(scene.node, "crictl", "ps", "--quiet", "--name=^coredns$", "--state=Running").split()[0]
    inspected = json.loads(on(scene.node, "crictl", "inspect", container))
    on(scene.node, "kill", "-KILL", str(inspected["info"]["pid"]))

    def runs_again() -> bool:
        status = json.loads(scene.cluster.kubectl(NAMESPACE, "get", "pod", name, "-o", "json"))["status"]
        first = status["containerStatuses"][0]
        return bool(first["ready"] and not first["containerID"].endswith(container))

    wait_for(runs_again, f"{name} runs again", timeout_s=_NOTICED_S)
    _settle(scene)


# Those after which no datagram of an old exchange goes to another node come first: source ports come again by chance.
STAGES = (
    Stage("steady", "nothing", Touches.NONE, keep_steady),
    Stage("drained", "the node is cordoned and drained", Touches.ONE, drain),
    Stage("updated", "rolling update of the DaemonSet", Touches.ALL, roll_out),
    Stage("deleted", "the pod is deleted", Touches.ONE, delete_pod),
    Stage("unready", "its readiness probe fails", Touches.ONE, make_unready),
    Stage("killed", "the process is killed", Touches.ONE, kill, told=False),
)


def _settle(scene: Scene) -> None:
    scene.dns.await_ready()
    time.sleep(scene.pace.settled_s)


def _pod(scene: Scene) -> tuple[str, str]:
    """The name and the IPv4 address of the node's CoreDNS."""
    chosen = (f"--selector={PODS}", f"--field-selector=spec.nodeName={scene.node}")
    listed = json.loads(scene.cluster.kubectl(NAMESPACE, "get", "pods", *chosen, "-o", "json"))["items"]
    pod = next(pod for pod in listed if "deletionTimestamp" not in pod["metadata"])
    return pod["metadata"]["name"], next(one["ip"] for one in pod["status"]["podIPs"] if ":" not in one["ip"])
