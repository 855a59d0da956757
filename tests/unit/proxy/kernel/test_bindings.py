"""Which bindings of affinity a new table gets from the one that it replaces, and their bytes."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from endpointslice.types import Family, Protocol
from proxy.kernel.affinities import affinity_map, name_affinity, plan_new_affinities
from proxy.kernel.attributes import pack_attribute, pack_nest, parse_attributes
from proxy.kernel.base import Named, parse_set
from proxy.kernel.batch import CREATE, Message, Type, describe
from proxy.kernel.bindings import (
    Binding,
    KeptMap,
    choose_bindings,
    find_kept_maps,
    iter_bindings,
    pack_bindings,
)
from proxy.kernel.change import Change, MapChange
from proxy.kernel.netlink import load_base
from proxy.kernel.ruleset import SetId, SetName

BASE = load_base()
WEB = name_affinity("default/web", "http", Protocol.TCP)
NAME = affinity_map(WEB)
HOUR_MS, DAY_MS = 3_600_000, 86_400_000
CLIENT, TARGET = b"\xc0\0\2\1", b"\x0a\0\0\1\x1f\x90\0\0"


def made(family: Family, data: bytes = b"TCP 3600") -> Named:
    """The map of bindings as the kernel lists one that we made."""
    change = Change({SetId(family, SetName.AFFINITIES): MapChange({}, {WEB: data})})
    one = parse_set(next(m.payload for m in plan_new_affinities(change, BASE) if m.kind is Type.NEWSET))
    assert one is not None
    return one


def with_attribute(one: Named, kind: int, value: bytes) -> Named:
    attributes = parse_attributes(one.attributes) | {kind: value}
    return msgspec.structs.replace(one, attributes=b"".join(pack_attribute(*pair) for pair in attributes.items()))


@pytest.mark.parametrize("family", Family)
def test_a_map_that_both_tables_have_is_kept_with_both_time_outs(family: Family) -> None:
    kept = find_kept_maps(family, [made(family)], {WEB: b"TCP 86400"}, BASE)

    assert kept == [KeptMap(family, NAME, HOUR_MS, DAY_MS)]


@pytest.mark.parametrize(
    ("found", "affinities"),
    [
        pytest.param(made(Family.IPV4), {}, id="the Service port has no affinity now"),
        pytest.param(made(Family.IPV4), {b"0" * 16: b"TCP 60"}, id="another Service port's"),
        pytest.param(made(Family.IPV6), {WEB: b"TCP 60"}, id="of the other family's addresses"),
        *(
            pytest.param(with_attribute(made(Family.IPV4), kind, b"\0\0\0\1"), {WEB: b"TCP 60"}, id=f"another {what}")
            for kind, what in ((4, "key type"), (5, "key length"), (6, "data type"), (7, "data length"))
        ),
    ],
)
def test_a_map_is_not_kept(found: Named, affinities: dict[bytes, bytes]) -> None:
    assert find_kept_maps(Family.IPV4, [found], affinities, BASE) == []


@pytest.mark.parametrize(
    ("found", "chosen"),
    [
        pytest.param((HOUR_MS, 5_000), (HOUR_MS, 5_000), id="as it was"),
        pytest.param((2 * DAY_MS, 5_000), (DAY_MS, 5_000), id="a longer time-out is cut"),
        pytest.param((2 * DAY_MS, DAY_MS + 1), (DAY_MS, DAY_MS), id="and so is what is left of it"),
        pytest.param((5_000, 6_000), (5_000, 5_000), id="no more is left than the whole"),
        pytest.param((HOUR_MS, 0), None, id="expired"),
        pytest.param((HOUR_MS, 9), None, id="less than a tick of the kernel's clock is left"),
        pytest.param((0, 5_000), (DAY_MS, 5_000), id="the old map had no time-out of its own"),
        pytest.param((0, 0), None, id="without an end"),
    ],
)
def test_what_is_chosen_of_bindings(found: tuple[int, int], chosen: tuple[int, int] | None) -> None:
    kept = KeptMap(Family.IPV4, NAME, 0, DAY_MS)

    assert choose_bindings(kept, {CLIENT: Binding(TARGET, *found)}) == (
        {CLIENT: Binding(TARGET, *chosen)} if chosen else {}
    )


def test_the_bytes_of_a_binding() -> None:
    (message,) = pack_bindings(KeptMap(Family.IPV4, NAME, 0, 0), {CLIENT: Binding(TARGET, HOUR_MS, 5_000)})

    key, data = (pack_nest(kind, pack_attribute(1, value)) for kind, value in ((1, CLIENT), (2, TARGET)))
    times = pack_attribute(4, HOUR_MS.to_bytes(8)) + pack_attribute(5, (5_000).to_bytes(8))
    assert (message.kind, message.flags) == (Type.NEWSETELEM, CREATE)
    assert describe(message) == f"newsetelem ip closeby {NAME}"
    assert parse_attributes(message.payload)[3] == pack_nest(1, key, data, times)


@given(st.data(), st.sampled_from(Family))
def test_what_is_packed_is_read_as_it_was(data: st.DataObject, family: Family) -> None:
    size = 4 if family is Family.IPV4 else 16
    times = st.integers(1, (1 << 40))
    bindings = data.draw(
        st.dictionaries(
            st.binary(min_size=size, max_size=size),
            st.builds(Binding, st.binary(min_size=size + 4, max_size=size + 4), times, times),
        )
    )
    kept = KeptMap(family, NAME, HOUR_MS, HOUR_MS)

    messages = list(pack_bindings(kept, bindings))

    assert dict(iter_bindings(kept, [message.payload for message in messages])) == bindings


def test_a_binding_without_a_time_out_of_its_own_has_its_maps() -> None:
    element = pack_nest(1, *(pack_nest(kind, pack_attribute(1, value)) for kind, value in ((1, CLIENT), (2, TARGET))))
    payload = pack_nest(3, element)

    assert dict(iter_bindings(KeptMap(Family.IPV4, NAME, HOUR_MS, 0), [payload])) == {
        CLIENT: Binding(TARGET, HOUR_MS, 0)
    }


@pytest.mark.parametrize(("key", "data"), [(CLIENT, b""), (b"", TARGET), (CLIENT * 4, TARGET), (CLIENT, TARGET * 2)])
def test_what_is_no_binding_is_skipped(key: bytes, data: bytes) -> None:
    element = pack_nest(1, *(pack_nest(kind, pack_attribute(1, value)) for kind, value in ((1, key), (2, data))))

    assert not list(iter_bindings(KeptMap(Family.IPV4, NAME, 0, 0), [pack_nest(3, element)]))


def test_many_bindings_are_several_messages() -> None:
    many = {number.to_bytes(4): Binding(TARGET, 1, 1) for number in range(3000)}

    messages: list[Message] = [*pack_bindings(KeptMap(Family.IPV4, NAME, 0, 0), many)]

    assert len(messages) == 3
    assert all(len(message.payload) < 65_535 for message in messages)
