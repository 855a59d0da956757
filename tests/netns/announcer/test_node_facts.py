"""What the API says of Nodes and advertisements, as clients on a real LAN notice it."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from endpointslice.types import NodeName
from proxy.addresses.nodes import EXCLUDE_LABEL
from proxy.addresses.types import Advertisement, NodeState, Operator, Preference, Requirement
from tests.netns.announcer.lan import V4, Lan, Node, open_lan, wait_for

pytestmark = pytest.mark.netns

VIP = V4[0]
# Nobody is taken for dead because this machine is busy.
FLAGS = ("--profile", "calm", "--grace", "1s")


@pytest.fixture
def flags() -> tuple[str, ...]:
    return FLAGS


@pytest.fixture
def lan(tmp_path: Path, flags: tuple[str, ...]) -> Iterator[Lan]:
    with open_lan(tmp_path, flags=flags) as opened:
        yield opened


@pytest.fixture
def strict(tmp_path: Path) -> Iterator[Lan]:
    with open_lan(tmp_path, flags=(*FLAGS, "--leave-cordoned", "--ignore-exclude-label")) as opened:
        yield opened


def name(node: Node) -> NodeName:
    return NodeName(node.name)


def why(lan: Lan, node: Node) -> set[str]:
    """What the announcers of all nodes say of one as a candidate."""
    found = [vip for each in lan.nodes if (vip := each.vip(VIP)) is not None]
    return {one.why for vip in found for one in vip.candidates if one.node == node.name}


def follow(lan: Lan, owner: Node) -> Node:
    """The next owner, once another node than this answers."""
    return wait_for(
        lambda: next((node for node in lan.nodes if node is not owner and lan.ask(VIP) == [node.mac]), None)
    )


def test_a_nodes_state_moves_its_address_and_a_cordon_does_not(lan: Lan) -> None:
    lan.tell()
    lan.start(VIP)
    owner = lan.owner(VIP)
    lan.tell(NodeState(name(owner), cordoned=True, ready=False))
    for _ in range(10):
        assert lan.answers(VIP) == [owner.mac], "a cordon stops pods, and NotReady for a moment is no news"

    for facts, code in (
        ({"labels": frozenset({(EXCLUDE_LABEL, "")})}, "node-excluded"),
        ({"out_of_service": True}, "node-out-of-service"),
        ({"leaving": True}, "node-leaving"),
        ({"shutting_down": True}, "draining"),
    ):
        lan.tell(replace(NodeState(name(owner)), **facts))
        heir = follow(lan, owner)
        wait_for(lambda: why(lan, owner) == {code})  # noqa: B023  # used at once
        lan.tell()
        wait_for(lambda: "eligible" in why(lan, owner))  # noqa: B023  # used at once
        assert lan.answers(VIP) == [heir.mac], "what is good again takes nothing back"
        owner = heir


def test_with_the_options_a_cordon_moves_and_the_label_does_not(strict: Lan) -> None:
    strict.tell()
    strict.start(VIP)
    owner = strict.owner(VIP)
    strict.tell(NodeState(name(owner), labels=frozenset({(EXCLUDE_LABEL, "")})))
    for _ in range(10):
        assert strict.answers(VIP) == [owner.mac]

    strict.tell(NodeState(name(owner), cordoned=True))
    follow(strict, owner)

    assert wait_for(lambda: "node-cordoned" in why(strict, owner))


def test_an_annotation_drains_a_node_until_it_is_taken_away(lan: Lan) -> None:
    lan.tell()
    lan.start(VIP)
    owner = lan.owner(VIP)
    lan.tell(NodeState(name(owner), drained=True))
    heir = follow(lan, owner)

    wait_for(lambda: (found := owner.status()) and found.drained and found.drains == ("annotation",))
    owner.command("undrain")
    assert (found := owner.status())
    assert found.draining, "who takes part again by command is still drained by its Node"
    lan.tell()

    wait_for(lambda: (found := owner.status()) and not found.draining)
    assert lan.answers(VIP) == [heir.mac]


@pytest.mark.parametrize("flags", [("--profile", "calm", "--grace", "5m")])
def test_where_a_machine_shuts_down_its_announcers_end_is_that_of_the_grace(lan: Lan) -> None:
    """The machine's end comes next, and with it that of the MAC that clients know."""
    lan.tell()
    lan.start(VIP)
    owner = lan.owner(VIP)
    lan.tell(NodeState(name(owner), shutting_down=True))
    heir = follow(lan, owner)
    assert (quiet := heir.vip(VIP)) is not None
    assert quiet.mine == "quiet"

    owner.signal(signal.SIGTERM)

    assert wait_for(lambda: (vip := heir.vip(VIP)) is not None and vip.mine == "hold")
    assert "member_left" in heir.log, "it heard a goodbye, and waited for no silence"


def test_a_pinned_address_is_answered_for_by_its_node_or_by_nobody(lan: Lan) -> None:
    lan.tell()
    lan.start(VIP)
    owner = lan.owner(VIP)
    wanted = next(node for node in lan.nodes if node is not owner)
    for node in lan.nodes:
        node.serve(VIP, only=frozenset({name(wanted)}))
    assert follow(lan, owner) is wanted

    for node in lan.nodes:
        node.serve(VIP, only=frozenset({NodeName("elsewhere")}))

    wait_for(lambda: lan.ask(VIP) == [])
    assert wait_for(lambda: why(lan, wanted) == {"pinned-elsewhere"})


def test_advertisements_choose_nodes_and_interfaces(lan: Lan) -> None:
    first, second, third = (
        NodeState(name(node), labels=frozenset({("rack", rack)})) for node, rack in zip(lan.nodes, "abb", strict=True)
    )
    rack_b = (Requirement("rack", Operator.IN, frozenset("b")),)
    lan.tell(first, second, third, advertisements=[Advertisement("lan", node_selectors=(rack_b,))])
    lan.start(VIP)

    assert lan.owner(VIP) in lan.nodes[1:]
    wait_for(lambda: why(lan, lan.nodes[0]) == {"no-matching-advertisement"})

    rack_a = (Requirement("rack", Operator.NOT_IN, frozenset("b")),)
    one = Advertisement("lan", node_selectors=(rack_a,), preferences=(Preference(7, rack_a),))
    lan.tell(first, second, third, advertisements=[one])
    wait_for(lambda: lan.ask(VIP) == [lan.nodes[0].mac])

    lan.tell(first, second, third, advertisements=[Advertisement("lan", interfaces=frozenset({"eth9"}))])
    wait_for(lambda: lan.ask(VIP) == [])
    wait_for(lambda: "unknown-interface" in why(lan, lan.nodes[0]))

    lan.tell(first, second, third, advertisements=[Advertisement("lan", interfaces=frozenset({"eth0", "eth9"}))])
    lan.owner(VIP)


def test_an_address_is_moved_by_hand_and_stays_there(lan: Lan) -> None:
    lan.start(VIP)
    owner = lan.owner(VIP)
    wanted = next(node for node in lan.nodes if node is not owner)
    wait_for(lambda: why(lan, wanted) == {"eligible"})

    done = subprocess.run(
        [sys.executable, "-m", "proxy", "move", VIP, wanted.name, "--announcer-control", str(owner.control)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, f"{wanted.name} answers for {VIP}\n"), done.stderr
    assert follow(lan, owner) is wanted
