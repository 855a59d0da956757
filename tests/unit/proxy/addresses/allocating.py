"""Pools, holders and words that the tests of allocation share."""

from collections.abc import Iterable

from proxy.addresses.allocate import Answer, World, allocate
from proxy.addresses.requests import Rule
from proxy.addresses.types import Namespace, Pool, Service
from tests.unit.proxy.addresses.builders import pool, service

FIRST = pool("first", "192.0.2.0-192.0.2.2")
OTHER = pool("other", "198.51.100.0/30")
DUAL = pool("dual", "192.0.2.0/30", "2001:db8::/126")
SIX = pool("six", "2001:db8:6::/126")
ONE = pool("one", "192.0.2.9/32")
KEY = {"allow-shared-ip": "k"}
TAKEN = service("taken", "192.0.2.9")
OF_KEY = service("taken", "192.0.2.9", asks=KEY)
LOCAL = service("taken", "192.0.2.9", asks=KEY, backends="app=a")
OTHER_PORT = frozenset({("TCP", 81)})


def answer(
    pools: Iterable[Pool], services: Iterable[Service], namespaces: Iterable[Namespace] = (), **rest: object
) -> Answer:
    world = World(
        {one.name: one for one in services},
        {one.name: one for one in pools},
        {one.name: one for one in namespaces},
        **rest,  # type: ignore[arg-type]  # a World's own
    )
    return allocate(world)


def ips(found: Answer) -> dict[str, tuple[str, ...]]:
    """By the Service's name alone."""
    return {name.partition("/")[2]: grant.ips for name, grant in found.grants.items()}


def rules(found: Answer) -> dict[str, Rule]:
    return {name.partition("/")[2]: grant.refusal.rule for name, grant in found.grants.items() if grant.refusal}


def released(found: Answer) -> dict[str, Rule]:
    return {name.partition("/")[2]: grant.released.rule for name, grant in found.grants.items() if grant.released}
