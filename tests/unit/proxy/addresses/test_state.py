import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.addresses.accept import Read
from proxy.addresses.allocate import Classes
from proxy.addresses.decode import AdvertisementObject, Change, PoolObject
from proxy.addresses.state import State, apply_changes, apply_list, build_world, list_problems
from proxy.addresses.types import Advertisement, Kind, Node, Problem
from tests.unit.proxy.addresses.builders import namespace, pool, service

BROKEN = (Problem("spec.addresses", "none given"),)


def heard(version: int, *held: str) -> Change:
    return Change(Kind.SERVICE, "shop/web", service("web", *held, version=str(version)), "u", str(version))


def gone(version: int) -> Change:
    return Change(Kind.SERVICE, "shop/web", None, "u", str(version))


def versions(state: State) -> list[str]:
    return [change.version for change in state.objects[Kind.SERVICE].values()]


def pool_change(*addresses: str, problems: tuple[Problem, ...] = (), name: str = "p") -> Change:
    return Change(Kind.POOL, name, PoolObject(Read(pool(name, *addresses), problems)), "", "1")


def test_a_list_is_complete_and_what_it_does_not_name_is_gone() -> None:
    state = apply_list(State(), Kind.SERVICE, [heard(1)])

    assert state.complete == {Kind.SERVICE}
    assert apply_list(state, Kind.SERVICE, []).objects[Kind.SERVICE] == {}


@pytest.mark.parametrize(
    ("late", "left"),
    [
        pytest.param(heard(4), ["5"], id="an older change"),
        pytest.param(heard(6), ["6"], id="a newer change"),
        pytest.param(gone(4), ["5"], id="an older deletion, before it was made anew"),
        pytest.param(gone(6), [], id="its deletion"),
        pytest.param(Change(Kind.SERVICE, "shop/web", None, "u", "6", "bad"), ["5"], id="a version nobody can read"),
    ],
)
def test_what_we_wrote_ourselves_stands_until_something_newer_comes(late: Change, left: list[str]) -> None:
    state = apply_changes(State(), Kind.SERVICE, [heard(5, "192.0.2.1")])

    assert versions(apply_changes(state, Kind.SERVICE, [late])) == left


def test_a_list_from_before_our_write_does_not_undo_it() -> None:
    state = apply_changes(State(), Kind.SERVICE, [heard(5, "192.0.2.1")])

    assert versions(apply_list(state, Kind.SERVICE, [heard(4)])) == ["5"]


@given(st.permutations([heard(1), heard(2), heard(3), heard(9)]))
def test_the_newest_of_several_counts_in_any_order(changes: list[Change]) -> None:
    assert versions(apply_changes(State(), Kind.SERVICE, changes)) == ["9"]


def test_the_world_has_what_is_usable_and_knows_when_it_can_not_know() -> None:
    node = Change(Kind.NODE, "n1", Node("n1", frozenset({"192.0.2.1"})))  # type: ignore[arg-type]  # texts of an IP, a name
    state = apply_list(State(), Kind.NODE, [node])
    state = apply_list(state, Kind.NAMESPACE, [Change(Kind.NAMESPACE, "shop", namespace("shop"))])
    state = apply_list(state, Kind.SERVICE, [heard(1)])
    state = apply_list(state, Kind.POOL, [pool_change("192.0.2.0/30")])

    world = build_world(state, Classes())

    assert world.services.keys() == {"shop/web"}
    assert world.namespaces.keys() == {"shop"}
    assert world.reserved == {"192.0.2.1"}
    assert world.pools.keys() == {"p"}
    assert not world.doubtful
    broken = apply_changes(state, Kind.POOL, [pool_change("192.0.2.0/30", problems=BROKEN, name="q")])
    assert build_world(broken, Classes()).doubtful


def test_a_pool_that_gets_broken_stays_in_use_and_is_reported() -> None:
    state = apply_list(State(), Kind.POOL, [pool_change("192.0.2.0/30")])
    broken = apply_changes(state, Kind.POOL, [pool_change("192.0.2.0/30", problems=BROKEN)])

    assert not build_world(broken, Classes()).doubtful
    assert list_problems(broken) == {(Kind.POOL, "p"): "spec.addresses: none given; its last good version stands"}


def test_what_is_wrong_with_an_advertisement_is_reported() -> None:
    change = Change(Kind.ADVERTISEMENT, "a", AdvertisementObject(None, BROKEN))

    assert list_problems(apply_list(State(), Kind.ADVERTISEMENT, [change])) == {
        (Kind.ADVERTISEMENT, "a"): "spec.addresses: none given"
    }


def test_a_part_of_an_advertisement_that_does_nothing_is_reported() -> None:
    remark = Problem("metadata.annotations[closeby.dev/spread-clients]", "neither")
    change = Change(Kind.ADVERTISEMENT, "a", AdvertisementObject(Advertisement("a"), (), (remark,)))

    assert list_problems(apply_list(State(), Kind.ADVERTISEMENT, [change])) == {(Kind.ADVERTISEMENT, "a"): str(remark)}


def broken(version: int, name: str = "shop/web") -> Change:
    return Change(Kind.SERVICE, name, None, "u", str(version), problem="Expected `str`")


def test_an_object_that_can_not_be_read_is_told_of_until_it_can_or_is_gone() -> None:
    state = apply_list(State(), Kind.SERVICE, [heard(1)])
    worse = apply_changes(state, Kind.SERVICE, [broken(2)])

    assert (versions(worse), worse.unreadable) == (["1"], {(Kind.SERVICE, "shop/web"): "Expected `str`"})
    assert worse.revision > state.revision
    for change in (heard(3), gone(3)):
        better = apply_changes(worse, Kind.SERVICE, [change])
        assert (better.unreadable, better.revision) == ({}, worse.revision + 1)
    assert apply_changes(worse, Kind.SERVICE, [broken(3)]).revision == worse.revision
    assert apply_list(worse, Kind.SERVICE, []).unreadable == {}
    assert apply_list(worse, Kind.SERVICE, [broken(3, "b"), heard(4)]).unreadable.keys() == {(Kind.SERVICE, "b")}
    assert apply_list(worse, Kind.NODE, []).unreadable == worse.unreadable


def test_an_older_version_that_can_not_be_read_is_nobodys_business() -> None:
    state = apply_list(State(), Kind.SERVICE, [heard(5)])

    assert apply_changes(state, Kind.SERVICE, [broken(4)]) == state


def test_a_nodes_heartbeat_is_no_news() -> None:
    def node(version: str, *addresses: str) -> Change:
        return Change(Kind.NODE, "n1", Node("n1", frozenset(addresses)), "u", version)  # type: ignore[arg-type]

    state = apply_list(State(), Kind.NODE, [node("1", "192.0.2.1")])
    beaten = apply_changes(state, Kind.NODE, [node("2", "192.0.2.1")])
    moved = apply_changes(beaten, Kind.NODE, [node("3", "192.0.2.2")])

    assert state.revision == beaten.revision < moved.revision
