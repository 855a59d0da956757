"""Which version of a pool is in use while somebody edits."""

from hypothesis import given
from hypothesis import strategies as st

from proxy.addresses.accept import Accepted, Read, accept_pools
from proxy.addresses.ranges import overlaps
from proxy.addresses.types import Pool, Problem
from tests.unit.proxy.addresses.builders import pool

BROKEN = (Problem("spec.addresses", "none given"),)
A, B = pool("a", "192.0.2.0/31", created="1"), pool("b", "192.0.2.2/31", created="2")
WIDE_A = pool("a", "192.0.2.0/30", created="1")


def read(*pools: Pool) -> dict[str, Read]:
    return {one.name: Read(one) for one in pools}


def test_valid_pools_are_in_use() -> None:
    assert accept_pools({}, read(A, B)) == ({"a": A, "b": B}, {})


def test_a_broken_pool_keeps_its_last_good_version_and_stops_no_other() -> None:
    accepted = accept_pools({"a": A}, {"a": Read(None, BROKEN), "b": Read(B)})

    assert accepted.pools == {"a": A, "b": B}
    assert accepted.problems == {"a": (*BROKEN, Problem("", "its last good version stands"))}


def test_one_that_was_never_good_is_not_used() -> None:
    accepted = accept_pools({}, {"a": Read(A, BROKEN)})

    assert accepted.pools == {}
    assert accepted.problems["a"][-1].what == "the pool isn't used"


def test_the_one_that_changed_waits_whoever_is_older() -> None:
    accepted = accept_pools({"a": A, "b": B}, read(WIDE_A, B))

    assert accepted.pools == {"a": A, "b": B}
    assert (
        str(accepted.problems["a"][0])
        == "spec.addresses[0]: 192.0.2.0-192.0.2.3 overlaps 192.0.2.2-192.0.2.3 of pool b"
    )
    assert accept_pools(accepted.pools, read(WIDE_A)).pools == {"a": WIDE_A}


def test_at_a_start_the_older_one_is_used() -> None:
    accepted = accept_pools({}, read(WIDE_A, B))

    assert accepted.pools == {"a": WIDE_A}
    assert accepted.problems.keys() == {"b"}


def test_two_that_swap_their_ranges_do_so_once_both_are_written() -> None:
    swapped_a, swapped_b = pool("a", "192.0.2.2/31"), pool("b", "192.0.2.0/31")

    half = accept_pools({"a": A, "b": B}, read(swapped_a, B))
    whole = accept_pools(half.pools, read(swapped_a, swapped_b))

    assert half.pools == {"a": A, "b": B}
    assert whole == ({"a": swapped_a, "b": swapped_b}, {})


def test_a_pool_that_is_deleted_is_forgotten() -> None:
    gone = accept_pools({"a": A}, {})

    assert gone == Accepted()
    assert accept_pools(gone.pools, {"a": Read(None, BROKEN)}).pools == {}


RANGES = st.sampled_from(
    ["192.0.2.0/32", "192.0.2.1/32", "192.0.2.2/32", "192.0.2.0/31", "192.0.2.2/31", "192.0.2.0/30"]
)
EDITS = st.dictionaries(
    st.sampled_from("abc"), st.tuples(st.lists(RANGES, min_size=1, max_size=1), st.sampled_from("12"), st.booleans())
)


@given(st.lists(EDITS, max_size=4))
def test_whatever_is_edited_what_is_in_use_never_overlaps_and_is_a_version_that_was_good(
    edits: list[dict[str, tuple[list[str], str, bool]]],
) -> None:
    before: dict[str, Pool] = {}
    good: dict[str, list[Pool]] = {}
    for edit in edits:
        newest = {}
        for name, (texts, created, broken) in edit.items():
            version = pool(name, *texts, created=created)
            newest[name] = Read(version, BROKEN if broken else ())
            if not broken:
                good.setdefault(name, []).append(version)
        accepted = accept_pools(before, newest)

        held = [(one.name, part) for one in accepted.pools.values() for part in one.ranges]
        assert not any(overlaps(p, q) for i, (n, p) in enumerate(held) for m, q in held[:i] if n != m)
        assert accepted.pools.keys() <= newest.keys()
        assert all(one in good[name] for name, one in accepted.pools.items())
        for name, read_now in newest.items():
            assert (accepted.pools.get(name) == read_now.pool) or name in accepted.problems
            if name in before:
                assert name in accepted.pools  # who was in use stays, in some version
        before = dict(accepted.pools)
