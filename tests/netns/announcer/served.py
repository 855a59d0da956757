"""Addresses that are really served: a proxy and a server on each node of the LAN, and a client beyond a router."""

import http.client
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from e2e.world.hosts import Host
from e2e.world.netns import (
    command_in,
    create_namespaces,
    remove_namespaces,
    run_in,
    run_ip,
    unique_prefix,
    write_sysctls,
)
from e2e.world.processes import start_program, stop_programs, wait_ready
from endpointslice.types import IP
from tests.netns.announcer.lan import Lan, Node

PORT = 8080
_ANSWER_S = 2.0
_FORWARDING = {"ipv4/ip_forward": "1", "ipv6/conf/all/forwarding": "1"}
_FAR = ("198.51.100.0/24", "2001:db8:51::/64")


class Answer(NamedTuple):
    """What a server said."""

    node: str
    source: str  # the address that it saw


class Beyond(NamedTuple):
    """Another subnet, and the router between."""

    router: Host  # its eth0 is on the LAN
    far: Host


def ask_server(host: Host, vip: IP) -> Answer | None:
    """One HTTP request on a connection of its own; None: no answer."""

    def ask() -> Answer | None:
        connection = http.client.HTTPConnection(vip, PORT, timeout=_ANSWER_S)
        try:
            connection.request("GET", "/", headers={"Connection": "close"})
            said = json.loads(connection.getresponse().read())
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()
        return Answer(said["name"], said["source"])

    return run_in(host.netns, ask)


@contextmanager
def serve(lan: Lan, folder: Path, vips: Sequence[IP], hosting: Sequence[Node], policy: str = "Local") -> Iterator[None]:
    """A Service of the policy whose pods are servers of these nodes; every node has a proxy and an announcer."""
    manifests = folder / "manifests"
    manifests.mkdir()
    (manifests / "service.yaml").write_text(yaml.safe_dump_all([_service(vips, policy), *_slices(hosting)]))
    servers = [start_program(node.host.netns, "server", [node.name, f"tcp:{PORT}"]) for node in hosting]
    proxies: list[subprocess.Popen[bytes]] = []
    try:
        for server in servers:
            wait_ready(server, "a node's server")
        for node in lan.nodes:
            node.close_feed()
            write_sysctls(node.host.netns, _FORWARDING)
            proxies.append(_start_proxy(node, manifests))
            node.start()
        yield
    finally:
        stop_programs(servers)
        for proxy in proxies:
            proxy.kill()
            proxy.wait()


def _start_proxy(node: Node, manifests: Path) -> subprocess.Popen[bytes]:
    command = [
        *(sys.executable, "-m", "proxy", "run", "--hostname-override", node.name, "--manifests", str(manifests)),
        *("--announcer-socket", str(node.feed_path), "--control-socket", str(node.feed_path.with_name("dump.sock"))),
    ]
    with node.feed_path.with_name("run.log").open("ab") as log:
        return subprocess.Popen(
            command_in(node.host.netns, ["setpriv", "--pdeathsig", "KILL", "--", *command]), stdout=log, stderr=log
        )


def _service(vips: Sequence[IP], policy: str) -> dict[str, Any]:
    cluster_ips = ["10.96.0.10", "fd00:10:96::a"]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "type": "LoadBalancer",
            "clusterIP": cluster_ips[0],
            "clusterIPs": cluster_ips,
            "ipFamilies": ["IPv4", "IPv6"],
            "externalTrafficPolicy": policy,
            "ports": [{"name": "http", "protocol": "TCP", "port": PORT}],
        },
        "status": {"loadBalancer": {"ingress": [{"ip": vip, "ipMode": "VIP"} for vip in vips]}},
    }


def _slices(hosting: Sequence[Node]) -> list[dict[str, Any]]:
    return [
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": f"web-{family.lower()}",
                "namespace": "default",
                "labels": {"kubernetes.io/service-name": "web"},
            },
            "addressType": family,
            "ports": [{"name": "http", "protocol": "TCP", "port": PORT}],
            "endpoints": [
                {
                    "addresses": [node.host.ipv4 if family == "IPv4" else node.host.ipv6],
                    "nodeName": node.name,
                    "conditions": {"ready": True},
                }
                for node in hosting
            ],
        }
        for family in ("IPv4", "IPv6")
    ]


@contextmanager
def open_beyond(lan: Lan) -> Iterator[Beyond]:
    """A router on the LAN with a client behind it, and the nodes' way back."""
    prefix = unique_prefix("far")
    router = Host("router", prefix + "router", "172.30.0.2", "fd00:172:30::2")
    far = Host("far", prefix + "far", "198.51.100.2", "2001:db8:51::2")
    create_namespaces([router.netns, far.netns])
    try:
        write_sysctls(router.netns, _FORWARDING)
        run_ip(
            {
                lan.lan.netns: [
                    f"link add port-router type veth peer name eth0 netns {router.netns}",
                    "link set port-router master br0 up",
                ]
            }
        )
        run_ip({router.netns: _router_lines(router, far)})
        run_ip({far.netns: _far_lines(far)})
        for node in lan.nodes:
            node.ip(f"route add {_FAR[0]} via {router.ipv4}")
            node.ip(f"route add {_FAR[1]} via {router.ipv6}")
        yield Beyond(router, far)
    finally:
        remove_namespaces([router.netns, far.netns])


def _router_lines(router: Host, far: Host) -> list[str]:
    return [
        "link set lo up",
        f"address add {router.ipv4}/24 dev eth0",
        f"address add {router.ipv6}/64 dev eth0 nodad",
        "link set eth0 up",
        f"link add eth1 type veth peer name eth0 netns {far.netns}",
        "address add 198.51.100.1/24 dev eth1",
        "address add 2001:db8:51::1/64 dev eth1 nodad",
        "link set eth1 up",
    ]


def _far_lines(far: Host) -> list[str]:
    return [
        "link set lo up",
        f"address add {far.ipv4}/24 dev eth0",
        f"address add {far.ipv6}/64 dev eth0 nodad",
        "link set eth0 up",
        "route add default via 198.51.100.1",
        "route add ::/0 via 2001:db8:51::1",
    ]
