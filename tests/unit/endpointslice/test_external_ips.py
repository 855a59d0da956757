"""Services whose externalIPs nobody serves."""

import msgspec

from endpointslice.external_ips import drop_external_ips, without_external_ips
from endpointslice.snapshot import EMPTY, Changed, Listed, apply_events
from endpointslice.types import IP, Kind, Node, NodeName, Skipped
from tests.builders import service

CLAIMING = service("default/claiming", external_ips=(IP("198.51.100.7"),))
BARE = msgspec.structs.replace(CLAIMING, external_ips=())
PLAIN = service("default/plain")
BEFORE = Skipped("Service default/claiming", "bad-address")
SAID = Skipped("Service default/claiming", "external-ips-off", "spec.externalIPs: ['198.51.100.7']")


def changed(*skipped: Skipped) -> Changed:
    return Changed(Kind.SERVICE, CLAIMING.name, CLAIMING, skipped)


def test_only_what_claims_an_address_is_changed_and_it_says_so() -> None:
    others = (
        Changed(Kind.SERVICE, PLAIN.name, PLAIN),
        Changed(Kind.SERVICE, "default/gone", None),
        Listed(Kind.NODE, (Changed(Kind.NODE, "n1", Node(NodeName("n1"))),)),
    )

    events = drop_external_ips([changed(BEFORE), *others, Listed(Kind.SERVICE, (changed(),))])

    assert events[0] == Changed(Kind.SERVICE, CLAIMING.name, BARE, (BEFORE, SAID))
    assert events[1:4] == others
    assert events[4] == Listed(Kind.SERVICE, (Changed(Kind.SERVICE, CLAIMING.name, BARE, (SAID,)),))


def test_a_whole_state_becomes_what_its_events_would_have_made() -> None:
    events = [changed(BEFORE), Changed(Kind.SERVICE, PLAIN.name, PLAIN)]

    assert without_external_ips(apply_events(EMPTY, events)[0]) == apply_events(EMPTY, drop_external_ips(events))[0]
    assert without_external_ips(EMPTY) == EMPTY
