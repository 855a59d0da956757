"""The LAN's rig measures known outages right: its speaker is this test, which puts the VIP on an interface or off it.

Lower bounds are what was really done; the upper ones leave a busy machine seconds.
"""

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from e2e.lan.cuts import cut_around
from e2e.lan.lan import Lan
from e2e.lan.measure import Figure
from e2e.lan.members import TCP_PORT, VIPS, Family, Member, make_mac
from e2e.lan.runs import run_once
from e2e.lan.scenarios import Scenario, Stage, change_mac, lose, nothing
from e2e.lan.speakers.closeby import Closeby
from e2e.lan.speakers.keepalived import Keepalived
from e2e.lan.speakers.speaker import Speaker
from e2e.lan.watching import SettleError, await_owner
from e2e.world.netns import NetnsError, list_namespaces, run_in, run_ip
from e2e.world.processes import ProgramError

pytestmark = pytest.mark.netns

OUTAGE_S = 1.5
SLACK_S = 3.0


class Script:
    """The first node has the VIPs until they are moved by hand."""

    name = "script"
    heartbeats = ("udp dport 9",)

    def __init__(self) -> None:
        self.owners: set[Member] = set()

    def missing(self) -> None:
        return None

    def start(self, node: Member) -> None:
        if node.number == 11:
            self.give(node)

    def give(self, node: Member) -> None:
        run_ip({node.netns: [f"address replace {vip} dev eth0" for vip in VIPS.values()]})
        self.owners.add(node)

    def end(self, node: Member) -> None:
        run_ip({node.netns: [f"address delete {vip} dev eth0" for vip in VIPS.values()]})
        self.owners.discard(node)

    drain = kill = stop = end

    def restart(self, node: Member) -> None:
        self.end(node)
        self.give(node)

    def cont(self, node: Member) -> None:
        self.give(node)

    def lose_api(self) -> None:
        return

    def close(self) -> None:
        for node in tuple(self.owners):
            self.end(node)


@pytest.fixture(scope="module")
def lan() -> Iterator[Lan]:
    with Lan("test") as built:
        yield built


def run(lan: Lan, family: Family, act: object, speaker: Script | None = None) -> dict[Figure, float]:
    assert callable(act)
    return run_once(lan, speaker or Script(), Scenario("known", act, (), after_s=1.0), family)


@pytest.mark.parametrize("family", list(Family))
def test_where_nothing_is_done_nothing_is_lost(lan: Lan, family: Family) -> None:
    figures = run(lan, family, nothing)

    assert [figures[f] for f in (Figure.LOST, Figure.TWO, Figure.MOVES, Figure.BROKEN)] == [0, 0, 0, 0]
    assert 0.01 <= figures[Figure.DARK] < SLACK_S
    assert 0.05 <= figures[Figure.COLD] < SLACK_S


@pytest.mark.parametrize("family", list(Family))
def test_a_link_cut_for_a_while_is_dark_for_both_clients(lan: Lan, family: Family) -> None:
    def act(stage: Stage) -> None:
        stage.lan.cut_link(stage.owner)
        time.sleep(OUTAGE_S)
        stage.lan.join_link(stage.owner)

    figures = run(lan, family, act)

    assert OUTAGE_S <= figures[Figure.DARK] < OUTAGE_S + SLACK_S
    assert OUTAGE_S <= figures[Figure.COLD] < OUTAGE_S + SLACK_S
    assert figures[Figure.LOST] >= 10
    assert figures[Figure.MOVES] == 0


@pytest.mark.parametrize("family", list(Family))
def test_a_speaker_that_is_silent_for_a_while_is_missed_by_the_cold_client_alone(lan: Lan, family: Family) -> None:
    def act(stage: Stage) -> None:
        stage.speaker.stop(stage.owner)
        time.sleep(OUTAGE_S)
        stage.speaker.cont(stage.owner)

    figures = run(lan, family, act)

    assert OUTAGE_S <= figures[Figure.COLD] < OUTAGE_S + SLACK_S
    assert figures[Figure.LOST] == 0
    assert figures[Figure.BROKEN] == 0


@pytest.mark.parametrize("family", list(Family))
def test_two_that_answer_for_a_while_are_told_by_how_long(lan: Lan, family: Family) -> None:
    script = Script()

    def act(stage: Stage) -> None:
        script.give(stage.bystander)
        time.sleep(OUTAGE_S)
        script.end(stage.bystander)

    figures = run(lan, family, act, script)

    assert 0.3 <= figures[Figure.TWO] <= OUTAGE_S + SLACK_S  # on a busy machine fewer questions are asked
    assert figures[Figure.COLD] < SLACK_S


def test_a_move_without_its_connections_breaks_them(lan: Lan) -> None:
    script = Script()

    def act(stage: Stage) -> None:
        script.end(stage.owner)
        script.give(stage.bystander)
        run_ip({stage.lan.warm.netns: ["neigh flush all"]})
        time.sleep(OUTAGE_S)

    figures = run(lan, Family.IPV4, act, script)

    assert figures[Figure.MOVES] == 1
    assert figures[Figure.BROKEN] == 20
    assert figures[Figure.TWO] == 0


def test_frames_of_one_kind_are_cut_between_two_nodes_and_pass_again(lan: Lan) -> None:
    one, two, three = lan.nodes
    run_ip({node.netns: ["neigh flush all"] for node in lan.nodes})  # a MAC or silence of an earlier fault

    lan.cut(cut_around(one, [two], ("ip protocol tcp",)))
    cut = [reaches(one, two), reaches(two, one), reaches(one, three), reaches(one, two, Family.IPV6)]
    lan.heal()

    assert cut == [False, False, True, True]
    assert reaches(one, two)


def reaches(source: Member, target: Member, family: Family = Family.IPV4) -> bool:
    def connect() -> bool:
        try:
            socket.create_connection((target.address(family), TCP_PORT), timeout=2.0).close()
        except TimeoutError:
            return False
        return True

    return run_in(source.netns, connect)


def test_a_cut_that_nft_does_not_understand_is_told(lan: Lan) -> None:
    with pytest.raises(NetnsError, match="syntax error"):
        lan.cut(cut_around(lan.nodes[0], lan.nodes, ("what is this",)))


def test_no_run_has_ports_of_an_earlier_one(lan: Lan) -> None:
    def draw_ports() -> set[int]:
        lan.take_new_ports()
        return run_in(lan.warm.netns, lambda: {port_towards(lan.nodes[0]) for _ in range(200)})

    one, two = draw_ports(), draw_ports()

    assert len(one) > 20 < len(two)
    assert one.isdisjoint(two)


def port_towards(node: Member) -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.connect((node.address(Family.IPV4), TCP_PORT))
        port: int = sock.getsockname()[1]
    return port


def test_a_healed_lan_has_its_links_and_macs_again(lan: Lan) -> None:
    one, two, three = lan.nodes
    lan.cut_link(one)
    lan.change_mac(two)
    lan.change_mac(two)
    lan.take_out(three)
    changed = shown(two)

    lan.heal()

    assert make_mac(two.number, 2) in changed
    for node in lan.nodes:
        assert node.mac in shown(node)
        assert "NO-CARRIER" not in shown(node)
        assert node.address("ipv4") in shown(node)


def shown(node: Member) -> str:
    command = ["ip", "-netns", node.netns, "address", "show", "dev", "eth0"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_an_owner_that_does_not_come_is_an_error_that_says_who_answered(lan: Lan) -> None:
    with pytest.raises(SettleError, match="answered for by nobody"):
        await_owner(lan, Family.IPV4, timeout_s=0.0)


@pytest.mark.parametrize("family", list(Family))
@pytest.mark.parametrize(
    ("make", "least_s"),
    [
        # Three heartbeats of 0.1 s, and four and a half of 0.2 s, but for the part of one that had passed.
        pytest.param(partial(Keepalived, advert_s=0.1), 0.2, id="keepalived"),
        pytest.param(partial(Closeby, profile="default"), 0.6, id="closeby"),
    ],
)
def test_a_real_speaker_moves_the_vip_from_a_lost_node(
    lan: Lan, make: Callable[[Path], Speaker], least_s: float, family: Family, tmp_path: Path
) -> None:
    speaker = make(tmp_path)
    if (missing := speaker.missing()) is not None:
        pytest.skip(missing)

    figures = run_once(lan, speaker, Scenario("known", lose, (), after_s=10.0), family)

    assert figures[Figure.MOVES] >= 1
    assert least_s <= figures[Figure.DARK] < 10.0
    assert figures[Figure.BROKEN] == 20


def test_a_daemon_that_ended_by_itself_is_told_with_its_log(lan: Lan, tmp_path: Path) -> None:
    keepalived = Keepalived(tmp_path, 0.1)
    if (missing := keepalived.missing()) is not None:
        pytest.skip(missing)
    with pytest.raises(ProgramError, match="ended before its time"):
        keepalived.stop(lan.nodes[0])


def test_a_changed_mac_is_the_clients_to_find_out(lan: Lan) -> None:
    figures = run(lan, Family.IPV4, change_mac)

    assert figures[Figure.TWO] == 0
    assert figures[Figure.MOVES] == 0


def test_an_unknown_scenario_is_refused_with_the_list() -> None:
    command = [sys.executable, "-m", "e2e.lan", "--scenario=flood"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert "node-lost" in " ".join(done.stderr.split())


def test_an_interrupted_benchmark_leaves_nothing() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "e2e.lan", "--speaker=closeby"], stderr=subprocess.PIPE, text=True
    )
    prefix = f"closeby-lan-{process.pid}-"
    deadline = time.monotonic() + 60
    while not list_namespaces(prefix) and time.monotonic() < deadline:
        time.sleep(0.05)

    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)

    assert process.returncode != 0, said
    assert list_namespaces(prefix) == []


def test_nothing_is_left_of_a_lan() -> None:
    with Lan("test", 2) as lan:
        prefix = lan.prefix

    assert list_namespaces(prefix) == []
