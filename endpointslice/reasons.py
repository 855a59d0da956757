"""Why an object, or a part of one, isn't used: stable codes for metrics, and the values that carry them."""

from enum import StrEnum
from typing import NamedTuple

from endpointslice.types import Kind, Object, Skipped


class Reason(StrEnum):
    """Codes of `Skipped.reason`."""

    # whole objects
    BAD_OBJECT = "bad-object"  # a field of the wrong type; the detail names it as "$.spec.ports[0].port"
    OTHER_PROXY = "other-proxy"  # a Service's label service.kubernetes.io/service-proxy-name
    HEADLESS_LABEL = "headless-label"  # a slice's label service.kubernetes.io/headless
    HEADLESS = "headless"  # clusterIP None
    EXTERNAL_NAME = "external-name"
    NO_CLUSTER_IP = "no-cluster-ip"
    NO_SERVICE_NAME = "no-service-name"  # a slice without its label
    FQDN = "fqdn"  # a slice of names, not addresses
    UNKNOWN_ADDRESS_TYPE = "unknown-address-type"
    NO_CIDR = "no-cidr"
    # parts
    BAD_ADDRESS = "bad-address"
    BAD_CIDR = "bad-cidr"
    OTHER_FAMILY = "other-family"  # an address that isn't of the family it is given for
    NO_ADDRESS = "no-address"  # an endpoint of a slice
    ALL_PORTS = "all-ports"  # a slice with endpoints and no ports: the API's "all ports", which nothing implements
    NO_PORT_NAME = "no-port-name"
    NO_PORT_NUMBER = "no-port-number"
    BAD_PORT = "bad-port"
    REPEATED_PORT = "repeated-port"
    UNKNOWN_PROTOCOL = "unknown-protocol"
    BAD_WEIGHT = "bad-weight"  # of a node in the annotation closeby.dev/prefer-nodes
    EXTERNAL_IPS_OFF = "external-ips-off"  # spec.externalIPs, where nobody may claim any


class Converted(NamedTuple):
    """What became of one object."""

    object: Object | None
    skipped: tuple[Skipped, ...] = ()


def name_object(kind: Kind, name: str) -> str:
    """The words for an object in `Skipped.object`."""
    return f"{kind} {name}"


def skip_object(kind: Kind, name: str, reason: Reason, detail: str = "") -> Converted:
    """An object that isn't used at all."""
    return Converted(None, (Skipped(name_object(kind, name), reason, detail),))


def describe(field: str, value: object) -> str:
    """The words for a field and its value in `Skipped.detail`."""
    return f"{field}: {value!r}"
