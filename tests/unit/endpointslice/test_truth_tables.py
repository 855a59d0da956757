"""kube-proxy's choices as truth tables, a test a row: t1-t25 are policies and conditions, h1-h20 hints.

On node n1 in zone za. An endpoint of a t row is "L-R": Local or Remote, then R ready, T draining (serves while it
terminates), N terminating, X unready. One of an h row is "a[n1;za]": its name and its hints, nodes before zones; a
letter before the name is its condition, P being ready while it terminates.
"""

import re
from typing import NamedTuple

import pytest

from endpointslice.daemonsets import SAME_NODE_OFF
from endpointslice.topology import Decision, Place, PortChoice, Verdict, Why, choose_port
from endpointslice.types import Endpoint, NodeName, Service, TrafficDistribution, TrafficPolicy, Zone
from tests.builders import HTTP_NODE_PORT, endpoint, nodes, service, zones

LOCAL = TrafficPolicy.LOCAL
N1 = NodeName("n1")
N2 = NodeName("n2")

CC = service(ports=(HTTP_NODE_PORT,), type="NodePort")
INTERNAL_LOCAL = service(internal_traffic_policy=LOCAL)
EXTERNAL_LOCAL = service(ports=(HTTP_NODE_PORT,), type="NodePort", external_traffic_policy=LOCAL)
BOTH_LOCAL = service(
    ports=(HTTP_NODE_PORT,), type="NodePort", external_traffic_policy=LOCAL, internal_traffic_policy=LOCAL
)
INTERNAL_LOCAL_NODE_PORT = service(ports=(HTTP_NODE_PORT,), type="NodePort", internal_traffic_policy=LOCAL)
PLAIN_EXTERNAL_LOCAL = service(external_traffic_policy=LOCAL)
EXTERNAL_IP_LOCAL = service(external_traffic_policy=LOCAL, external_ips=("192.0.2.1",))
PLAIN = service()
PREFER_CLOSE = service(traffic_distribution=TrafficDistribution.PREFER_CLOSE)


class Row(NamedTuple):
    """One row: what is given, and who gets the traffic of each kind ("-": there is no such frontend)."""

    number: str
    service: Service
    endpoints: str
    cluster_ip: str
    external: str = "-"  # from outside
    short_circuit: str = "-"  # to the same frontends, from this node's own pods and host
    zone: str | None = "za"


ROWS = [
    Row("t1", CC, "", "reject", "reject", "reject"),
    Row("t1", INTERNAL_LOCAL, "", "reject"),
    Row("t1", EXTERNAL_LOCAL, "", "reject", "reject", "reject"),
    Row("t1", BOTH_LOCAL, "", "reject", "reject", "reject"),
    Row("t2", CC, "L-R R-R", "L-R R-R", "L-R R-R", "L-R R-R"),
    Row("t3", CC, "L-X R-R", "R-R", "R-R", "R-R"),
    Row("t4", CC, "L-T R-R", "R-R", "R-R", "R-R"),
    Row("t5", CC, "L-T R-T", "L-T R-T", "L-T R-T", "L-T R-T"),
    Row("t6", CC, "L-T R-X R-N", "L-T", "L-T", "L-T"),
    Row("t7", CC, "L-X L-N R-X R-N", "reject", "reject", "reject"),
    Row("t8", INTERNAL_LOCAL, "L-R R-R", "L-R"),
    Row("t9", INTERNAL_LOCAL, "R-R", "drop"),
    Row("t10", INTERNAL_LOCAL, "L-T R-R", "L-T"),
    Row("t11", INTERNAL_LOCAL, "L-N R-R", "drop"),
    Row("t11", INTERNAL_LOCAL, "L-X R-R", "drop"),
    Row("t12", INTERNAL_LOCAL, "L-X", "reject"),
    Row("t13", INTERNAL_LOCAL, "R-T", "drop"),
    Row("t14", EXTERNAL_LOCAL, "L-R R-R", "L-R R-R", "L-R", "L-R R-R"),
    Row("t15", EXTERNAL_LOCAL, "R-R", "R-R", "drop", "R-R"),
    Row("t16", EXTERNAL_LOCAL, "L-T R-R", "R-R", "L-T", "R-R"),
    Row("t17", EXTERNAL_LOCAL, "L-T", "L-T", "L-T", "L-T"),
    Row("t18", EXTERNAL_LOCAL, "R-T", "R-T", "drop", "R-T"),
    Row("t19", EXTERNAL_LOCAL, "L-N R-R", "R-R", "drop", "R-R"),
    Row("t20", BOTH_LOCAL, "L-R R-R", "L-R", "L-R", "L-R R-R"),
    Row("t21", BOTH_LOCAL, "R-R", "drop", "drop", "R-R"),
    Row("t22", INTERNAL_LOCAL_NODE_PORT, "R-R", "drop", "R-R", "R-R"),
    Row("t23", PLAIN_EXTERNAL_LOCAL, "R-R", "R-R"),
    Row("t24", EXTERNAL_IP_LOCAL, "R-R", "R-R", "drop", "R-R"),
    Row("t25", BOTH_LOCAL, "L-X R-X", "reject", "reject", "reject"),
    Row("h1", PLAIN, "a[za] b[za] c[zb]", "a b"),
    Row("h2", PLAIN, "a[za] b[]", "a b"),
    Row("h3", PLAIN, "a[zb] b[zc]", "a b"),
    Row("h4", PLAIN, "a[za] b[zb]", "a b", zone=None),
    Row("h5", PLAIN, "a[za] b[zb] Xc[]", "a"),
    Row("h6", PLAIN, "b[zb] Xa[za]", "b"),
    Row("h7", PLAIN, "b[zb] Ta[za]", "b"),
    Row("h8", PLAIN, "Ta[za] Tb[zb]", "a b"),
    Row("h9", PLAIN, "a[za,zb] b[zb]", "a"),
    Row("h9", PLAIN, "a[za,zb] b[zb]", "a b", zone="zb"),
    Row("h10", PLAIN, "a[n1;za] b[n2;za] c[n3;zb]", "a"),
    Row("h11", PLAIN, "a[n2;za] b[n3;zb]", "a"),
    Row("h12", PLAIN, "a[n2;zb] b[n3;zc]", "a b"),
    Row("h13", PLAIN, "a[n1;za] b[;za]", "a b"),
    Row("h14", PLAIN, "a[n1;za] b[]", "a b"),
    Row("h15", PLAIN, "a[za] b[za] c[zb]", "a b"),  # h10 from a control plane that doesn't write node hints
    Row("h16", INTERNAL_LOCAL, "L-a[zb] R-b[za]", "a"),
    Row("h17", EXTERNAL_LOCAL, "L-a[zb] R-b[za]", "b", "a", "b"),
    Row("h18", PREFER_CLOSE, "a[za] b[zb]", "a"),
    Row("h18", PLAIN, "a[za] b[zb]", "a"),
    Row("h19", PLAIN, "a[za] b[zb]", "a b", zone=None),
    Row("h19", PLAIN, "a[za] b[zb]", "a"),
    Row("h20", PLAIN, "Pa[za] b[zb]", "a"),
]

_POLICY_ENDPOINT = re.compile(r"(?P<where>[LR])-(?P<conditions>[RTNX])")
_HINTED_ENDPOINT = re.compile(r"(?:(?P<where>[LR])-)?(?P<conditions>[RTXP]?)(?P<name>[a-z])\[(?P<hints>.*)\]")


def read_endpoint(word: str, ip: str) -> tuple[str, Endpoint]:
    """An endpoint, with the name that a row's answers have for it."""
    where = {"L": N1, "R": N2, None: None}
    policy = _POLICY_ENDPOINT.fullmatch(word)
    if policy is not None:
        return word, endpoint(ip, policy["conditions"], node=where[policy["where"]])
    hinted = _HINTED_ENDPOINT.fullmatch(word)
    assert hinted is not None, word
    for_nodes, _semicolon, for_zones = hinted["hints"].rpartition(";")
    plain = endpoint(
        ip,
        hinted["conditions"] or "R",
        node=where[hinted["where"]],
        for_nodes=nodes(*filter(None, for_nodes.split(","))),
        for_zones=zones(*filter(None, for_zones.split(","))),
    )
    return hinted["name"], plain


def choose(row: Row) -> tuple[dict[Endpoint, str], PortChoice]:
    named = [read_endpoint(word, f"10.244.0.{index}") for index, word in enumerate(row.endpoints.split(), 1)]
    zone = None if row.zone is None else Zone(row.zone)
    endpoints = [each for _name, each in named]
    choice = choose_port(endpoints, row.service, row.service.ports[0], Place(N1, zone), SAME_NODE_OFF)
    return {each: name for name, each in named}, choice


def write_decision(decision: Decision, names: dict[Endpoint, str]) -> str:
    """A decision in a row's words."""
    if decision.choice.why is Why.NO_FRONTEND:
        return "-"
    if decision.verdict is not Verdict.DNAT:
        assert decision.choice.endpoints == ()
        return decision.verdict
    assert decision.choice.endpoints
    return " ".join(names[each] for each in decision.choice.endpoints)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.number} {row.endpoints} -> {row.cluster_ip}")
def test_every_row(row: Row) -> None:
    names, choice = choose(row)

    answers = tuple(write_decision(each, names) for each in (choice.cluster_ip, choice.external, choice.short_circuit))
    assert answers == (row.cluster_ip, row.external, row.short_circuit)


def test_no_row_is_missing() -> None:
    assert {row.number for row in ROWS} == {f"t{n}" for n in range(1, 26)} | {f"h{n}" for n in range(1, 21)}
