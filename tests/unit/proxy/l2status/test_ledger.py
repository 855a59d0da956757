"""What counts of what an announcer told, and the Events that follow."""

import pytest

from endpointslice.types import IP, NodeName, Service, ServiceName
from proxy.announcer.ownership import UNKNOWN, Conflict, Holding, Origin, Ownership
from proxy.l2status.ledger import GONE_S, NOTHING, Ledger, due_s, expire, hear, list_notices, make_wish
from proxy.l2status.types import Address, Entry, Stranger

N1, N2 = NodeName("n1"), NodeName("n2")
A, B = IP("192.0.2.1"), IP("2001:db8::1")
WEB, DNS = ServiceName("shop/web"), ServiceName("shop/dns")
SERVICES = {
    WEB: Service(WEB, (IP("10.96.0.1"),), (), load_balancer_ips=(A, B)),
    DNS: Service(DNS, (IP("10.96.0.2"),), (), load_balancer_ips=(A,)),
}
MAC = "02:00:00:00:00:99"
MET = Conflict(A, "eth0", MAC, held=False)


def owning(*vips: IP, met: tuple[Conflict, ...] = (), origin: Origin = UNKNOWN) -> Ownership:
    return Ownership(tuple(Holding(vip, "eth0", origin) for vip in vips), met)


def told(*ownerships: Ownership) -> Ledger:
    ledger = NOTHING
    for ownership in ownerships:
        ledger = hear(ledger, ownership, 0.0)
    return ledger


def notes(before: Ledger, after: Ledger) -> list[str]:
    return [f"{one.name}: {one.note}" for one in list_notices(before, after, SERVICES, N1)]


def test_services_that_share_an_address_have_an_entry_each() -> None:
    assert make_wish(told(owning(A, B)), SERVICES, N1).entries == {
        WEB: Entry(WEB, N1, (Address(A, "eth0"), Address(B, "eth0"))),
        DNS: Entry(DNS, N1, (Address(A, "eth0"),)),
    }


def test_an_address_that_nobody_takes_is_told_as_well() -> None:
    assert make_wish(told(owning(B, met=(MET,))), {WEB: SERVICES[WEB]}, N1).entries == {
        WEB: Entry(WEB, N1, (Address(B, "eth0"),), (Stranger(A, "eth0", MAC),)),
    }


def test_what_is_told_no_more_counts_a_while_longer() -> None:
    ledger = hear(told(owning(A, B)), owning(B), 5.0)
    assert due_s(ledger) == 5.0 + GONE_S

    ledger = hear(ledger, owning(B), 9.0)
    before = expire(ledger, 4.9 + GONE_S)
    after = expire(ledger, 5.0 + GONE_S)

    assert set(before.holdings) == {A, B}
    assert make_wish(before, SERVICES, N1).held == {B}
    assert set(after.holdings) == {B}
    assert due_s(after) is None


def test_an_announcer_that_starts_anew_changes_nothing() -> None:
    first = told(owning(A))
    after = expire(hear(hear(first, owning(), 5.0), owning(A), 9.0), 99.0)

    assert after.holdings == first.holdings
    assert notes(first, after) == []


def test_what_the_first_announcer_tells_is_no_news() -> None:
    assert notes(NOTHING, told(owning(A))) == []


@pytest.mark.parametrize(
    ("origin", "said"),
    [
        (UNKNOWN, "192.0.2.1 on eth0"),
        (Origin("taken", N2), '192.0.2.1 on eth0; before from node "n2", which fell silent'),
        (Origin("received", N2), '192.0.2.1 on eth0; before from node "n2", which gave it away'),
    ],
)
def test_who_gets_an_address_says_whose_it_was(origin: Origin, said: str) -> None:
    after = hear(told(owning()), owning(A, origin=origin), 1.0)

    assert notes(told(owning()), after) == [
        f'web: announcing from node "n1" with protocol "layer2": {said}',
        f'dns: announcing from node "n1" with protocol "layer2": {said}',
    ]


def test_a_conflict_is_told_once_with_the_mac() -> None:
    before = told(owning())
    after = hear(before, owning(met=(MET,)), 1.0)
    said = f"the host {MAC} on eth0, which is no node, answers for 192.0.2.1: it isn't announced until that ends"

    assert notes(before, after) == [f"web: {said}", f"dns: {said}"]
    assert notes(after, hear(after, owning(met=(MET,)), 2.0)) == []
    assert all(one.warning and one.reason == "AddressConflict" for one in list_notices(before, after, SERVICES, N1))


def test_an_owner_says_that_it_defends_its_address() -> None:
    before = told(owning(A))
    after = hear(before, owning(A, met=(Conflict(A, "eth0", MAC, held=True),)), 1.0)

    assert notes(before, after)[0].endswith("answers for 192.0.2.1, too: the address is defended")
