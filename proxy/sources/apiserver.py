"""EFFECT: the API server as a source: one thread a kind, and one for the owners of single pods."""

import time
from collections.abc import Mapping

from endpointslice.types import Kind, NodeName, PodName
from proxy.sources import KindStatus, Post
from proxy.sources.pods import PodLookup
from proxy.sources.server_version import Version
from proxy.sources.sink import EventSink
from proxy.sources.transport import ApiServer
from proxy.sources.watch import PATIENT, Before, KindWatch, Patience, Resource, Reunion

_JOIN_S = 1.0

# Presence of the label hides the object, whatever its value: kube-proxy's own selectors (1.36). Until 1.35 it took both
# labels for both kinds.
_OUR_SERVICES = "!service.kubernetes.io/service-proxy-name"
_OUR_SLICES = "!service.kubernetes.io/headless"
_BEFORE_1_36 = Before(Version(1, 36), f"{_OUR_SLICES},{_OUR_SERVICES}")


def list_resources(node: NodeName) -> tuple[Resource, ...]:
    """What a node's daemon follows. Of Nodes only its own: all of them would be 83,000 events/s at 5,000 nodes."""
    return (
        Resource(Kind.SERVICE, "/api/v1/services", _OUR_SERVICES, "spec.clusterIP!=None", before=_BEFORE_1_36),
        Resource(Kind.ENDPOINT_SLICE, "/apis/discovery.k8s.io/v1/endpointslices", _OUR_SLICES, before=_BEFORE_1_36),
        Resource(
            Kind.NODE, "/api/v1/nodes", field_selector=f"metadata.name={node}", permission="list and watch on nodes"
        ),
        Resource(Kind.DAEMON_SET, "/apis/apps/v1/daemonsets", permission="list and watch on daemonsets in apps"),
        Resource(
            Kind.SERVICE_CIDR,
            "/apis/networking.k8s.io/v1/servicecidrs",
            permission="list and watch on servicecidrs in networking.k8s.io (Kubernetes 1.33 or newer has them)",
        ),
    )


class ApiServerSource:
    """A Source. Without the server it posts nothing and keeps trying."""

    def __init__(self, api: ApiServer, node: NodeName, patience: Patience = PATIENT) -> None:
        self._api = api
        self._patience = patience
        self._resources = {Kind(resource.kind): resource for resource in list_resources(node)}
        self._watches: Mapping[Kind, KindWatch] = {}
        self._pods: PodLookup | None = None

    @property
    def kinds(self) -> frozenset[Kind]:
        """All but Pod: pods are asked for one by one."""
        return frozenset(self._resources)

    def start(self, post: Post) -> None:
        """Start one thread a kind, and one for pods."""
        self._pods = PodLookup(self._api, post, self._patience)
        reunion = Reunion()
        self._watches = {
            kind: KindWatch(self._api, resource, EventSink(kind, post), self._patience, reunion)
            for kind, resource in self._resources.items()
        }
        for watch in self._watches.values():
            watch.start()
        self._pods.start()

    def stop(self) -> None:
        """End the threads; one that is waiting for an answer of the server is left behind after a second."""
        threads: list[KindWatch | PodLookup] = [*self._watches.values(), *([self._pods] if self._pods else [])]
        for thread in threads:
            thread.stop()
        until_s = time.monotonic() + _JOIN_S
        for thread in threads:
            thread.join(max(0.0, until_s - time.monotonic()))
        self._api.close()

    def request_pod(self, pod: PodName, uid: str) -> None:
        """Have the pod's owner posted."""
        if self._pods is not None:
            self._pods.request(pod, uid)

    def status(self) -> Mapping[Kind, KindStatus]:
        """Of each kind; KindStatus() before `start`."""
        return {kind: self._watches[kind].status if kind in self._watches else KindStatus() for kind in self.kinds}
