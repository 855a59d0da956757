"""A LAN of namespaces with real announcers on its nodes, a router, and a client that asks by ARP and NDP."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeVar

from msgspec.structs import replace

from e2e.world.hosts import Host, NodeSpec, plan_lan, plan_node, plan_outside
from e2e.world.links import render_lan, render_member
from e2e.world.netns import command_in, create_namespaces, remove_namespaces, run_in, run_ip, unique_prefix
from endpointslice.addresses import family_of
from endpointslice.snapshot import EMPTY
from endpointslice.types import IP, Family, NodeName, Service, ServiceName, Slice, SliceEndpoint, SliceName
from endpointslice.types import Kind as SourceKind
from proxy.addresses.accept import Accepted
from proxy.addresses.decode import Change
from proxy.addresses.ranges import number_of
from proxy.addresses.state import State
from proxy.addresses.types import Advertisement, Kind, NodeState, Pool, Range
from proxy.announcer.around import Surveyed
from proxy.announcer.arp import ask_arp
from proxy.announcer.control import Request, ask
from proxy.announcer.ethernet import parse_mac
from proxy.announcer.feed_server import Feed
from proxy.announcer.ndp import ask_ndp
from proxy.announcer.ownership import Ownership
from proxy.announcer.packets import PacketSocket
from proxy.announcer.status import Status, VipStatus
from proxy.commits import Commit
from proxy.sources import KindStatus
from tests.netns.announcer.heard import Heard, read_heard

T = TypeVar("T")
PATIENCE_S = 60.0
_LOOK_S = 0.05
_ECHO_ID = 1  # of no announcer, as those are random
KEY = b"a key of the tests, long enough"
V4 = (IP("172.30.0.240"), IP("172.30.0.241"), IP("172.30.0.242"))
V6 = IP("fd00:172:30::f0")
_PLAIN = Service(ServiceName("default/plain"), (IP("10.96.0.1"),), ())


class Node:
    """A namespace with an announcer, and a feed in place of its proxy."""

    def __init__(self, host: Host, folder: Path, flags: Sequence[str]) -> None:
        self.host = host
        self.name = host.name
        self._folder = folder
        self._flags = tuple(flags)
        self._process: subprocess.Popen[bytes] | None = None
        self.keys = folder / "keys"
        self.keys.mkdir(parents=True)
        self.write_key(1, KEY)
        self.feed_path = folder / "feed.sock"
        self.heard: list[Ownership] = []  # what its announcer told
        self.feed = Feed(
            self.feed_path,
            NodeName(host.name),
            lambda: {SourceKind.SERVICE: KindStatus(connected=True)},
            self.heard.append,
        )
        self.feed.start()

    @property
    def mac(self) -> str:
        """Of its only link, as it is now."""
        return read_mac(self.host)

    def write_key(self, number: int, key: bytes) -> None:
        """A file of the Secret."""
        (self.keys / str(number)).write_bytes(key)

    def serve(self, *vips: IP, only: frozenset[NodeName] = frozenset()) -> None:
        """What the node's kernel serves from now on: a Service of policy Cluster for each address; `only`: its pin."""
        head = replace(_PLAIN, announce_on=only)
        services, slices = {}, {}
        for vip in vips:
            name = ServiceName(f"default/{vip}")
            services[name] = replace(head, name=name, load_balancer_ips=(vip,))
            piece = Slice(SliceName(f"{name}-x"), name, family_of(vip), (), (SliceEndpoint(IP("10.244.9.9")),))
            slices[name] = {piece.name: piece}
        self.feed.committed(Commit(replace(EMPTY, services=services, slices=slices), None))

    def close_feed(self) -> None:
        """As if its proxy ended."""
        self.feed.close()

    def start(self) -> subprocess.Popen[bytes] | None:
        """Its announcer, as a process; the one before, which may run on."""
        before = self._process
        command = [
            *(sys.executable, "-m", "proxy", "announce", "--hostname-override", self.name),
            *("--keys", str(self.keys), "--proxy-socket", str(self.feed_path)),
            *("--announcer-control", str(self.control), "--memory", str(self._folder / "memory.json")),
            *("--metrics-bind-address", "", "--log-format", "console", *self._flags),
        ]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command_in(self.host.netns, ["setpriv", "--pdeathsig", "KILL", "--", *command]), stderr=log, stdout=log
            )
        return before

    @property
    def pid(self) -> int:
        """Of its announcer."""
        assert self._process is not None
        return self._process.pid

    @property
    def control(self) -> Path:
        """Its own socket."""
        return self._folder / "c.sock"

    @property
    def log(self) -> str:
        """What it wrote so far."""
        return (self._folder / "log").read_text()

    def signal(self, number: signal.Signals) -> None:
        """Send one to its announcer, and wait for the end of one that ends it."""
        assert self._process is not None
        self._process.send_signal(number)
        if number not in {signal.SIGSTOP, signal.SIGCONT}:
            self._process.wait(PATIENCE_S)

    def status(self) -> Status | None:
        """What it says; None while it doesn't answer."""
        try:
            return ask(self.control, Request("status"))
        except OSError:
            return None

    def command(self, word: Literal["drain", "undrain"]) -> None:
        """Say so to it."""
        ask(self.control, Request(word))

    def vip(self, vip: IP) -> VipStatus | None:
        """What it says of one address."""
        status = self.status()
        return next((one for one in status.vips if one.vip == vip), None) if status is not None else None

    def ip(self, line: str) -> None:
        """A command of iproute2 in its namespace."""
        run_ip({self.host.netns: [line]})

    def show(self, device: str) -> str:
        """What iproute2 says of a link of its namespace."""
        command = command_in(self.host.netns, ["ip", "-d", "-o", "link", "show", device])
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def kill(self) -> None:
        """At once, if it runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.kill()
            self._process.wait(PATIENCE_S)


class Lan:
    """All of it."""

    def __init__(self, lan: Host, client: Host, nodes: Sequence[Node]) -> None:
        self.lan = lan
        self.client = client
        self.nodes = tuple(nodes)
        self._socket = run_in(client.netns, lambda: PacketSocket("eth0", _ECHO_ID))

    def tell(self, *nodes: NodeState, advertisements: Sequence[Advertisement] = ()) -> None:
        """What the API has, to all nodes: these Nodes and plain ones, and a pool of all addresses if advertised."""
        states = {node.name: NodeState(NodeName(node.name)) for node in self.nodes} | {one.name: one for one in nodes}
        first, last, v6 = number_of(V4[0]), number_of(V4[-1]), number_of(V6)
        pool = Pool("lan", (Range(Family.IPV4, first, last), Range(Family.IPV6, v6, v6)))
        state = State(
            objects={Kind.NODE: {name: Change(Kind.NODE, name, one) for name, one in states.items()}},
            accepted=Accepted({"lan": pool} if advertisements else {}),
        )
        for node in self.nodes:
            node.feed.look_around(Surveyed(state, {one.name: one for one in advertisements}))

    def start(self, *vips: IP) -> None:
        """All announcers, which serve these."""
        for node in self.nodes:
            node.serve(*vips)
            node.start()

    def port(self, node: Node, state: str) -> None:
        """Plug the node's cable in or out: up or down."""
        number = self.nodes.index(node) + 1
        run_ip({self.lan.netns: [f"link set port-{number} {state}"]})

    def send(self, frame: bytes) -> None:
        """A frame of the client's."""
        self._socket.send(frame)

    def ask(self, vip: IP, for_s: float = 0.3, to: str = "") -> list[str]:
        """The MACs that answer one question of the client's, each time that they do; `to`: asks that MAC alone."""
        self._ask(vip, to)
        return self.replies(vip, for_s)

    def answers(self, vip: IP, for_s: float = 0.3, to: str = "") -> list[str]:
        """As `ask`, where somebody must answer, however late; `for_s` is for more answers after the first."""
        self._ask(vip, to)
        return wait_for(lambda: self.replies(vip, _LOOK_S)) + self.replies(vip, for_s)

    def replies(self, vip: IP, for_s: float) -> list[str]:
        """The MACs in answers that the client hears in so long."""
        return [heard.mac for heard in self.listen(for_s) if heard.vip == vip and heard.kind == "reply"]

    def capture(self, vip: IP, for_s: float) -> list[bytes]:
        """The frames that come in after one question."""
        self._ask(vip, "")
        return self._capture(for_s)

    def _ask(self, vip: IP, to: str) -> None:
        mac, target = parse_mac(read_mac(self.client)), parse_mac(to)
        assert mac is not None
        while self._socket.receive() is not None:
            pass
        if ":" in vip:
            self._socket.send(ask_ndp(vip, mac, own=IP(self.client.ipv6), to=target))
        else:
            question = ask_arp(vip, mac, own=IP(self.client.ipv4), to=target) if target else None
            self._socket.send(question or ask_arp(vip, mac, own=IP(self.client.ipv4)))

    def listen(self, for_s: float) -> list[Heard]:
        """What the client hears of addresses in so long."""
        return [heard for data in self._capture(for_s) for heard in read_heard(data)]

    def _capture(self, for_s: float) -> list[bytes]:
        found: list[bytes] = []
        until_s = time.monotonic() + for_s
        while time.monotonic() < until_s:
            if (captured := self._socket.receive()) is not None:
                found.append(captured.data)
            else:
                time.sleep(0.002)
        return found

    def owner(self, vip: IP) -> Node:
        """The node whose MAC answers, waiting for one."""

        def look() -> Node | None:
            macs = set(self.ask(vip))
            return next((node for node in self.nodes if macs == {node.mac}), None)

        return wait_for(look)

    def close(self) -> None:
        """End the processes."""
        for node in self.nodes:
            node.kill()
            node.feed.close()
        self._socket.close()


def wait_for(look: Callable[[], T | None], patience_s: float = PATIENCE_S) -> T:
    """The first thing that is there."""
    until_s = time.monotonic() + patience_s
    while time.monotonic() < until_s:
        found = look()
        if found:
            return found
        time.sleep(_LOOK_S)
    raise AssertionError("nothing came")


def read_mac(host: Host, device: str = "eth0") -> str:
    """Of its link."""
    text = subprocess.run(
        command_in(host.netns, ["ip", "-o", "link", "show", device]), capture_output=True, text=True, check=True
    ).stdout
    return text.partition("link/ether ")[2][: len("00:00:00:00:00:00")]


@contextmanager
def open_lan(folder: Path, count: int = 3, flags: Sequence[str] = ()) -> Iterator[Lan]:
    """So many nodes, with nothing running yet."""
    prefix = unique_prefix("ann")
    lan, client = plan_lan(prefix + "lan"), plan_outside(prefix + "client")
    hosts = [plan_node(NodeSpec(f"n{at}", "za"), f"{prefix}n{at}", at).host for at in range(1, count + 1)]
    everybody = (*hosts, client)
    create_namespaces([lan.netns, *(host.netns for host in everybody)])
    opened = None
    try:
        run_ip({lan.netns: render_lan(lan, everybody)})
        run_ip({host.netns: render_member(host, lan) for host in everybody})
        opened = Lan(lan, client, [Node(host, folder / host.name, flags) for host in hosts])
        yield opened
    finally:
        if opened is not None:
            opened.close()
        remove_namespaces([lan.netns, *(host.netns for host in everybody)])
