"""What Service ports with affinity have of their own, as messages, and any edit of it noticed."""

from collections.abc import Callable

import msgspec
import pytest

from endpointslice.types import Family, Protocol
from proxy.kernel.affinities import (
    Affinity,
    find_affinities,
    name_affinity,
    pack_affinity,
    parse_affinity,
    plan_new_affinities,
    plan_old_affinities,
)
from proxy.kernel.attributes import parse_attributes
from proxy.kernel.base import Tables, expected_tables, parse_chain, parse_rule, parse_set
from proxy.kernel.batch import Type, describe
from proxy.kernel.change import Change, MapChange
from proxy.kernel.netlink import load_base
from proxy.kernel.ruleset import SetId, SetName

BASE = load_base()
AFFINITIES = SetId(Family.IPV6, SetName.AFFINITIES)
WEB = name_affinity("default/web", "http", Protocol.TCP)
DNS = name_affinity("default/dns", "dns", Protocol.UDP)
TWO = {WEB: b"TCP 10800", DNS: b"UDP 3"}

replace = msgspec.structs.replace


def put(delete: dict[bytes, bytes], add: dict[bytes, bytes]) -> Change:
    return Change({AFFINITIES: MapChange(delete, add)})


def grown() -> Tables:
    """The table with both affinities, as the kernel would list what is sent."""
    messages = [*plan_new_affinities(put({}, TWO), BASE)]
    base = expected_tables(BASE, Family.IPV6)
    return Tables(
        chains=(*base.chains, *(c for m in messages if m.kind is Type.NEWCHAIN and (c := parse_chain(m.payload)))),
        sets=(*base.sets, *(s for m in messages if m.kind is Type.NEWSET and (s := parse_set(m.payload)))),
        rules=(*base.rules, *(r for m in messages if m.kind is Type.NEWRULE and (r := parse_rule(m.payload)))),
    )


GROWN = grown()


@pytest.mark.parametrize("protocol", Protocol)
def test_data_say_protocol_and_time_out(protocol: Protocol) -> None:
    affinity = Affinity(protocol, 86400)

    assert parse_affinity(pack_affinity(affinity)) == affinity


def test_a_name_depends_on_the_service_port_alone_and_differs_for_each() -> None:
    names = {
        name_affinity(service, port, protocol)
        for service in ("default/web", "default/web2")
        for port in ("http", "")
        for protocol in Protocol
    }

    assert len(names) == 12
    assert name_affinity("default/web", "http", Protocol.TCP) == b"de257234fd070b52"  # as earlier versions had it


def test_a_map_comes_before_its_chains_and_they_before_their_rules() -> None:
    messages = [describe(message) for message in plan_new_affinities(put({}, {WEB: b"TCP 60"}), BASE)]

    assert messages == [
        "newset ip6 closeby affinity_de257234fd070b52",
        "newchain ip6 closeby sticky_de257234fd070b52",
        "newchain ip6 closeby record_de257234fd070b52",
        "newchain ip6 closeby forget_de257234fd070b52",
        "newrule ip6 closeby sticky_de257234fd070b52",
        "newrule ip6 closeby record_de257234fd070b52",
        *["newrule ip6 closeby forget_de257234fd070b52"] * 2,
    ]


def test_another_time_out_is_told_to_the_map_alone() -> None:
    change = put({WEB: b"TCP 60"}, {WEB: b"TCP 7"})

    (message,) = plan_new_affinities(change, BASE)

    assert message.kind is Type.NEWSET
    assert parse_attributes(message.payload)[11] == (7000).to_bytes(8)
    assert not [*plan_old_affinities(change)]


def test_rules_go_before_their_chains_and_these_before_the_map() -> None:
    messages = [describe(message).split()[0] for message in plan_old_affinities(put({WEB: b"TCP 60"}, {}))]

    assert messages == [*["delrule"] * 3, *["delchain"] * 3, "delset"]


def test_a_table_found_is_told_apart_into_base_and_affinities() -> None:
    assert find_affinities(Family.IPV6, GROWN, BASE) == (expected_tables(BASE, Family.IPV6), TWO)


def without_rule_of(chain: str) -> Callable[[Tables], Tables]:
    def edit(tables: Tables) -> Tables:
        at = next(index for index, rule in enumerate(tables.rules) if rule.chain.startswith(chain))
        return replace(tables, rules=(*tables.rules[:at], *tables.rules[at + 1 :]))

    return edit


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(without_rule_of("sticky_"), id="a rule deleted"),
        pytest.param(without_rule_of(f"forget_{WEB.decode()}"), id="one of several rules deleted"),
        pytest.param(lambda t: replace(t, rules=(*t.rules, t.rules[-1])), id="a rule added"),
        pytest.param(lambda t: replace(t, chains=t.chains[:-1]), id="a chain deleted"),
        pytest.param(lambda t: replace(t, sets=t.sets[:-1]), id="a map deleted"),
        pytest.param(
            lambda t: replace(t, sets=(*t.sets[:-1], replace(t.sets[-1], attributes=t.sets[0].attributes))),
            id="a map of another shape",
        ),
    ],
)
def test_an_affinity_that_someone_edited_is_not_ours(edit: Callable[[Tables], Tables]) -> None:
    assert find_affinities(Family.IPV6, edit(GROWN), BASE) is None
