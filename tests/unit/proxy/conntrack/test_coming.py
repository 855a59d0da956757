"""Endpoints that a write may have brought before the judge of flows knows of them."""

import pytest

from endpointslice.types import IP, Family, Protocol
from proxy.conntrack.coming import Coming
from proxy.conntrack.flows import Judgement, added_targets, is_stale, pack_socket
from proxy.kernel.change import Change, MapChange
from proxy.kernel.ruleset import SetId, SetName
from proxy.planner.keys import pack_index, pack_node_port, pack_target, pack_vip

VIP, ONE, TWO = IP("10.96.0.1"), IP("10.244.0.1"), IP("10.244.0.2")
FRONTEND = pack_socket(VIP, 53)


def writes(*pods: IP, protocol: Protocol = Protocol.UDP, name: SetName = SetName.ENDPOINTS) -> Change:
    front = pack_vip(VIP, protocol, 53) if name is SetName.ENDPOINTS else pack_node_port(protocol, 53)
    added = {front + pack_index(index): pack_target(pod, 53) for index, pod in enumerate(pods)}
    return Change({SetId(Family.IPV4, name): MapChange({front + pack_index(9): pack_target(VIP, 53)}, added)})


def sockets(*pods: IP) -> frozenset[bytes]:
    return frozenset(pack_socket(pod, 53) for pod in pods)


@pytest.mark.parametrize(
    ("change", "added"),
    [
        pytest.param(writes(ONE, TWO), sockets(ONE, TWO), id="behind a VIP"),
        pytest.param(writes(ONE, name=SetName.NODE_PORT_ENDPOINTS), sockets(ONE), id="behind a NodePort"),
        pytest.param(writes(ONE, protocol=Protocol.TCP), frozenset(), id="TCP flows aren't judged so"),
        pytest.param(Change({}), frozenset(), id="nothing"),
    ],
)
def test_what_a_write_adds_is_coming(change: Change, added: frozenset[bytes]) -> None:
    assert added_targets(change) == added


def test_it_is_coming_from_before_the_write_until_its_commit_is_known() -> None:
    coming = Coming()
    coming.write(writes(ONE))
    written = coming.sockets
    coming.commit()
    coming.write(writes(TWO))
    committed = coming.sockets
    coming.know()

    assert (written, committed, coming.sockets) == (sockets(ONE), sockets(ONE, TWO), sockets(TWO))


def test_what_was_refused_is_coming_until_a_commit_is_known() -> None:
    """The answer may have been lost and not the write."""
    coming = Coming()
    coming.write(writes(ONE))
    coming.write(writes(TWO))

    refused = coming.sockets
    coming.commit()
    coming.know()

    assert (refused, coming.sockets) == (sockets(ONE, TWO), frozenset())


@pytest.mark.parametrize("judgement", [Judgement({FRONTEND: frozenset()}, {}), Judgement({}, {FRONTEND: sockets(ONE)})])
def test_a_flow_to_what_is_coming_stays(judgement: Judgement) -> None:
    (answers_from,) = sockets(ONE)

    assert is_stale(judgement, FRONTEND, answers_from)
    assert not is_stale(judgement._replace(coming=sockets(ONE)), FRONTEND, answers_from)
