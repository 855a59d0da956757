"""What other threads tell the loop."""

from typing import NamedTuple

from endpointslice.types import IP
from proxy.events import Batch


class Events(NamedTuple):
    """From a source."""

    batch: Batch


class HostAddresses(NamedTuple):
    """The host's own addresses, at start and after each change."""

    addresses: frozenset[IP]


class ForeignChange(NamedTuple):
    """Another program changed our tables, or may have."""


class Stop(NamedTuple):
    """End the loop; the rules stay."""


Message = Events | HostAddresses | ForeignChange | Stop
