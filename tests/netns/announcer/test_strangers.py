"""What strangers on the LAN send: replayed, cut and made-up datagrams, and frames that nobody should believe."""

import random
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.world.netns import run_in
from proxy.announcer.beat_sockets import GROUP_V4, Ports
from tests.netns.announcer.lan import PATIENCE_S, V4, V6, Lan, open_lan, wait_for
from tests.netns.announcer.test_announcers import all_agree, others

pytestmark = pytest.mark.netns

PORTS = Ports(7477)
SECONDS = 3.0


@pytest.fixture
def lan(tmp_path: Path) -> Iterator[Lan]:
    with open_lan(tmp_path) as opened:
        yield opened


@pytest.fixture
def calm(tmp_path: Path) -> Iterator[Lan]:
    """Nobody is taken for dead because this machine is busy."""
    with open_lan(tmp_path, flags=("--profile", "calm")) as opened:
        yield opened


def open_group(lan: Lan, port: int) -> socket.socket:
    """The client's socket, which hears what the announcers tell each other."""

    def make() -> socket.socket:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        own = socket.inet_aton(lan.client.ipv4)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(GROUP_V4) + own)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, own)
        sock.bind(("", port))
        sock.settimeout(PATIENCE_S)
        return sock

    return run_in(lan.client.netns, make)


def test_replayed_and_damaged_datagrams_change_nothing(calm: Lan) -> None:
    calm.start(V4[0])
    owner = calm.owner(V4[0])
    wait_for(lambda: all_agree(calm, V4[0]))
    said = {node.name: len(node.log) for node in calm.nodes}  # at the start two may have taken it at once
    chance = random.Random(7)

    with open_group(calm, PORTS.beats) as beats:
        recorded = [beats.recv(2000) for _ in range(9)]
        until_s = time.monotonic() + SECONDS
        while time.monotonic() < until_s:
            data = chance.choice(recorded)
            cut = data[: chance.randrange(len(data))]
            flipped = bytearray(data)
            flipped[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            for bad in (data, cut, bytes(flipped), chance.randbytes(chance.randrange(200))):
                for port in (PORTS.beats, PORTS.urgent):
                    beats.sendto(bad, (GROUP_V4, port))
                    beats.sendto(bad, (owner.host.ipv4, port + 2))
            assert calm.answers(V4[0], 0.1) == [owner.mac]

    assert wait_for(lambda: all_agree(calm, V4[0])) == owner.name
    assert all("taken" not in other.log[said[other.name] :] for other in others(calm, owner))
    assert all("Traceback" not in node.log for node in calm.nodes)


def test_a_dead_nodes_replayed_heartbeats_keep_it_no_longer_alive(lan: Lan) -> None:
    lan.start(V4[0])
    owner = lan.owner(V4[0])
    wait_for(lambda: all_agree(lan, V4[0]))
    with open_group(lan, PORTS.beats) as beats:
        recorded = [data for data, sender in (beats.recvfrom(2000) for _ in range(30)) if sender[0] == owner.host.ipv4]
        lan.port(owner, "down")

        def replay_and_look() -> str:
            for data in recorded:
                beats.sendto(data, (GROUP_V4, PORTS.beats))
            return next(iter(lan.ask(V4[0], 0.1)), "")

        heir = wait_for(replay_and_look)

    assert heir != owner.mac


def test_any_frames_leave_the_announcers_at_work(calm: Lan) -> None:
    calm.start(V4[0], V6)
    calm.owner(V4[0])
    owner = calm.owner(V6)
    chance = random.Random(11)

    for _ in range(2000):
        kind = chance.choice([b"\x08\x06", b"\x86\xdd", b"\x08\x00"])
        calm.send(b"\xff" * 6 + b"\x02\0\0\0\0\x77" + kind + chance.randbytes(chance.randrange(120)))

    assert calm.answers(V6) == [owner.mac]
    assert len(calm.answers(V4[0])) == 1
    assert all("Traceback" not in node.log for node in calm.nodes)
