"""Services without their externalIPs, for clusters that serve none (kube-proxy's gate AllowServiceExternalIPs=false).

KEP-5707: whoever may write a Service can claim any address by spec.externalIPs.
"""

from collections.abc import Iterable

import msgspec

from endpointslice.reasons import Reason, describe, name_object
from endpointslice.snapshot import Changed, Listed, Snapshot, apply_events
from endpointslice.types import Kind, Service, Skipped


def drop_external_ips(events: Iterable[Changed | Listed]) -> tuple[Changed | Listed, ...]:
    """The events, their Services without external IPs; those that had some say so in `skipped`."""
    return tuple(
        Listed(event.kind, tuple(map(_drop, event.objects))) if isinstance(event, Listed) else _drop(event)
        for event in events
    )


def without_external_ips(snapshot: Snapshot) -> Snapshot:
    """The same of a whole state."""
    services = (
        Changed(Kind.SERVICE, name, service, snapshot.skipped.get((Kind.SERVICE, name), ()))
        for name, service in snapshot.services.items()
        if service.external_ips
    )
    return apply_events(snapshot, drop_external_ips(services))[0]


def _drop(change: Changed) -> Changed:
    service = change.object
    if not isinstance(service, Service) or not service.external_ips:
        return change
    detail = describe("spec.externalIPs", list(service.external_ips))
    skipped = Skipped(name_object(Kind.SERVICE, change.name), Reason.EXTERNAL_IPS_OFF, detail)
    bare = msgspec.structs.replace(service, external_ips=())
    return msgspec.structs.replace(change, object=bare, skipped=(*change.skipped, skipped))
