"""As an operator of an air-gapped box I write huge Services into a folder of manifests, and every endpoint answers."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from e2e.cluster.daemon import Daemon, Site
from e2e.controlplane.waiting import wait_for
from e2e.world.clients import Target, probe
from e2e.world.cluster import World
from e2e.world.hosts import NodeSpec, PodSpec
from e2e.world.netns import run_ip

pytestmark = pytest.mark.netns

NODE = "box"
VIP = "10.96.0.70"
ENDPOINTS = 70_000
A_SLICE = 1_000  # the API's own limit
RANGE = "10.192.0.0/15"  # all of it is one pod's
PORTS = 200
TRIES = 500


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """A node, a client, and a pod that answers at every address of RANGE."""
    with World("large", [NodeSpec(NODE, "here")]) as built:
        built.add_pods([PodSpec("web", NODE), PodSpec("client", NODE, ())])
        pod = built.pods["web"]
        run_ip({pod.host.netns: [f"route add local {RANGE} dev lo"]})
        run_ip({built.host(NODE).netns: [f"route add {RANGE} via {pod.host.ipv4} dev pod-{pod.number}"]})
        yield built


@pytest.fixture
def box(world: World, tmp_path: Path) -> Iterator[tuple[Daemon, Path]]:
    """A daemon that reads the folder."""
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    daemon = Daemon(Site(NODE, world.host(NODE).netns, tmp_path), "--manifests", str(manifests))
    daemon.start()
    daemon.await_ready()
    yield daemon, manifests
    daemon.kill()


def service(name: str, ip: str, ports: Mapping[str, int]) -> dict[str, Any]:
    listed = [{"name": port, "port": number, "targetPort": 8080} for port, number in ports.items()]
    spec = {"clusterIP": ip, "clusterIPs": [ip], "ipFamilies": ["IPv4"], "ports": listed}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "box"}, "spec": spec}


def endpoint_slice(name: str, service_name: str, addresses: list[str], ports: Mapping[str, int]) -> dict[str, Any]:
    labels = {"kubernetes.io/service-name": service_name}
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": name, "namespace": "box", "labels": labels},
        "addressType": "IPv4",
        "ports": [{"name": port, "port": number} for port, number in ports.items()],
        "endpoints": [{"addresses": [ip], "conditions": {"ready": True}} for ip in addresses],
    }


def write(folder: Path, name: str, objects: list[dict[str, Any]]) -> None:
    """Whole at once, as an editor that is careful does."""
    partial = folder / f".{name}"
    partial.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    partial.rename(folder / f"{name}.json")


def in_use(daemon: Daemon) -> float:
    return daemon.metric("closeby_endpoints", tier="cluster")


def test_seventy_thousand_endpoints_in_one_service(world: World, box: tuple[Daemon, Path]) -> None:
    daemon, folder = box
    addresses = [f"10.{192 + n // 65536}.{n // 256 % 256}.{n % 256}" for n in range(ENDPOINTS)]
    slices = [
        endpoint_slice(f"web-{start}", "web", addresses[start : start + A_SLICE], {"http": 8080})
        for start in range(0, ENDPOINTS, A_SLICE)
    ]
    write(folder, "web", [service("web", VIP, {"http": 80}), *slices])
    wait_for(lambda: in_use(daemon) == ENDPOINTS, "all endpoints are in use", timeout_s=120)

    many = probe(world, {"client": [Target("tcp", VIP, 80, TRIES, timeout_s=10.0)]})["client"][0]
    write(folder, "web", [service("web", VIP, {"http": 80}), *slices[:1]])
    wait_for(lambda: in_use(daemon) == A_SLICE, "one slice is left", timeout_s=120)
    few = probe(world, {"client": [Target("tcp", VIP, 80, TRIES, timeout_s=10.0)]})["client"][0]

    assert many.answers == few.answers == {"web": TRIES}
    assert daemon.events("sync_failed") == []
    assert len(daemon.events("sync_done")) <= 4  # one transaction a change, however large


def test_a_service_with_two_hundred_ports(world: World, box: tuple[Daemon, Path]) -> None:
    daemon, folder = box
    ports = {f"port-{number}": 1000 + number for number in range(PORTS)}
    pod = world.host("web").ipv4
    slice_of_all = endpoint_slice("wide-1", "wide", [pod], dict.fromkeys(ports, 8080))
    write(folder, "wide", [service("wide", VIP, ports), slice_of_all])
    wait_for(lambda: in_use(daemon) == PORTS, "all ports have their endpoint")

    tallies = probe(world, {"client": [Target("tcp", VIP, number, 3, timeout_s=10.0) for number in ports.values()]})[
        "client"
    ]

    assert [tally.answers for tally in tallies] == [{"web": 3}] * PORTS
