"""What an announcer owns, over real sockets: told to each proxy that comes, and again only when it changes."""

import queue
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from endpointslice.types import IP, Kind, NodeName
from proxy.announcer.feed_client import FeedClient
from proxy.announcer.feed_server import Feed
from proxy.announcer.ownership import Holding, Ownership, pack_ownership
from proxy.announcer.ownership_sender import OwnershipSender
from proxy.sources import KindStatus

PATIENCE_S = 60.0
NOTHING_S = 1.5
ONE = Ownership((Holding(IP("192.0.2.1"), "eth0"),))
TWO = Ownership((Holding(IP("192.0.2.1"), "eth0"), Holding(IP("192.0.2.2"), "eth0")))


class World:
    """An announcer's two ends of the feed, and a proxy that writes down what it hears."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "feed.sock"
        self.owned = ONE
        self.heard: queue.SimpleQueue[Ownership] = queue.SimpleQueue()
        self.sender = OwnershipSender(lambda: self.owned, lambda: False)
        self._client = FeedClient(self.path, lambda _news: None, self.sender.connected)

    def start(self) -> None:
        self.sender.start()
        self._client.start()

    def stop(self) -> None:
        self.sender.stop()
        self._client.stop()

    def feed(self) -> Feed:
        feed = Feed(self.path, NodeName("n1"), lambda: {Kind.SERVICE: KindStatus(connected=True)}, heard=self.heard.put)
        feed.start()
        return feed

    def own(self, ownership: Ownership) -> None:
        self.owned = ownership
        self.sender.wake()

    def next(self) -> Ownership:
        return self.heard.get(timeout=PATIENCE_S)

    def hears_nothing(self) -> bool:
        try:
            self.heard.get(timeout=NOTHING_S)
        except queue.Empty:
            return True
        return False


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


@pytest.mark.usefixtures("feed")
def test_a_proxy_is_told_everything_and_then_what_changes(world: World) -> None:
    world.start()
    assert world.next() == ONE

    world.own(TWO)
    assert world.next() == TWO

    world.sender.wake()
    assert world.hears_nothing(), "the same is told once"


def test_the_next_proxy_is_told_everything_anew(world: World) -> None:
    first = world.feed()
    world.start()
    assert world.next() == ONE
    first.close()

    second = world.feed()

    assert world.next() == ONE
    second.close()


@pytest.mark.usefixtures("feed")
def test_who_has_handed_over_tells_nothing_more(world: World) -> None:
    world.start()
    assert world.next() == ONE

    world.sender.stop()
    world.own(TWO)

    assert world.hears_nothing()


@pytest.mark.parametrize("said", [b"\0\0\0\1x", b"\xff\xff\xff\xff", pack_ownership(ONE)[:-1]])
def test_a_peer_that_talks_nonsense_is_heard_no_more_and_the_next_is(world: World, feed: Feed, said: bytes) -> None:
    assert feed is not None
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stranger:
        stranger.connect(str(world.path))
        stranger.sendall(said)
    world.start()

    assert world.next() == ONE
