"""The endpoints of one Service port: the slices of its Service, merged."""

from collections.abc import Iterable

from endpointslice.types import Endpoint, Family, ServicePort, Slice


def merge_endpoints(slices: Iterable[Slice], port: ServicePort, family: Family) -> tuple[Endpoint, ...]:
    raise NotImplementedError
