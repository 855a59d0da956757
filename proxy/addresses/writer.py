"""EFFECT: one planned write to the API server; comes back with the object as it is stored."""

import msgspec

from proxy.addresses.decode import Change, decode_object
from proxy.addresses.plan import GROUP_VERSION, Write
from proxy.addresses.types import Kind
from proxy.sources.transport import ApiServer, Body

_STRATEGIC = "application/strategic-merge-patch+json"  # conditions are merged by their type
_MERGE = "application/merge-patch+json"  # all that custom resources take


def send_write(api: ApiServer, write: Write, namespace: str) -> Change:
    """Patch the status; `namespace` is that of pools. Raises ApiError: 409 if the object changed, 404 if it's gone."""
    if write.kind is Kind.SERVICE:
        its_own, _slash, name = write.name.partition("/")
        path, kind = f"/api/v1/namespaces/{its_own}/services/{name}/status", _STRATEGIC
    else:
        path, kind = f"/apis/{GROUP_VERSION}/namespaces/{namespace}/ipaddresspools/{write.name}/status", _MERGE
    stored = api.send(path, Body("PATCH", msgspec.json.encode(write.patch), kind))
    return decode_object(write.kind, stored)
