"""Values for tests in few words: `service()` is an ordinary Service, `service(type="NodePort")` differs in that."""

from collections.abc import Iterable, Mapping

import msgspec

from endpointslice.types import (
    IP,
    DaemonSet,
    DaemonSetName,
    Endpoint,
    Family,
    Kind,
    NodeName,
    Pod,
    PodName,
    Protocol,
    Service,
    ServiceName,
    ServicePort,
    Slice,
    SliceEndpoint,
    SliceName,
    SlicePort,
    Zone,
)
from proxy.kernel.change import Change
from proxy.kernel.ruleset import SetId
from proxy.planner.desired import Desired
from proxy.planner.fragments import Rendered

Json = dict[str, object]

HTTP = ServicePort("http", Protocol.TCP, 80)
HTTP_NODE_PORT = ServicePort("http", Protocol.TCP, 80, 30080)
SLICE_HTTP = SlicePort("http", Protocol.TCP, 8080)

_CONDITIONS = {  # ready, serving, terminating
    "R": (True, True, False),
    "T": (False, True, True),
    "N": (False, False, True),
    "X": (False, False, False),
    "P": (True, True, True),  # with publishNotReadyAddresses
}


def service(name: str = "default/web", /, **fields: object) -> Service:
    """A ClusterIP Service with one port, 80/TCP "http"."""
    plain = Service(ServiceName(name), (IP("10.96.0.10"),), (HTTP,), selector=frozenset({("app", "web")}))
    return msgspec.structs.replace(plain, **fields)


def endpoint(ip: str = "10.244.0.1", conditions: str = "R", /, **fields: object) -> Endpoint:
    """An endpoint on port 8080; conditions are R (ready), T (draining), N (terminating), X (unready) or P."""
    return msgspec.structs.replace(Endpoint(IP(ip), 8080, *_CONDITIONS[conditions]), **fields)


def slice_endpoint(ip: str = "10.244.0.1", conditions: str = "R", /, **fields: object) -> SliceEndpoint:
    """As `endpoint`, within a slice."""
    return msgspec.structs.replace(SliceEndpoint(IP(ip), *_CONDITIONS[conditions]), **fields)


def a_slice(endpoints: Iterable[SliceEndpoint] = (), name: str = "default/web-1", /, **fields: object) -> Slice:
    """An IPv4 slice of default/web with one port, 8080/TCP "http"."""
    plain = Slice(SliceName(name), ServiceName("default/web"), Family.IPV4, (SLICE_HTTP,), tuple(endpoints))
    return msgspec.structs.replace(plain, **fields)


def daemon_set(name: str = "default/agent", /, **fields: object) -> DaemonSet:
    """A DaemonSet whose pods `service()` selects, meant for three nodes."""
    return msgspec.structs.replace(DaemonSet(DaemonSetName(name), frozenset({("app", "web")}), 3), **fields)


def pod(name: str, owner: str | None = "default/agent", uid: str = "") -> Pod:
    """A Pod of a DaemonSet, or with None of something else."""
    return Pod(PodName(name), uid, None if owner is None else DaemonSetName(owner))


def zones(*names: str) -> frozenset[Zone]:
    """Hinted zones."""
    return frozenset(map(Zone, names))


def nodes(*names: str) -> frozenset[NodeName]:
    """Hinted nodes."""
    return frozenset(map(NodeName, names))


def object_json(kind: Kind, name: str, /, **fields: object) -> Json:
    """An object as the API writes it; `labels`, `annotations` and such go into its metadata."""
    namespace, _slash, own_name = name.rpartition("/")
    in_metadata = {"labels", "annotations", "uid", "ownerReferences", "resourceVersion", "creationTimestamp"}
    metadata = {key: value for key, value in fields.items() if key in in_metadata}
    rest = {key: value for key, value in fields.items() if key not in in_metadata}
    place = {"namespace": namespace} if namespace else {}
    return {"kind": kind.value, "metadata": {"name": own_name, **place, **metadata}, **rest}


def service_json(name: str = "default/web", /, **spec: object) -> Json:
    """A ClusterIP Service with one port; None takes a field away."""
    plain: Json = {
        "type": "ClusterIP",
        "clusterIP": "10.96.0.10",
        "clusterIPs": ["10.96.0.10"],
        "ipFamilies": ["IPv4"],
        "ports": [{"name": "http", "protocol": "TCP", "port": 80, "targetPort": 8080}],
        "selector": {"app": "web"},
    }
    return object_json(
        Kind.SERVICE, name, spec={key: value for key, value in {**plain, **spec}.items() if value is not None}
    )


def slice_json(name: str = "default/web-1", /, **fields: object) -> Json:
    """An EndpointSlice of default/web with one port and one endpoint."""
    plain: Json = {
        "labels": {"kubernetes.io/service-name": "web"},
        "addressType": "IPv4",
        "ports": [{"name": "http", "protocol": "TCP", "port": 8080}],
        "endpoints": [{"addresses": ["10.244.0.1"]}],
    }
    return object_json(Kind.ENDPOINT_SLICE, name, **{**plain, **fields})


def change_between(
    installed: Mapping[SetId, Mapping[bytes, bytes]], desired: Mapping[SetId, Mapping[bytes, bytes]]
) -> Change:
    """The planner's change from what is installed to what is desired."""
    wanted = Desired()
    wanted.replace(["all"], [Rendered("all", desired, {})])
    wanted.doubt(installed)
    return wanted.pending(installed)
