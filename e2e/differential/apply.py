"""EFFECT: the API holds a state, and both proxies have it in their kernels.

A marker Service tells when: its port and its endpoints change after everything else, and watches keep the order of
what happens to a kind of object. Another one has an endpoint hinted for each zone: who is reached tells the zone.
"""

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeAlias

from e2e.controlplane.api import Object
from e2e.differential.clients import Patience
from e2e.differential.judge import ask
from e2e.differential.model import EndpointSpec, PortSpec, ServiceSpec, SlicePortSpec, SliceSpec, State
from e2e.differential.objects import MADE, render_service, render_slice, render_state
from e2e.differential.places import LOCAL_PODS, MARKER, NAMESPACE, NODE, TARGET_PORTS, ZONE_MARKER, ZONES, cluster_ip
from e2e.differential.rig import Rig
from e2e.differential.targets import Probe, Target

_SYNC_S = 60.0
_PATIENCE = Patience(0.3, 1)
_PAUSE_S = 0.01
_AT_ONCE = 8  # requests
_KINDS = ("Service", "EndpointSlice", "DaemonSet", "Pod")
_FIRST_PORT = 10_000
_PORTS = 20_000
_FAMILIES = (False, True)
_FIRST_MARKER_IP = 200  # in the servers' range, above all endpoints
_MARKER_IPS = 40
_ZONE_LABEL = "topology.kubernetes.io/zone"

Key: TypeAlias = tuple[str, str, str]  # kind, name, and what tells a slice from one made before


class Applier:
    """What this run has stored, and what is stored next."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self._api = rig.plane.api
        self._stored: dict[Key, Object] = {}
        self._zone: str | None = ZONES[0]
        self._marker: ServiceSpec | None = None
        self._steps = itertools.count()
        for obj in _objects(_zone_marker()):
            self._api.create(obj)

    def apply(self, state: State) -> None:
        """Returns when both proxies have it. TimeoutError if one hasn't within a minute."""
        moved = state.zone != self._zone
        self._store(state)
        assert self._marker
        self._await_reached([*_marked(self._marker), *(_in_zone(state.zone) if moved else ())])

    def clear(self) -> None:
        """Delete every world's objects that the API holds, whatever this run believes it does."""
        for kind in _KINDS:
            names = [obj["metadata"]["name"] for obj in self._api.items(kind, NAMESPACE)]
            for name in names:
                if MARKER not in name:
                    self._api.delete(kind, f"{NAMESPACE}/{name}")
        self._stored = {key: obj for key, obj in self._stored.items() if MARKER in key[1]}

    def _store(self, state: State) -> None:
        """Delete, create and replace what differs, side by side; the marker last. ApiError if something is refused.

        Pods come before the slices that name them, and Services in their order, since age decides between two.
        """
        wanted = {_key(obj): obj for obj in render_state(state)}
        by_kind: dict[str, list[Object]] = {}
        for obj in wanted.values():
            by_kind.setdefault(obj["kind"], []).append(obj)
        gone = [key for key in self._stored if key not in wanted and MARKER not in key[1]]
        self._do_all([partial(self._delete, key) for key in gone])
        owners = [*by_kind.get("DaemonSet", ()), *by_kind.get("Pod", ())]
        self._do_all([partial(self._label_node, state.zone), *(partial(self._put, [obj]) for obj in owners)])
        slices = [partial(self._put, [piece]) for piece in by_kind.get("EndpointSlice", ())]
        self._do_all([partial(self._put, by_kind.get("Service", ())), *slices])
        self._marker = _marker(next(self._steps))
        self._do_all([partial(self._put, [obj]) for obj in _objects(self._marker)])

    def _do_all(self, jobs: Sequence[Callable[[], None]]) -> None:
        """All at once; raises what the first one raised, when all are done."""
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            started = [threads.submit(job) for job in jobs]
        for job in started:
            job.result()

    def _delete(self, key: Key) -> None:
        kind, name, _ = key
        self._api.delete(kind, f"{NAMESPACE}/{name}")
        del self._stored[key]

    def _label_node(self, zone: str | None) -> None:
        if zone != self._zone:
            self._api.patch("Node", NODE, {"metadata": {"labels": {_ZONE_LABEL: zone}}})
            self._zone = zone

    def _put(self, objs: Iterable[Object]) -> None:
        """One after the other, those that aren't stored like that."""
        for obj in objs:
            before = self._stored.get(_key(obj))
            if obj == before:
                continue
            name = f"{NAMESPACE}/{obj['metadata']['name']}"
            if before is None:
                self._api.create(obj)
            else:
                self._api.request("PUT", self._api.path(obj["kind"], name), obj)
            self._stored[_key(obj)] = obj
            status = obj.get("status")
            if status and status != (before or {}).get("status", {"loadBalancer": {"ingress": []}}):
                self._api.patch_status(obj["kind"], name, status)

    def _await_reached(self, expected: Sequence[tuple[Probe, frozenset[str]]]) -> None:
        deadline = time.monotonic() + _SYNC_S
        while True:
            both = ask(self._rig, [probe for probe, _ in expected], _PATIENCE)
            late = [
                side.name
                for side, answers in zip(self._rig.sides, both, strict=True)
                if any(_reached(fates) != want for fates, (_, want) in zip(answers, expected, strict=True))
            ]
            if not late:
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"{' and '.join(late)} isn't in sync after {_SYNC_S:g} s")
            time.sleep(_PAUSE_S)


def _key(obj: Object) -> Key:
    meta = obj["metadata"]
    return obj["kind"], meta["name"], meta.get("annotations", {}).get(MADE, "")


def _objects(service: ServiceSpec) -> list[Object]:
    return [render_service(service), *(render_slice(service.name, piece) for piece in service.slices)]


def _marker(step: int) -> ServiceSpec:
    port = PortSpec("marker", "TCP", _FIRST_PORT + step % _PORTS)
    number = _FIRST_MARKER_IP + step % _MARKER_IPS
    pieces = tuple(_piece(ipv6, (EndpointSpec(_server_ip(number, ipv6=ipv6)),), "marker") for ipv6 in _FAMILIES)
    return ServiceSpec(MARKER, "ClusterIP", _cluster_ips(2300), (port,), pieces)


def _zone_marker() -> ServiceSpec:
    pieces = tuple(
        _piece(
            ipv6,
            tuple(EndpointSpec(_server_ip(_zone_number(zone), ipv6=ipv6), for_zones=(zone,)) for zone in ZONES),
            "zone",
        )
        for ipv6 in _FAMILIES
    )
    return ServiceSpec(ZONE_MARKER, "ClusterIP", _cluster_ips(2301), (PortSpec("zone", "TCP", 80),), pieces)


def _marked(marker: ServiceSpec) -> Iterator[tuple[Probe, frozenset[str]]]:
    """Whom the first pod reaches through the marker once everything is in place."""
    for piece in marker.slices:
        target = Target("TCP", marker.cluster_ips[piece.is_ipv6], marker.ports[0].port, 1, MARKER)
        yield Probe(LOCAL_PODS[0], target), frozenset({piece.endpoints[0].ip})


def _in_zone(zone: str | None) -> Iterator[tuple[Probe, frozenset[str]]]:
    """Whom it reaches through the other one once both know of the zone."""
    for ipv6, cluster in zip(_FAMILIES, _cluster_ips(2301), strict=True):
        ips = frozenset(_server_ip(_zone_number(z), ipv6=ipv6) for z in ZONES if zone in {z, None})
        yield Probe(LOCAL_PODS[0], Target("TCP", cluster, 80, len(ZONES), ZONE_MARKER)), ips


def _reached(fates: frozenset[str]) -> frozenset[str]:
    return frozenset(fate.partition(" ")[0] for fate in fates)


def _piece(ipv6: bool, endpoints: tuple[EndpointSpec, ...], name: str) -> SliceSpec:  # noqa: FBT001 - as the spec has it
    port = SlicePortSpec(name, "TCP", TARGET_PORTS[0])
    return SliceSpec(f"v{6 if ipv6 else 4}", ipv6, (port,), endpoints)


def _cluster_ips(number: int) -> tuple[str, str]:
    return cluster_ip(number, ipv6=False), cluster_ip(number, ipv6=True)


def _server_ip(number: int, *, ipv6: bool) -> str:
    return f"fd00:10:244:3::{number:x}" if ipv6 else f"10.244.3.{number}"


def _zone_number(zone: str) -> int:
    return _FIRST_MARKER_IP + _MARKER_IPS + ZONES.index(zone)
