"""EFFECT: very many UDP flows whose only endpoint is replaced: until they are gone, and what else waits meanwhile."""

import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from e2e.bench.changes import Changes
from e2e.bench.proxies import RunningProxy
from e2e.bench.rig import PROGRAMS, Rig, client_pod
from e2e.bench.scale import NAMESPACE, spare_ip
from e2e.controlplane.api import Object
from e2e.world.netns import command_in, run_in, write_sysctls

_NAME = "flows"
_PORTS = (
    5001,
    5002,
    5003,
    5004,
)  # 64,000 source ports give as many flows to each; each has a number of its own at the endpoint as well
_UDP_TIMEOUT_S = 3600  # so that none ends by itself
_BEFORE, _AFTER = spare_ip(1_000_000), spare_ip(1_000_001)
_KNOWN_S = 3.0  # for the proxy to have what was changed, and to be idle again
_HEAD_START_S = 0.3  # of the change that the flows are for
_LEFT = 100  # flows of others, such as the proxy's own
_TIMEOUT_S = 900.0
_POLL_S = 0.02
_COUNT = Path("/proc/sys/net/netfilter/nf_conntrack_count")


class FlowFigures(NamedTuple):
    """What one proxy did."""

    gone_s: float  # from the API server's answer to the change of the endpoint until the flows are gone
    other_s: float  # from its answer to a change of another Service, a moment later, until the kernel has that


def measure_flows(rig: Rig, proxy: RunningProxy, changes: Changes, count: int) -> FlowFigures:
    """So many flows through the proxy's node, then another endpoint. TimeoutError if they stay."""
    netns = proxy.spec.netns
    write_sysctls(netns, {"netfilter/nf_conntrack_udp_timeout": str(_UDP_TIMEOUT_S)})
    ip = _put_service(rig)
    _put_endpoint(rig, _BEFORE)
    time.sleep(_KNOWN_S)
    program = ["python3", "-I", "-S", str(PROGRAMS / "fill.py"), str(count), ip, *map(str, _PORTS)]
    client = rig.world.host(client_pod(proxy.spec.node)).netns
    subprocess.run(command_in(client, program), check=True, capture_output=True)
    if (found := run_in(netns, _count)) < count * 0.99:
        raise RuntimeError(f"only {found} of {count} flows are tracked")
    _put_endpoint(rig, _AFTER)
    began = time.monotonic()
    with ThreadPoolExecutor(max_workers=1) as thread:
        gone = thread.submit(run_in, netns, _wait_gone)
        time.sleep(_HEAD_START_S)
        other = changes.measure_delays(netns, 0.0, lambda done, _took_s: done < 1)
        return FlowFigures(gone.result() - began, other.from_answer[0])


def _count() -> int:
    return int(_COUNT.read_text())


def _wait_gone() -> float:
    """Monotonic time when they were gone."""
    deadline = time.monotonic() + _TIMEOUT_S
    while _count() > _LEFT:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{_count()} flows are left after {_TIMEOUT_S:g} s")
        time.sleep(_POLL_S)
    return time.monotonic()


def _put_service(rig: Rig) -> str:
    """Its ClusterIP."""
    ports = [{"name": f"p{port}", "protocol": "UDP", "port": port, "targetPort": port} for port in _PORTS]
    metadata = {"name": _NAME, "namespace": NAMESPACE}
    stored = rig.plane.api.apply(
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": ports}}
    )
    return str(stored["spec"]["clusterIP"])


def _put_endpoint(rig: Rig, address: str) -> None:
    labels = {"kubernetes.io/service-name": _NAME}
    piece: Object = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": _NAME, "namespace": NAMESPACE, "labels": labels},
        "addressType": "IPv4",
        "ports": [{"name": f"p{port}", "protocol": "UDP", "port": port} for port in _PORTS],
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
    }
    rig.plane.api.apply(piece)
