"""Who lives on the LAN, and at which addresses: all follow from a member's number. No I/O.

172.31.0.0/24   fd00:172:31::/64   .1 router, .10+N node N, .100 the VIP, .200 warm, .208 to .223 cold
02:00:00:00:00:NN                  the MAC of the member with that last byte of its address
"""

from enum import StrEnum
from typing import NamedTuple

PREFIX_LENGTHS = {"ipv4": 24, "ipv6": 64}
VIPS = {"ipv4": "172.31.0.100", "ipv6": "fd00:172:31::64"}
SLOTS = 16  # addresses of the cold client: each question is asked from the next one, so its answer tells which it was
TCP_PORT = 8080
UDP_PORT = 8081
MOST_NODES = 9
_ROUTER, _WARM, _COLD = 1, 200, 208


class Family(StrEnum):
    """Of addresses."""

    IPV4 = "ipv4"
    IPV6 = "ipv6"


class Member(NamedTuple):
    """A namespace on the bridge, with its first addresses on `eth0`."""

    name: str
    netns: str
    number: int  # last byte of its addresses and of its MAC

    @property
    def mac(self) -> str:
        """Its first MAC."""
        return make_mac(self.number)

    @property
    def port(self) -> str:
        """Its link's other end, a port of the bridge."""
        return f"p-{self.name}"

    def address(self, family: str) -> str:
        """Its address of the family."""
        return make_address(family, self.number)


def plan_nodes(prefix: str, count: int) -> tuple[Member, ...]:
    """Nodes 1 to `count`. ValueError above MOST_NODES, and below 2: nobody could take over."""
    if not 2 <= count <= MOST_NODES:
        raise ValueError(f"the LAN has 2 to {MOST_NODES} nodes, not {count}")
    return tuple(Member(f"node-{n}", f"{prefix}node-{n}", 10 + n) for n in range(1, count + 1))


def plan_router(prefix: str) -> Member:
    """The gateway of all others; answers pings, forwards nothing."""
    return Member("router", f"{prefix}router", _ROUTER)


def plan_warm(prefix: str) -> Member:
    """The client whose kernel keeps its neighbour entry as kernels do."""
    return Member("warm", f"{prefix}warm", _WARM)


def plan_cold(prefix: str) -> Member:
    """The client that asks for the VIP's MAC again and again, by frames of its own."""
    return Member("cold", f"{prefix}cold", _COLD)


def cold_addresses(family: str) -> tuple[str, ...]:
    """Whom the cold client asks as, one after the other."""
    return tuple(make_address(family, _COLD + slot) for slot in range(SLOTS))


def make_address(family: str, number: int) -> str:
    """The LAN's address with that last byte."""
    return f"172.31.0.{number}" if family == Family.IPV4 else f"fd00:172:31::{number:x}"


def make_mac(number: int, generation: int = 0) -> str:
    """A locally administered MAC; another generation is the same member's next one."""
    return f"02:00:00:00:{generation:02x}:{number:02x}"


def name_of(mac: str, members: tuple[Member, ...]) -> str:
    """Whose MAC it is, of any generation; the MAC itself if nobody's."""
    last = int(mac.rpartition(":")[2], 16)
    return next((member.name for member in members if member.number == last), mac)
