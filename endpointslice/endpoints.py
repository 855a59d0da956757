"""The endpoints of one Service port: the slices of its Service, merged (rules m1-m18 of the README beside)."""

from collections.abc import Iterable

from endpointslice.types import Endpoint, Family, ServicePort, Slice, SliceEndpoint


def merge_endpoints(slices: Iterable[Slice], port: ServicePort, family: Family) -> tuple[Endpoint, ...]:
    """Every ip:port of the family behind the Service port, sorted by its text.

    Slice ports match by name and protocol; one name may have several numbers. Of two endpoints with one ip:port one
    that doesn't terminate wins (a pod's address was given to another), then the more useful one; the order of slices
    and of what is in them doesn't matter. Slices of several Services mustn't be mixed.
    """
    merged: dict[str, Endpoint] = {}
    brackets = family is Family.IPV6
    for piece in slices:
        if piece.family is not family:
            continue
        numbers = [other.port for other in piece.ports if other.name == port.name and other.protocol is port.protocol]
        for number in numbers if len(numbers) < 2 else set(numbers):  # noqa: PLR2004  # one is the usual case
            suffix = f"]:{number}" if brackets else f":{number}"
            for source in piece.endpoints:
                key = source.ip + suffix
                endpoint = _join(source, number)
                rival = merged.get(key)
                if rival is None or _rank(endpoint) > _rank(rival):
                    merged[key] = endpoint
    return tuple([endpoint for _text, endpoint in sorted(merged.items())])


def _join(source: SliceEndpoint, number: int) -> Endpoint:
    return Endpoint(
        source.ip,
        number,
        source.ready,
        source.serving,
        source.terminating,
        source.node,
        source.zone,
        source.for_zones,
        source.for_nodes,
        source.pod,
        source.pod_uid,
    )


def _rank(endpoint: Endpoint) -> tuple[object, ...]:
    """Greater wins (m13). What comes after the conditions only makes the order total."""
    return (
        not endpoint.terminating,
        endpoint.ready,
        endpoint.serving,
        endpoint.node or "",
        endpoint.zone or "",
        endpoint.pod or "",
        endpoint.pod_uid,
        sorted(endpoint.for_zones),
        sorted(endpoint.for_nodes),
    )
