"""What every object of the API has, on the wire: its metadata, and the envelopes of lists and watches.

Only the fields that are read, so that everything else is skipped unparsed. Absent and null are the same to the API's
own Go types, so every field may be both; what absence means is decided where the value is converted.
"""

from typing import Generic, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

T = TypeVar("T")

SERVICE_NAME = "kubernetes.io/service-name"
SERVICE_PROXY_NAME = "service.kubernetes.io/service-proxy-name"
HEADLESS = "service.kubernetes.io/headless"
ZONE = "topology.kubernetes.io/zone"
LEAVING_TAINT = "ToBeDeletedByClusterAutoscaler"  # KEP-3836: load balancers should send nothing new to the node
TRIGGERED = "endpoints.kubernetes.io/last-change-trigger-time"
ANNOUNCE_ON = "closeby.dev/announce-on"
PREFER_NODES = "closeby.dev/prefer-nodes"


class Wire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A part of an object; `gc=False` because JSON has no cycles."""


class Labels(Wire, frozen=True):
    """The labels that hide a Service or a slice from kube-proxy by their mere presence, and a slice's Service."""

    service_proxy_name: str | UnsetType | None = msgspec.field(default=UNSET, name=SERVICE_PROXY_NAME)
    headless: str | UnsetType | None = msgspec.field(default=UNSET, name=HEADLESS)
    service_name: str | None = msgspec.field(default=None, name=SERVICE_NAME)
    zone: str | None = msgspec.field(default=None, name=ZONE)


class Annotations(Wire, frozen=True):
    """Those that are read."""

    triggered: str | None = msgspec.field(default=None, name=TRIGGERED)
    announce_on: str | None = msgspec.field(default=None, name=ANNOUNCE_ON)
    prefer_nodes: str | None = msgspec.field(default=None, name=PREFER_NODES)


class OwnerReference(Wire, frozen=True):
    """What an object belongs to."""

    kind: str = ""
    name: str = ""
    api_version: str = ""
    controller: bool | None = None


class Metadata(Wire, frozen=True):
    """ObjectMeta."""

    name: str = ""
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: Labels | None = None
    annotations: Annotations | None = None
    owner_references: tuple[OwnerReference, ...] | None = None


class WireObject(Wire, frozen=True):
    """Any object, by its name."""

    metadata: Metadata


class ListMetadata(Wire, frozen=True):
    """ListMeta; `continue` is a word of Python's."""

    resource_version: str | None = None
    continue_token: str | None = msgspec.field(default=None, name="continue")


class Continued(Wire, frozen=True):
    """One page of a list, of which only its end matters."""

    metadata: ListMetadata = ListMetadata()


class ObjectList(Wire, Generic[T], frozen=True):
    """One page of a list; Go writes an empty one as null."""

    items: list[T] | None
    kind: str | None = None
    metadata: ListMetadata = ListMetadata()


class Event(Wire, frozen=True):
    """One line of a watch."""

    type: str
    object: msgspec.Raw


class Status(Wire, frozen=True):
    """What an ERROR event carries."""

    code: int | None = None
    message: str | None = None


def is_other_proxys(metadata: Metadata) -> bool:
    """Whether a Service's label leaves it to another proxy; any value counts, as with kube-proxy's label selector."""
    return metadata.labels is not None and metadata.labels.service_proxy_name is not UNSET


def is_headless_services(metadata: Metadata) -> bool:
    """Whether a slice's label says that its Service is headless.

    On a Service that label means nothing (kube-proxy 1.36), nor does the other one on a slice. API servers before 1.36
    are asked to leave such objects out (proxy/sources/apiserver.py).
    """
    return metadata.labels is not None and metadata.labels.headless is not UNSET
