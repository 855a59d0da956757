"""What a frame on the wire says of an address: the same words for ARP and for NDP."""

from typing import NamedTuple

from endpointslice.types import IP
from proxy.l2.events import ArpKind


class Sighting(NamedTuple):
    """One statement about one address. A frame may make two: who asks also says who it is."""

    kind: ArpKind
    ip: IP
    mac: bytes  # whose address it is said to be, or who asks
    broadcast: bool  # the frame went to several hosts
    asker: IP | None = None  # of a request; None: it names none
