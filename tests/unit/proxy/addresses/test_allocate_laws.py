"""What holds of every answer, whatever the pools, the Services and what they hold."""

from collections.abc import Mapping

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from endpointslice.addresses import family_of
from endpointslice.types import IP, ServiceName
from proxy.addresses.allocate import Answer, World, allocate
from proxy.addresses.ranges import number_of
from proxy.addresses.requests import sharing_key
from proxy.addresses.types import DualStack, Namespace, Pool, Service
from tests.unit.proxy.addresses.builders import BOTH, V4, V6, namespace, pool, selector, service

# few addresses, so that everybody wants the same
IPS = [IP(f"192.0.2.{n}") for n in (0, 1, 2, 3, 255)] + [IP(f"2001:db8::{n}") for n in range(1, 4)]
RANGES = ["192.0.2.0-192.0.2.1", "192.0.2.2-192.0.2.3", "192.0.2.255/32", "2001:db8::1-2001:db8::2", "2001:db8::3/128"]
ANNOTATIONS = {
    "loadBalancerIPs": [*IPS, "192.0.2.1,2001:db8::1", "192.0.2.2, 2001:db8::3", "nonsense"],
    "address-pool": ["p0", "p1", "p2", "p9"],
    "allow-shared-ip": ["k", "l"],
}


@st.composite
def pools(draw: st.DrawFn) -> dict[str, Pool]:
    """Up to three, of disjoint ranges."""
    owners = draw(st.lists(st.integers(0, 3), min_size=len(RANGES), max_size=len(RANGES)))
    found: dict[str, Pool] = {}
    for index in range(3):
        ranges = [text for text, owner in zip(RANGES, owners, strict=True) if owner == index]
        if ranges:
            found[f"p{index}"] = pool(
                f"p{index}",
                *ranges,
                auto_assign=draw(st.booleans()),
                avoid_buggy_ips=draw(st.booleans()),
                priority=draw(st.integers(0, 2)),
                namespaces=draw(st.sampled_from([None, None, frozenset({"shop"})])),
                namespace_selectors=draw(st.sampled_from([None, None, (selector(team="red"),)])),
                service_selectors=draw(st.sampled_from([None, None, (selector(tier="front"),)])),
            )
    return found


@st.composite
def services(draw: st.DrawFn) -> dict[ServiceName, Service]:
    count = draw(st.integers(0, 6))
    found = [draw(one_service(index)) for index in range(count)]
    return {one.name: one for one in found}


@st.composite
def one_service(draw: st.DrawFn, index: int) -> Service:
    families = draw(st.sampled_from([(V4,), (V6,), BOTH, (V6, V4)]))
    policies = [DualStack.PREFER, DualStack.REQUIRE] if len(families) > 1 else [DualStack.SINGLE, DualStack.PREFER]
    asks = {name: draw(st.sampled_from(texts)) for name, texts in ANNOTATIONS.items() if draw(st.integers(0, 2)) == 0}
    return service(
        f"{draw(st.sampled_from(['shop', 'bank']))}/s{index}",
        *draw(st.lists(st.sampled_from(IPS), max_size=2, unique=True)),
        created=str(draw(st.integers(0, 2))),
        families=families,
        dual_stack=draw(st.sampled_from(policies)),
        asks=asks,
        ports=frozenset({("TCP", draw(st.integers(80, 82)))}),
        backends=draw(st.sampled_from(["", "", "app=a", "app=b"])),
        labels=draw(st.sampled_from([frozenset(), frozenset({("tier", "front")})])),
    )


NAMESPACES: Mapping[str, Namespace] = {"shop": namespace("shop"), "bank": namespace("bank", team="red")}


@st.composite
def worlds(draw: st.DrawFn) -> World:
    return World(
        draw(services()),
        draw(pools()),
        NAMESPACES,
        frozenset(draw(st.sets(st.sampled_from(IPS), max_size=1))),
        doubtful=draw(st.integers(0, 4)) == 0,
    )


def written(world: World, answer: Answer) -> World:
    """The world once the answer stands in every status."""
    held = {
        name: msgspec.structs.replace(one, held=answer.grants[name].ips) if name in answer.grants else one
        for name, one in world.services.items()
    }
    return msgspec.structs.replace(world, services=held)


@given(worlds())
def test_no_address_is_given_to_two_that_may_not_share_it(world: World) -> None:
    users: dict[IP, list[Service]] = {}
    for name, grant in allocate(world).grants.items():
        for ip in grant.ips:
            users.setdefault(ip, []).append(world.services[name])

    for ip, sharers in users.items():
        if len(sharers) > 1:
            assert len({sharing_key(one) for one in sharers}) == 1, ip
            assert sharing_key(sharers[0])
            assert len({one.backends for one in sharers}) == 1, ip
            ports = [port for one in sharers for port in one.ports]
            assert len(ports) == len(set(ports)), ip


@given(worlds())
def test_an_answer_that_is_written_gives_itself_again(world: World) -> None:
    first = allocate(world)

    again = allocate(written(world, first))

    assert {name: grant.ips for name, grant in again.grants.items()} == {
        name: grant.ips for name, grant in first.grants.items()
    }
    assert not any(grant.released for grant in again.grants.values())
    assert {name: grant.refusal for name, grant in again.grants.items()} == {
        name: grant.refusal for name, grant in first.grants.items()
    }


@given(worlds(), st.randoms(use_true_random=False))
def test_the_order_of_objects_does_not_matter(world: World, random: object) -> None:
    def shuffled(mapping: Mapping[str, object]) -> dict[str, object]:
        pairs = list(mapping.items())
        random.shuffle(pairs)  # type: ignore[attr-defined]
        return dict(pairs)

    other = World(
        shuffled(world.services),  # type: ignore[arg-type]
        shuffled(world.pools),  # type: ignore[arg-type]
        world.namespaces,
        world.reserved,
        world.doubtful,
        world.classes,
    )

    assert allocate(other) == allocate(world)


@given(worlds(), one_service(9))
def test_a_new_service_takes_nothing_from_anybody(world: World, newcomer: Service) -> None:
    settled = written(world, allocate(world))
    before = allocate(settled)
    asker = msgspec.structs.replace(newcomer, held=())

    after = allocate(msgspec.structs.replace(settled, services={**settled.services, asker.name: asker}))

    assert {name: after.grants[name].ips for name in before.grants} == {
        name: grant.ips for name, grant in before.grants.items()
    }


@given(worlds())
def test_everybody_has_an_address_of_a_pool_or_a_reason(world: World) -> None:
    answer = allocate(world)

    assert answer.grants.keys() == world.services.keys()
    for name, grant in answer.grants.items():
        own = world.services[name]
        assert grant.ips or grant.refusal
        assert len({family_of(ip) for ip in grant.ips}) == len(grant.ips)
        for ip in grant.ips:
            assert family_of(ip) in own.families
            assert ip not in world.reserved
            holders = [one.name for one in world.pools.values() if any(_holds(one, ip))]
            assert holders == [grant.pool] or (world.doubtful and len(holders) < 2)


def _holds(one: Pool, ip: IP) -> list[bool]:
    return [
        held for held in (r.first <= number_of(ip) <= r.last and r.family is family_of(ip) for r in one.ranges) if held
    ]


@given(worlds())
def test_nobody_waits_for_an_address_that_is_free_to_all(world: World) -> None:
    answer = allocate(world)
    waiting = [world.services[name] for name, grant in answer.grants.items() if not grant.ips]

    free = msgspec.structs.replace(written(world, answer), services={**written(world, answer).services})
    for one in waiting:
        plain = msgspec.structs.replace(one, held=())
        again = allocate(msgspec.structs.replace(free, services={**free.services, one.name: plain}))
        assert again.grants[one.name].ips == ()
