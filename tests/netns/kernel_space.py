"""An empty network namespace with our tables' writer, its monitor and the installed nft in it."""

import subprocess
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager

from e2e.world.netns import command_in, create_namespaces, remove_namespaces, run_in, unique_prefix
from endpointslice.types import IP, Family, Protocol
from proxy.kernel.attributes import iter_attributes, pack_name, parse_attributes
from proxy.kernel.batch import Message, Type
from proxy.kernel.change import Change, Elements, MapChange
from proxy.kernel.connection import Connection
from proxy.kernel.elements import LIST_ELEMENTS
from proxy.kernel.monitor import Monitor
from proxy.kernel.netlink import NftKernel
from proxy.kernel.ruleset import TABLE, SetId, SetName
from proxy.planner.keys import pack_index, pack_target, pack_vip

BOTH = (Family.IPV4, Family.IPV6)
PORTS = SetId(Family.IPV4, SetName.SERVICE_PORTS)
ENDPOINTS = SetId(Family.IPV4, SetName.ENDPOINTS)
CLUSTER_IPS = SetId(Family.IPV4, SetName.CLUSTER_IPS)
WEB = pack_vip(IP("10.96.0.1"), Protocol.TCP, 80)
DNS = pack_vip(IP("10.96.0.10"), Protocol.UDP, 53)
ONE_SERVICE: dict[SetId, Elements] = {
    PORTS: {WEB: b"goto pick_2"},
    ENDPOINTS: {WEB + pack_index(index): pack_target(IP(f"10.244.0.{index + 2}"), 8080) for index in range(2)},
    SetId(Family.IPV6, SetName.CLUSTER_IPS): {bytes(16): b""},
}


class Space:
    """One namespace; what is opened here is closed with it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.opened = ExitStack()

    def open_kernel(self, families: Collection[Family] = BOTH) -> NftKernel:
        return self.opened.enter_context(run_in(self.name, lambda: NftKernel(families)))

    def open_monitor(self, kernel: NftKernel, families: Collection[Family] = BOTH) -> Monitor:
        monitor = run_in(self.name, lambda: Monitor(kernel.port_id, families))
        self.opened.callback(monitor.close)
        return monitor

    def nft(self, text: str, *, check: bool = True) -> subprocess.CompletedProcess[str]:
        """The installed nft on a text."""
        return subprocess.run(
            command_in(self.name, ["nft", "-f", "-"]), input=text, capture_output=True, text=True, check=check
        )

    def list_text(self, what: str) -> str:
        """What nft lists of a thing, such as `map ip closeby endpoints`."""
        return subprocess.run(
            command_in(self.name, ["nft", "-n", "list", *what.split()]), capture_output=True, text=True, check=True
        ).stdout

    def dump_elements(self, set_id: SetId) -> list[bytes]:
        """Each element's bytes as the kernel gives them, sorted."""
        connection = run_in(self.name, Connection)
        names = pack_name(1, TABLE) + pack_name(2, set_id.name)
        replies = list(connection.dump(Message(Type.GETSETELEM, set_id.family, names)))
        connection.close()
        bodies = [parse_attributes(reply.payload)[LIST_ELEMENTS] for reply in replies]
        return sorted(body[first:last] for body in bodies for _kind, first, last in iter_attributes(body))


@contextmanager
def open_space(label: str = "kernel") -> Iterator[Space]:
    """A namespace that is gone afterwards."""
    name = unique_prefix(label) + "node"
    create_namespaces([name])
    try:
        space = Space(name)
        with space.opened:
            yield space
    finally:
        remove_namespaces([name])


def put(set_id: SetId, delete: Elements, add: Elements) -> Change:
    """A change of one set."""
    return Change({set_id: MapChange(delete, add)})
