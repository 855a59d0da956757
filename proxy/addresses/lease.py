"""Which replica leads: what a Lease (coordination.k8s.io/v1) says, and what to do about it. Pure.

As client-go's leader election: a Lease that wasn't renewed for its duration, by the watcher's own clock, may be taken.
Clocks are never compared between machines.
"""

from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from endpointslice.decode import UNREADABLE, DecodeError
from endpointslice.metadata import Wire
from proxy.addresses.wire import Metadata


class Step(StrEnum):
    """What to do now."""

    CREATE = "create"
    TAKE = "take"
    RENEW = "renew"
    WAIT = "wait"


class _Spec(Wire, frozen=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    lease_transitions: int | None = None
    renew_time: str | None = None


class _Lease(Wire, frozen=True):
    metadata: Metadata
    spec: _Spec | None = None


class Record(NamedTuple):
    """A Lease as it is stored."""

    holder: str  # "": given back
    duration_s: float
    acquired: str
    transitions: int
    version: str


class Timing(NamedTuple):
    """How long a Lease lasts, and what follows from it; client-go's are 15, 10 and 2 s."""

    duration_s: float = 15.0

    @property
    def writable_s(self) -> float:
        """How long after the start of a renewal its holder may write: less than what others wait for."""
        return self.duration_s * 2 / 3

    @property
    def retry_s(self) -> float:
        """Between two looks."""
        return self.duration_s * 2 / 15


def decode_lease(body: bytes) -> Record:
    """The stored Lease. Raises DecodeError."""
    try:
        lease = msgspec.json.decode(body, type=_Lease)
    except UNREADABLE as error:
        raise DecodeError(str(error)) from error
    spec = lease.spec or _Spec()
    return Record(
        spec.holder_identity or "",
        float(spec.lease_duration_seconds or 0),
        spec.acquire_time or "",
        spec.lease_transitions or 0,
        lease.metadata.resource_version or "",
    )


def choose_step(record: Record | None, identity: str, unchanged_s: float) -> Step:
    """`unchanged_s` is how long we have seen the Lease as it is now."""
    if record is None:
        return Step.CREATE
    if record.holder == identity:
        return Step.RENEW
    return Step.TAKE if not record.holder or unchanged_s >= record.duration_s else Step.WAIT


def render_lease(
    place: tuple[str, str], record: Record | None, identity: str, duration_s: float, now: str
) -> dict[str, Any]:
    """The Lease (`place` is its namespace and name) held by `identity` from now on; "" gives it back."""
    namespace, name = place
    kept = record is not None and record.holder == identity
    metadata: dict[str, Any] = {"name": name, "namespace": namespace}
    if record is not None:
        metadata["resourceVersion"] = record.version  # 409 if another was faster
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": {
            "holderIdentity": identity,
            "leaseDurationSeconds": max(1, round(duration_s)),
            "acquireTime": record.acquired if record is not None and (kept or not identity) else now,
            "renewTime": now,
            "leaseTransitions": record.transitions + (not kept and bool(identity)) if record is not None else 0,
        },
    }
