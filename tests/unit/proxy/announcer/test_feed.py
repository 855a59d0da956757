"""The feed over real sockets: what the announcer hears of its proxy, and of one that dies or talks nonsense."""

import queue
import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from endpointslice.snapshot import EMPTY, Snapshot
from endpointslice.types import IP, Kind, NodeName, Service, ServiceName
from proxy.addresses.decode import Change
from proxy.addresses.state import State
from proxy.addresses.types import Kind as NodeKind
from proxy.addresses.types import NodeState
from proxy.announcer.around import Surveyed
from proxy.announcer.feed_client import FeedClient, Gone, News
from proxy.announcer.feed_frames import PART, Alive, Part, pack_frame, parse_content
from proxy.announcer.feed_server import Feed
from proxy.announcer.feed_socket import read_content
from proxy.announcer.served import Served
from proxy.commits import Commit
from proxy.l2.candidates import Demand
from proxy.sources import KindStatus

PATIENCE_S = 60.0
NODE = NodeName("n1")
VIP = IP("192.0.2.10")
ONE = pack_frame(Part((Served(VIP, Demand()),)))


class World:
    """A socket in a folder, and what its client heard."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "feed.sock"
        self.heard: queue.SimpleQueue[News | Gone] = queue.SimpleQueue()
        self.connected = True
        self._client = FeedClient(self.path, self.heard.put)

    def listen(self) -> None:
        """Start the client."""
        self._client.start()

    def stop(self) -> None:
        """Stop it."""
        self._client.stop()

    def feed(self) -> Feed:
        """A proxy's, started."""
        feed = Feed(self.path, NODE, lambda: {Kind.SERVICE: KindStatus(connected=self.connected)})
        feed.start()
        return feed

    def table(self) -> set[IP]:
        """Of the next news that have one."""
        while True:
            news = self.heard.get(timeout=PATIENCE_S)
            if isinstance(news, News) and news.said is not None:
                return set(news.said.served)

    def gone(self) -> str:
        """Why the proxy is gone, of the next such news."""
        while True:
            news = self.heard.get(timeout=PATIENCE_S)
            if isinstance(news, Gone):
                return news.why


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    opened = World(tmp_path)
    yield opened
    opened.stop()


@pytest.fixture
def feed(world: World) -> Iterator[Feed]:
    started = world.feed()
    yield started
    started.close()


def serving(*vips: str) -> Commit:
    services: dict[ServiceName, Service] = {}
    for vip in vips:
        name = ServiceName(f"default/{vip}")
        services[name] = Service(name, (IP("10.96.0.1"),), (), load_balancer_ips=(IP(vip),))
    snapshot: Snapshot = replace(EMPTY, services=services)
    return Commit(snapshot, None)


def test_the_socket_is_for_its_owner_only(world: World, feed: Feed) -> None:
    assert stat.S_IMODE(world.path.stat().st_mode) == 0o600
    feed.close()
    assert not world.path.exists()


def test_nothing_is_said_before_the_kernel_has_agreed_to_something(world: World, feed: Feed) -> None:
    world.listen()
    with pytest.raises(queue.Empty):
        world.heard.get(timeout=1.5)

    feed.committed(serving())

    assert world.table() == set()


@pytest.mark.usefixtures("feed")
def test_a_proxy_that_knows_nothing_yet_says_that_it_lives(world: World) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as reader:
        reader.settimeout(PATIENCE_S)
        reader.connect(str(world.path))

        assert isinstance(parse_content(read_content(reader)), Alive)


def test_changes_are_followed(world: World, feed: Feed) -> None:
    feed.committed(serving("192.0.2.1", "192.0.2.2"))
    world.listen()
    assert world.table() == {"192.0.2.1", "192.0.2.2"}

    feed.committed(serving("192.0.2.2", "192.0.2.3"))

    assert world.table() == {"192.0.2.2", "192.0.2.3"}


def test_a_table_of_many_parts_comes_whole(world: World, feed: Feed) -> None:
    vips = {f"192.0.{number // 250}.{number % 250}" for number in range(3 * PART + 1)}
    feed.committed(serving(*vips))

    world.listen()

    assert world.table() == vips


def test_an_api_that_is_lost_makes_the_table_older_and_nothing_else(world: World, feed: Feed) -> None:
    feed.committed(serving("192.0.2.1"))
    world.listen()
    world.table()
    world.connected = False

    while True:
        news = world.heard.get(timeout=PATIENCE_S)
        assert isinstance(news, News)
        assert news.said is None
        if news.age_s > 1.0:
            return


def test_a_proxy_that_ends_is_gone_and_its_successor_is_found(world: World) -> None:
    first = world.feed()
    first.committed(serving("192.0.2.1"))
    world.listen()
    world.table()
    first.close()
    assert world.gone()

    second = world.feed()
    second.committed(serving("192.0.2.2"))

    assert world.table() == {"192.0.2.2"}
    second.close()


def test_a_client_that_is_stopped_leaves_no_thread_and_says_nothing_more(world: World, feed: Feed) -> None:
    feed.committed(serving("192.0.2.1"))
    world.listen()
    world.table()

    world.stop()

    assert "feed" not in {thread.name for thread in threading.enumerate()}
    while not world.heard.empty():
        assert isinstance(world.heard.get(), News)


def test_a_feed_that_is_closed_leaves_its_readers_and_no_thread(world: World) -> None:
    feed = world.feed()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as silent:
        silent.connect(str(world.path))
        read_content(silent)

        feed.close()

        assert "announcer-heard" not in {thread.name for thread in threading.enumerate()}
        silent.settimeout(PATIENCE_S)
        while silent.recv(4096):
            pass


@pytest.mark.parametrize(
    ("said", "why"),
    [
        pytest.param(ONE[:-1], "the other side closed the connection", id="dies in the middle of a message"),
        pytest.param(ONE[:2], "the other side closed the connection", id="dies in the middle of a length"),
        pytest.param(b"\xff\xff\xff\xff", "a frame of 4294967295 bytes", id="a length beyond reason"),
        pytest.param(b"\0\0\0\1x", "Expected", id="no MessagePack"),
    ],
)
def test_a_peer_that_dies_or_talks_nonsense_gives_no_table(world: World, said: bytes, why: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(world.path))
        server.listen(16)
        threading.Thread(target=_say, args=(server, said), daemon=True).start()
        world.listen()

        assert why in world.gone()
        assert world.heard.empty()


def _say(server: socket.socket, said: bytes) -> None:
    peer, _address = server.accept()
    with peer:
        peer.sendall(said)


def test_with_surroundings_nothing_is_told_before_they_are_known(world: World) -> None:
    feed = Feed(world.path, NODE, dict, surveys=True)
    feed.start()
    feed.committed(serving("192.0.2.1"))
    world.listen()
    with pytest.raises(queue.Empty):
        world.heard.get(timeout=1.5)

    cordoned = Change(NodeKind.NODE, NODE, NodeState(NODE, cordoned=True))
    feed.look_around(Surveyed(State(objects={NodeKind.NODE: {NODE: cordoned}})))

    news = world.heard.get(timeout=PATIENCE_S)
    assert isinstance(news, News)
    assert news.said is not None
    assert news.said.around.nodes[NODE].cordoned
    feed.close()
