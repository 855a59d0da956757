"""A node with the whole proxy on it, from objects to packets, and clients that go on talking over one flow."""

import json
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from e2e.world.cluster import World
from e2e.world.netns import run_in
from endpointslice.snapshot import Changed
from endpointslice.types import (
    CIDR,
    IP,
    Family,
    Kind,
    Node,
    NodeName,
    Object,
    Protocol,
    Service,
    ServiceName,
    ServicePort,
    Slice,
    SliceEndpoint,
    SliceName,
    SlicePort,
)
from proxy.commits import Commit
from proxy.conntrack.cleaner import Cleaner
from proxy.conntrack.coming import Coming
from proxy.conntrack.flows import Judgement
from proxy.conntrack.netlink import FlowTable, Swept
from proxy.kernel.netlink import NftKernel
from proxy.messages import Events, Stop
from proxy.pacing import Pacing
from proxy.planner.settings import Settings
from proxy.sync import Loop
from tests.loop import KeepingSource, first_lists
from tests.strategies import kind_of
from tests.waiting import until

NODE = "north-1"
DNS = ServicePort("dns", Protocol.UDP, 53, 30053)
WEB = ServicePort("web", Protocol.TCP, 80)
CLUSTER_IPS = {Family.IPV4: IP("10.96.1.10"), Family.IPV6: IP("fd00:96:1::10")}
_PATIENCE_S = 60.0  # a test that waits this long has failed
NO_ANSWER_S = 0.5  # after which there will be none


def dns_service(name: str = "default/dns", /, **fields: object) -> Service:
    """A NodePort Service of both families: UDP 53, node port 30053, and TCP 80."""
    plain: dict[str, object] = {"type": "NodePort", "ports": (DNS, WEB), "cluster_ips": tuple(CLUSTER_IPS.values())}
    return Service(ServiceName(name), **{**plain, **fields})  # type: ignore[arg-type]  # a test's own words


def dns_slices(world: World, pods: Iterable[str], service: str = "default/dns") -> tuple[Slice, Slice]:
    """The Service's slices, with these pods as its endpoints."""
    ports = (SlicePort("dns", Protocol.UDP, 8080), SlicePort("web", Protocol.TCP, 8080))
    members = [world.pods[pod] for pod in pods]
    v4 = tuple(SliceEndpoint(IP(pod.host.ipv4), node=NodeName(pod.node)) for pod in members)
    v6 = tuple(SliceEndpoint(IP(pod.host.ipv6), node=NodeName(pod.node)) for pod in members)
    name = ServiceName(service)
    return (
        Slice(SliceName(f"{service}-4"), name, Family.IPV4, ports, v4),
        Slice(SliceName(f"{service}-6"), name, Family.IPV6, ports, v6),
    )


class CountingTable:
    """The real flows; the proxy is told before each look, and what it did."""

    def __init__(self, netns: str, proxy: "Proxy") -> None:
        self._table = run_in(netns, FlowTable)
        self._proxy = proxy

    def sweep(self, family: Family, judgement: Judgement, coming: Coming) -> Swept:
        self._proxy.before_sweep()
        swept = self._table.sweep(family, judgement, coming)
        self._proxy.swept.append(swept)
        return swept

    def close(self) -> None:
        self._table.close()


class Proxy:
    """The loop and the cleaner of one node, as the daemon has them."""

    def __init__(self, world: World) -> None:
        netns = world.host(NODE).netns
        self._node = Node(NodeName(NODE), addresses=(IP(world.host(NODE).ipv4), IP(world.host(NODE).ipv6)))
        self.swept: list[Swept] = []
        self.commits: list[Commit] = []
        self.before_sweep: Callable[[], object] = lambda: None  # what happens once a look is decided on
        self._cleaner = Cleaner(tuple(Family), lambda: CountingTable(netns, self))
        self._cleaner.start()
        self._kernel = run_in(netns, NftKernel)
        settings = Settings(NodeName(NODE), (CIDR("10.244.0.0/16"), CIDR("fd00:10:244::/56")))
        self._loop = Loop(settings, KeepingSource(), self._kernel, Pacing(0.0, 1.0), [self._cleaner, self])
        self._thread = threading.Thread(target=self._loop.run, daemon=True)
        self._thread.start()

    def committed(self, commit: Commit) -> None:
        self.commits.append(commit)

    def list_all(self, *objects: Object) -> None:
        """The first complete lists; returns when all flows have been looked at."""
        for events in first_lists(self._node, *objects):
            self._loop.inbox.put(events)
        self.await_sweep(0)

    def put(self, *objects: Object) -> None:
        """These objects, changed; returns when the flows have been looked at."""
        before = len(self.swept)
        self.change(*objects)
        self.await_sweep(before)

    def change(self, *objects: Object) -> None:
        """These objects, changed; returns when the kernel has it."""
        before = len(self.commits)
        self._loop.inbox.put(Events(tuple(Changed(kind_of(one), one.name, one) for one in objects)))
        until(lambda: len(self.commits) > before)

    def delete(self, *names: tuple[Kind, str]) -> None:
        """These objects are gone; returns when the flows have been looked at."""
        before = len(self.swept)
        self._loop.inbox.put(Events(tuple(Changed(kind, name, None) for kind, name in names)))
        self.await_sweep(before)

    def await_sweep(self, before: int) -> None:
        """Wait until both families were looked at since there were `before` looks."""
        until(lambda: len(self.swept) >= before + 2)

    def stop(self) -> None:
        """As a daemon ends: the table stays."""
        self._loop.inbox.put(Stop())
        self._thread.join()
        self._cleaner.stop()
        self._kernel.close()


@contextmanager
def running(world: World) -> Iterator[Proxy]:
    """A proxy that is stopped in the end; its table stays."""
    proxy = Proxy(world)
    try:
        yield proxy
    finally:
        proxy.stop()


class Talk:
    """One UDP socket, connected to one destination: one flow for conntrack."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self.port: int = sock.getsockname()[1]

    def ask(self, wait_s: float = _PATIENCE_S) -> str:
        """The name of the server that answers; "" if none does in time."""
        self._socket.settimeout(wait_s)
        try:
            self._socket.send(b"who?")
            return str(json.loads(self._socket.recv(2048))["name"])
        except OSError:  # refused, or too late
            return ""

    def until_answered_by(self, name: str) -> None:
        """Go on asking over the same flow until that server answers."""
        until(lambda: self.ask(NO_ANSWER_S) == name)


class Visit:
    """One TCP connection that is kept open."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        sock.settimeout(_PATIENCE_S)

    def ask(self) -> str:
        """The name of the server at the other end."""
        self._socket.sendall(b"GET / HTTP/1.1\r\nHost: world\r\n\r\n")
        answer = b""
        while not answer.endswith(b"}\n"):
            answer += self._socket.recv(4096)
        return str(json.loads(answer.rpartition(b"\r\n")[2])["name"])


class Clients:
    """Opens flows from the world's hosts, and closes them all in the end."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.opened = ExitStack()

    def talk(self, client: str, ip: str, port: int) -> Talk:
        return Talk(self._connect(client, socket.SOCK_DGRAM, ip, port))

    def visit(self, client: str, ip: str, port: int) -> Visit:
        return Visit(self._connect(client, socket.SOCK_STREAM, ip, port))

    def try_from(self, client: str, port: int, to: tuple[str, int], wait_s: float) -> Visit | None:
        """A TCP connection from that source port; None: nobody answered in time."""
        sock = run_in(self.world.host(client).netns, lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM))
        self.opened.callback(sock.close)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("", port))
        sock.settimeout(wait_s)
        try:
            sock.connect(to)
        except TimeoutError:
            sock.close()
            return None
        return Visit(sock)

    def is_tracked(self, port: int, protocol: str = "udp") -> bool:
        """Whether the node's conntrack has a flow from that source port, as it lists it itself."""
        text = run_in(self.world.host(NODE).netns, Path("/proc/thread-self/net/nf_conntrack").read_text)
        return any(f" {protocol} " in line and f" sport={port} " in line for line in text.splitlines())

    def _connect(self, client: str, kind: socket.SocketKind, ip: str, port: int) -> socket.socket:
        family = socket.AF_INET6 if ":" in ip else socket.AF_INET
        sock = run_in(self.world.host(client).netns, lambda: socket.socket(family, kind))
        self.opened.callback(sock.close)
        sock.settimeout(_PATIENCE_S)
        sock.connect((ip, port))
        return sock
