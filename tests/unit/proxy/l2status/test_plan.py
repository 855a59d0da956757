"""What is written of status objects: enough, and nothing that stands there already."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from endpointslice.types import IP, NodeName, ServiceName
from proxy.l2status.plan import plan_writes
from proxy.l2status.types import Address, Delete, Entry, Put, Stored, Stranger, Write

WEB = ServiceName("shop/web")
N1, N2, N3 = (NodeName(name) for name in ("n1", "n2", "n3"))
A, B = IP("192.0.2.1"), IP("2001:db8::1")
MAC = "02:00:00:00:00:99"


def entry(node: NodeName, *ips: IP, met: tuple[IP, ...] = ()) -> Entry:
    addresses = tuple(Address(ip, "eth0") for ip in ips)
    return Entry(WEB, node, addresses, tuple(Stranger(ip, "eth0", MAC) for ip in met))


def stored(node: NodeName, *ips: IP, met: tuple[IP, ...] = (), version: str = "7") -> Stored:
    return Stored(entry(node, *ips, met=met), version)


def held_of(wanted: Entry | None) -> set[IP]:
    return {address.ip for address in wanted.addresses} if wanted is not None else set()


def store(before: Iterable[Stored], writes: Iterable[Write]) -> list[Stored]:
    """As an API server would."""
    found = {one.entry.node: one for one in before}
    for write in writes:
        if isinstance(write, Delete):
            assert found[write.stored.entry.node].version == write.stored.version
            del found[write.stored.entry.node]
        else:
            held = found.get(write.entry.node)
            assert not write.version or (held is not None and held.version == write.version)
            found[write.entry.node] = Stored(write.entry, "8")
    return list(found.values())


@pytest.mark.parametrize(
    ("wanted", "there", "writes"),
    [
        pytest.param(entry(N1, A), [], [Put(entry(N1, A))], id="the first"),
        pytest.param(entry(N1, A), [stored(N1, A)], [], id="nothing new"),
        pytest.param(entry(N1, A), [stored(N1, A, B)], [Put(entry(N1, A))], id="fewer addresses"),
        pytest.param(entry(N1, A, met=(A,)), [stored(N1, A)], [Put(entry(N1, A, met=(A,)))], id="a conflict"),
        pytest.param(None, [stored(N1, A)], [Delete(stored(N1, A))], id="nothing more"),
        pytest.param(None, [], [], id="nothing at all"),
        pytest.param(None, [stored(N2, A)], [], id="another node's is left alone by who announces nothing"),
        pytest.param(
            entry(N1, A), [stored(N2, A)], [Put(entry(N1, A)), Delete(stored(N2, A))], id="taken from the dead"
        ),
        pytest.param(
            entry(N1, A), [stored(N2, A, B)], [Put(entry(N1, A)), Put(entry(N2, B), "7")], id="one of two is taken"
        ),
        pytest.param(entry(N1, A), [stored(N1, A), stored(N2, B)], [], id="one each"),
        pytest.param(
            entry(N1, A),
            [stored(N2, met=(A,))],
            [Put(entry(N1, A)), Delete(stored(N2, met=(A,)))],
            id="what kept another node from it",
        ),
        pytest.param(entry(N1, met=(A,)), [stored(N2, A)], [Put(entry(N1, met=(A,)))], id="a conflict takes nothing"),
    ],
)
def test_what_is_written(wanted: Entry | None, there: list[Stored], writes: list[Write]) -> None:
    assert plan_writes(wanted, held_of(wanted), N1, there) == writes


@pytest.mark.parametrize(
    ("there", "writes"),
    [
        pytest.param([stored(N1, A)], [], id="nobody else has it yet"),
        pytest.param([stored(N1, A), stored(N2, A)], [Delete(stored(N1, A))], id="another has it"),
        pytest.param([stored(N2, A)], [], id="another has it and took ours away"),
        pytest.param([stored(N1, A), stored(N2, B)], [], id="another has another one"),
    ],
)
def test_of_what_is_announced_no_more_others_know_better(there: list[Stored], writes: list[Write]) -> None:
    assert plan_writes(entry(N1, A), set(), N1, there) == writes


some_ips = st.lists(st.sampled_from([A, B, IP("192.0.2.2")]), unique=True).map(tuple)
entries = st.builds(
    lambda node, ips, met: entry(node, *ips, met=met), st.sampled_from([N1, N2, N3]), some_ips, some_ips
)
objects = st.lists(entries, unique_by=lambda one: one.node).map(lambda found: [Stored(one, "7") for one in found])
wishes = st.none() | entries.map(lambda one: replace(one, node=N1))


helds = st.frozensets(st.sampled_from([A, B, IP("192.0.2.2")]))


@given(wishes, helds, objects)
def test_planning_twice_changes_nothing(wanted: Entry | None, held: frozenset[IP], there: list[Stored]) -> None:
    after = store(there, plan_writes(wanted, held, N1, there))

    assert plan_writes(wanted, held, N1, after) == []


@given(wishes, helds, objects)
def test_no_two_nodes_say_that_they_announce_what_this_one_does_and_nothing_else_is_lost(
    wanted: Entry | None, held: frozenset[IP], there: list[Stored]
) -> None:
    after = {one.entry.node: one.entry for one in store(there, plan_writes(wanted, held, N1, there))}
    wished = {address.ip for address in wanted.addresses} if wanted is not None else set()
    mine = {address.ip for address in after[N1].addresses} if N1 in after else set()
    before = {(one.entry.node, address.ip) for one in there for address in one.entry.addresses}
    others = {(node, ip) for node, ip in before if node != N1}

    assert wished & held <= mine <= wished
    assert {(node, address.ip) for node, found in after.items() if node != N1 for address in found.addresses} == {
        (node, ip) for node, ip in others if ip not in wished & held
    }
    assert not mine & {ip for node, ip in others if (node, ip) in before and ip not in held}
