"""Real announcers on a real LAN: who answers, and what clients hear."""

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from endpointslice.types import IP
from tests.netns.announcer.heard import Heard
from tests.netns.announcer.lan import KEY, V4, V6, Lan, Node, open_lan, wait_for

pytestmark = pytest.mark.netns


@pytest.fixture
def lan(tmp_path: Path) -> Iterator[Lan]:
    with open_lan(tmp_path) as opened:
        yield opened


@pytest.fixture
def calm(tmp_path: Path) -> Iterator[Lan]:
    """Nobody is taken for dead because this machine is busy: for tests in which nothing may move."""
    with open_lan(tmp_path, flags=("--profile", "calm")) as opened:
        yield opened


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Lan]:
    with open_lan(tmp_path, count=2, flags=("--profile", "calm")) as opened:
        yield opened


def others(lan: Lan, node: Node) -> list[Node]:
    return [other for other in lan.nodes if other is not node]


def all_agree(lan: Lan, vip: IP) -> str:
    """The owner's name once every announcer names the same; "" until then."""
    owners = {found.owner if (found := node.vip(vip)) is not None else "" for node in lan.nodes}
    return owners.pop() if len(owners) == 1 else ""


def replace_process(node: Node, follows: Callable[[], object]) -> None:
    """Start another beside it, and end the first, which may have been stopped, once the other one follows it."""
    old = node.start()
    assert old is not None
    wait_for(follows)
    old.send_signal(signal.SIGCONT)
    old.terminate()
    old.wait(60)


def announced(lan: Lan, vip: IP, for_s: float) -> list[Heard]:
    """What the client is told of the address without having asked, in so long."""
    return [one for one in lan.listen(for_s) if one.vip == vip and one.kind == "gratuitous"]


@pytest.mark.parametrize("vip", [V4[0], V6], ids=["IPv4", "IPv6"])
def test_one_owner_is_elected_and_answers_every_question_once(calm: Lan, vip: IP) -> None:
    calm.start(vip)
    owner = calm.owner(vip)

    assert wait_for(lambda: all_agree(calm, vip)) == owner.name
    assert calm.answers(vip) == [owner.mac]
    assert calm.answers(vip, to=owner.mac) == [owner.mac], "reachability is answered, too"
    for other in others(calm, owner):
        assert calm.ask(vip, to=other.mac) == [], "only the owner answers"


def test_an_address_that_nobody_serves_is_not_answered_for(lan: Lan) -> None:
    lan.start(V4[0])
    lan.owner(V4[0])

    assert lan.ask(V4[1]) == []


@pytest.mark.parametrize("vip", [V4[0], V6], ids=["IPv4", "IPv6"])
def test_when_the_owner_is_killed_another_takes_over_and_tells_everybody(lan: Lan, vip: IP) -> None:
    lan.start(vip)
    owner = lan.owner(vip)
    wait_for(lambda: all_agree(lan, vip))

    owner.signal(signal.SIGKILL)
    told = wait_for(lambda: announced(lan, vip, 0.1)) + announced(lan, vip, 8.0)
    heir = lan.owner(vip)
    heard = [one for one in told if one.mac == heir.mac]

    assert heir is not owner
    assert told[-1].mac == heir.mac, "on a busy machine the second heir may take at the same moment, and gives in"
    if vip == V6:
        assert len(heard) in {4, 5}, "four, and perhaps the one of each minute"
    else:
        assert [one.form for one in heard][:7] == ["request", *("request", "reply") * 3]


def test_when_the_owners_cable_is_pulled_another_takes_over_and_a_return_moves_nothing(lan: Lan) -> None:
    lan.start(*V4)
    owner = lan.owner(V4[0])
    wait_for(lambda: all_agree(lan, V4[0]))

    lan.port(owner, "down")
    heir = lan.owner(V4[0])
    lan.port(owner, "up")

    assert wait_for(lambda: all_agree(lan, V4[0])) == heir.name
    assert lan.answers(V4[0]) == [heir.mac]


def test_when_the_interface_goes_down_the_owner_stops_and_comes_back_as_a_candidate(lan: Lan) -> None:
    lan.start(V4[0])
    owner = lan.owner(V4[0])
    wait_for(lambda: all_agree(lan, V4[0]))

    owner.ip("link set eth0 down")
    heir = lan.owner(V4[0])
    owner.ip("link set eth0 up")

    assert heir is not owner
    assert wait_for(lambda: all_agree(lan, V4[0])) == heir.name


def test_a_new_mac_is_told_to_everybody(lan: Lan) -> None:
    lan.start(V4[0])
    owner = lan.owner(V4[0])
    lan.listen(6.0)

    owner.ip("link set eth0 address 02:00:00:00:00:99")
    heard = wait_for(lambda: announced(lan, V4[0], 0.1)) + announced(lan, V4[0], 3.0)

    assert {one.mac for one in heard} == {"02:00:00:00:00:99"}
    assert lan.answers(V4[0]) == ["02:00:00:00:00:99"]


def test_who_says_that_it_restarts_is_waited_for(lan: Lan) -> None:
    lan.start(V4[0])
    owner = lan.owner(V4[0])
    wait_for(lambda: all_agree(lan, V4[0]))

    began_s = time.monotonic()
    owner.signal(signal.SIGTERM)  # until it has ended, which on a busy machine takes of the three seconds

    left_s = began_s + 2.5 - time.monotonic()
    assert lan.ask(V4[0], left_s) == [], "a dead node is replaced after one second, this one after three"
    assert lan.owner(V4[0]) is not owner


def test_a_process_that_is_started_beside_another_goes_on_in_its_place(calm: Lan) -> None:
    calm.start(V4[0], V6)
    owner = calm.owner(V4[0])
    owner_v6 = calm.owner(V6)
    wait_for(lambda: all_agree(calm, V4[0]) and all_agree(calm, V6))
    taken = sum(node.log.count("taken") for node in calm.nodes)

    for node in {owner, owner_v6}:
        replace_process(node, lambda: "took_over" in node.log)  # noqa: B023  # used at once

    wait_for(lambda: calm.ask(V4[0]) == [owner.mac])
    wait_for(lambda: calm.ask(V6) == [owner_v6.mac])
    assert sum(node.log.count("taken") for node in calm.nodes) == taken, "nothing has moved"
    assert sum(node.log.count("member_joined") for node in calm.nodes) == 6, "nobody noticed"


def test_who_has_heard_whole_lists_of_others_hands_over_too(lan: Lan) -> None:
    lan.start(V4[0])
    owner = lan.owner(V4[0])
    wait_for(lambda: all_agree(lan, V4[0]))
    owner.signal(signal.SIGSTOP)
    wait_for(lambda: any(lan.ask(V4[0]) == [node.mac] for node in others(lan, owner)))
    owner.signal(signal.SIGCONT)  # what others have it asks for as a whole: it missed what changed
    wait_for(lambda: "replaced" in owner.log and all_agree(lan, V4[0]))

    replace_process(owner, lambda: "took_over" in owner.log)

    assert owner.status() is not None
    assert wait_for(lambda: all_agree(lan, V4[0])) != owner.name


def test_who_ends_after_another_went_on_without_its_state_leaves_it_its_socket(calm: Lan) -> None:
    calm.start(V4[0])
    node = others(calm, calm.owner(V4[0]))[0]
    node.signal(signal.SIGSTOP)

    replace_process(node, lambda: "not_taken_over" in node.log and node.status())

    assert node.status() is not None
    assert wait_for(lambda: all_agree(calm, V4[0])) != node.name


def test_a_process_that_stood_still_answers_nothing_when_it_wakes(lan: Lan) -> None:
    lan.start(V4[0])
    owner = lan.owner(V4[0])
    wait_for(lambda: all_agree(lan, V4[0]))

    owner.signal(signal.SIGSTOP)
    heir = wait_for(lambda: next((node for node in others(lan, owner) if lan.ask(V4[0]) == [node.mac]), None))
    owner.signal(signal.SIGCONT)

    for _ in range(10):
        assert lan.answers(V4[0], 0.2) == [heir.mac]
    assert wait_for(lambda: all_agree(lan, V4[0])) == heir.name


def test_who_has_another_key_is_not_believed_and_takes_nothing_from_the_living(pair: Lan) -> None:
    stranger = pair.nodes[1]
    stranger.write_key(1, b"another key of the tests")
    pair.nodes[0].serve(V4[0])
    pair.nodes[0].start()
    pair.owner(V4[0])

    stranger.serve(V4[0])
    stranger.start()
    wait_for(lambda: stranger.vip(V4[0]))

    for _ in range(20):
        assert pair.answers(V4[0], 0.2) == [pair.nodes[0].mac]
    status = stranger.status()
    assert status is not None
    assert status.wires[0].members == ()


def test_keys_are_changed_without_a_break(calm: Lan) -> None:
    calm.start(V4[0])
    owner = calm.owner(V4[0])
    wait_for(lambda: all_agree(calm, V4[0]))
    taken = [node.log.count("taken") for node in calm.nodes]

    for node in calm.nodes:
        node.write_key(2, KEY + b", and newer")
        wait_for(lambda: "keys_changed" in node.log)  # noqa: B023  # used at once
    for node in calm.nodes:
        (node.keys / "1").unlink()
        wait_for(lambda: node.log.count("keys_changed") > 1)  # noqa: B023  # used at once

    assert calm.answers(V4[0]) == [owner.mac]
    assert wait_for(lambda: all_agree(calm, V4[0])) == owner.name
    assert [node.log.count("taken") for node in calm.nodes] == taken


def test_a_drained_node_answers_its_own_clients_only_and_the_new_owner_says_nothing(lan: Lan) -> None:
    lan.start(V4[0])
    owner = lan.owner(V4[0])
    wait_for(lambda: all_agree(lan, V4[0]))
    lan.listen(6.0)

    owner.command("drain")
    heir = lan.owner(V4[0])
    heard = lan.listen(2.0)

    assert heir is not owner
    assert lan.answers(V4[0], to=owner.mac) == [owner.mac], "who knows the old owner is served by it"
    assert lan.answers(V4[0]) == [heir.mac], "who doesn't is served by the new one"
    assert {one.mac for one in heard if one.vip == V4[0] and one.kind == "gratuitous"} <= {owner.mac}


def test_a_proxy_that_goes_away_takes_nothing_away(calm: Lan) -> None:
    calm.start(V4[0])
    owner = calm.owner(V4[0])

    owner.close_feed()
    wait_for(lambda: "proxy_gone" in owner.log)

    assert calm.answers(V4[0]) == [owner.mac]


def test_what_is_served_no_more_is_answered_for_no_more(lan: Lan) -> None:
    lan.start(*V4[:2])
    lan.owner(V4[0])

    for node in lan.nodes:
        node.serve(V4[1])

    wait_for(lambda: lan.ask(V4[0]) == [])
    lan.owner(V4[1])
