"""The API objects of one scale, as an API server stores them, with all that a cluster's controllers fill in. No I/O."""

from collections.abc import Iterator

import msgspec

from e2e.bench.scale import NAMESPACE, PORT, TARGET_PORT, Scale, endpoint_ip, service_ip
from e2e.controlplane.api import Object

_NODES = 50  # nodes that the endpoints are said to be on; none of them is a proxy's
_ZONES = ("zone-a", "zone-b", "zone-c")
OBJECTS_EACH = 3  # of a Service, and so entries of `stored`


def stored(scale: Scale, first: int, created: str) -> Iterator[tuple[str, bytes]]:
    """Keys and values in etcd of the Services from number `first` on: addresses first, which Services must have.

    `created` is the time of storing, RFC 3339: an address older than a minute without its Service would be taken back.
    """
    numbers = range(first, scale.services)
    for number in numbers:
        yield f"/registry/ipaddresses/{service_ip(number)}", _encode(ip_address(number), created)
    for number in numbers:
        yield f"/registry/services/specs/{NAMESPACE}/{service_name(number)}", _encode(service(number), created)
    for number in numbers:
        key = f"/registry/endpointslices/{NAMESPACE}/{slice_name(number)}"
        yield key, _encode(endpoint_slice(scale, number), created)


def _encode(obj: Object, created: str) -> bytes:
    return msgspec.json.encode({**obj, "metadata": {**obj["metadata"], "creationTimestamp": created}})


def ip_address(number: int) -> Object:
    """What says that a ClusterIP is taken (KEP-1880); without it the API server's repair loop would make it."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "IPAddress",
        "metadata": {
            "name": service_ip(number),
            "uid": _uid(1, number),
            "labels": {
                "ipaddress.kubernetes.io/ip-family": "IPv4",
                "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
            },
        },
        "spec": {"parentRef": {"resource": "services", "namespace": NAMESPACE, "name": service_name(number)}},
    }


def service(number: int) -> Object:
    """A Service without selector, so that no controller touches its slices."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(service_name(number), _uid(2, number)),
        "spec": {
            "type": "ClusterIP",
            "clusterIP": service_ip(number),
            "clusterIPs": [service_ip(number)],
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
            "sessionAffinity": "None",
            "ports": [{"name": "http", "protocol": "TCP", "port": PORT, "targetPort": TARGET_PORT}],
        },
        "status": {"loadBalancer": {}},
    }


def endpoint_slice(scale: Scale, number: int) -> Object:
    """The one slice of Service `number`."""
    labels = {
        "kubernetes.io/service-name": service_name(number),
        "endpointslice.kubernetes.io/managed-by": "bench",
    }
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {**_metadata(slice_name(number), _uid(3, number)), "labels": labels, "generation": 1},
        "addressType": "IPv4",
        "ports": [{"name": "http", "protocol": "TCP", "port": TARGET_PORT}],
        "endpoints": endpoints(scale, number),
    }


def endpoints(scale: Scale, number: int, replacement: str | None = None) -> list[Object]:
    """The endpoints of Service `number`; `replacement` is an address in the place of the first one's."""
    addresses = [endpoint_ip(scale, number, index) for index in range(scale.endpoints)]
    if replacement is not None:
        addresses[0] = replacement
    return [_endpoint(address, number * scale.endpoints + index) for index, address in enumerate(addresses)]


def service_name(number: int) -> str:
    """Name of Service `number` in its namespace."""
    return f"web-{number}"


def slice_name(number: int) -> str:
    """Name of its slice, with a suffix as the controller gives one."""
    return f"web-{number}-x7k2p"


def _metadata(name: str, uid: str) -> Object:
    return {"name": name, "namespace": NAMESPACE, "uid": uid}


def _endpoint(address: str, count: int) -> Object:
    pod = address.replace(".", "-")
    return {
        "addresses": [address],
        "conditions": {"ready": True, "serving": True, "terminating": False},
        "nodeName": f"worker-{count % _NODES}",
        "zone": _ZONES[count % _NODES % len(_ZONES)],
        "targetRef": {"kind": "Pod", "namespace": NAMESPACE, "name": f"web-{pod}", "uid": _uid(4, count)},
    }


def _uid(kind: int, count: int) -> str:
    return f"00000000-0000-4000-800{kind}-{count:012d}"
