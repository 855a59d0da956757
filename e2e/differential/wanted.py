"""Differences from kube-proxy that are meant to be. Everything else that differs is a fault.

Each is accepted only where the world has its cause for that very probe, and closeby's answer is the one expected.
Not seen here: a TCP reset and an ICMP error are both "refused" to a client (D12).
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from e2e.differential.clients import Fates
from e2e.differential.expect import (
    Listed,
    Own,
    choose_as_closeby,
    choose_as_peer,
    find_port,
    find_server,
    list_claimants,
    reached,
)
from e2e.differential.judge import Disagreement, comparable, keeps_own_rule
from e2e.differential.model import ServiceSpec, State
from e2e.differential.places import GATEWAY_IPS, LOCAL_PODS, NODE, POD_IPS

_ANY_OUTSIDE = ("0.0.0.0", "::")  # stand for all frontends but the ClusterIPs


class Case(NamedTuple):
    """A difference, and what led to it."""

    service: ServiceSpec
    states: Sequence[State]  # of its world, the last one is now
    found: Disagreement

    @property
    def peers_list(self) -> list[Listed]:
        """What kube-proxy chooses from."""
        return choose_as_peer(self.service, self.found.probe.way, self.states[-1].zone)

    @property
    def own_list(self) -> list[Listed]:
        """What closeby chooses from."""
        return choose_as_closeby(self.service, self.found.probe.way, self.states[-1].zone)[0]

    @property
    def own_rule(self) -> Own | None:
        """The rule of closeby's own that made its list."""
        return choose_as_closeby(self.service, self.found.probe.way, self.states[-1].zone)[1]


class Wanted(NamedTuple):
    """A kind of difference."""

    name: str
    reason: str
    explains: Callable[[Case], bool]


def find_wanted(states: Sequence[State], found: Disagreement) -> Wanted | None:
    """What explains the difference after these states of a world; None: nothing does."""
    way = found.probe.way
    if len(list_claimants(states[-1], way)) > 1:
        return _CLAIMED if keeps_own_rule(found.probe, found.closeby) else None
    service = find_server(states[-1], way, found.probe.target.service)
    if service is None:
        return None
    return next((one for one in WANTED if one.explains(Case(service, states, found))), None)


def _keeps_daemon_sets_traffic(case: Case) -> bool:
    return case.own_rule is Own.DAEMON_SET and _is_own_choice(case)


def _prefers_without_hints(case: Case) -> bool:
    return case.own_rule is Own.NO_HINTS and _is_own_choice(case)


def _is_own_choice(case: Case) -> bool:
    """Exactly closeby's list was reached; endpoints that kube-proxy chose, too, saw the same source."""
    probe, closeby, peer = case.found
    own = frozenset(one.words for one in case.own_list)
    if reached(closeby) != {fate.rpartition(" ")[0] for fate in closeby}:
        return False  # some tries failed
    if probe.target.sticky:
        return bool(closeby) and reached(closeby) <= own and (len(closeby) == 1 or not probe.target.one_list)
    peer = _with_itself(case) if "timed-out" in peer else peer
    both = own & reached(peer)
    return reached(closeby) == own and _only(closeby, both) == _only(peer, both)


def _reaches_itself_without_node(case: Case) -> bool:
    """A pod that is an endpoint without a nodeName meets itself with closeby only; the rest is equal."""
    probe, closeby, peer = case.found
    if not _itself(case) or "timed-out" not in peer:
        return False
    if not probe.target.sticky:
        return closeby == _with_itself(case)
    # Each side's chance may have bound the pod to itself or to another.
    listed = {one.words for one in case.own_list}
    answered = reached(closeby)
    return len(answered) == len(closeby) and answered <= listed and (len(closeby) == 1 or not probe.target.one_list)


def _forgets_a_binding(case: Case) -> bool:
    """One packet was lost, to an endpoint that an earlier state, or another frontend, may have bound the client to."""
    probe, closeby, peer = case.found
    lost = {"unreachable"} if probe.client == NODE and probe.target.protocol == "UDP" else {"timed-out"}
    if not case.service.sticky or not lost <= closeby or lost & peer:
        return False
    answers = closeby - lost
    listed = {one.words for one in case.own_list}
    if not (_list_bindings(case) - listed) or not reached(answers) <= listed:
        return False
    return comparable(probe, answers) == comparable(probe, peer)


def _list_bindings(case: Case) -> frozenset[str]:
    """Endpoints that the client may be bound to from before, or by another frontend of the Service port."""
    way = case.found.probe.way
    now = find_port(case.service, way)
    if now is None:
        return frozenset()
    found: set[str] = set()
    for state in case.states:
        for service in state.services:
            port = next((one for one in service.ports if (one.name, one.protocol) == (now.name, now.protocol)), None)
            if service.name != case.service.name or not service.sticky or port is None:
                continue
            for ip in (*service.cluster_ips, *_ANY_OUTSIDE):
                if (":" in ip) is (":" in way.ip):
                    there = way._replace(ip=ip, port=port.port)
                    found |= {one.words for one in choose_as_closeby(service, there, state.zone)[0]}
    return frozenset(found)


def _itself(case: Case) -> frozenset[str]:
    """The client's own endpoints in kube-proxy's list that name no node."""
    client = case.found.probe.client
    own = POD_IPS[LOCAL_PODS.index(client)] if client in LOCAL_PODS else ()
    return frozenset(one.words for one in case.peers_list if one.spec.ip in own and one.spec.node is None)


def _with_itself(case: Case) -> Fates:
    """kube-proxy's answer, had it masqueraded for them."""
    gateway = GATEWAY_IPS[":" in case.found.probe.target.ip]
    return (case.found.peer - {"timed-out"}) | {f"{words} {gateway}" for words in _itself(case)}


def _only(fates: Fates, endpoints: frozenset[str]) -> Fates:
    return frozenset(fate for fate in fates if reached({fate}) <= endpoints)


_CLAIMED = Wanted(
    Own.CLAIM,
    "which of two Services has an address and port that both claim is left open; with closeby a ClusterIP, then the "
    "older one, then the first by name (D9), with kube-proxy chance",
    lambda case: keeps_own_rule(case.found.probe, case.found.closeby),
)

WANTED = (
    Wanted(
        Own.DAEMON_SET,
        "a Service with a preference that one DaemonSet backs on every node keeps its traffic on the node (D8)",
        _keeps_daemon_sets_traffic,
    ),
    Wanted(
        Own.NO_HINTS,
        "slices written by hand have no hints; closeby takes the endpoints' own zones and nodes (rule 4 of the choice)",
        _prefers_without_hints,
    ),
    Wanted(
        "hairpin without nodeName",
        "closeby masquerades for every endpoint that a pod could be; kube-proxy only for those that name its node, so "
        "that a pod can't reach itself through a hand-written slice",
        _reaches_itself_without_node,
    ),
    Wanted(
        "a binding that went stale",
        "where affinity names an endpoint that isn't in the list any more, closeby drops that one packet and forgets: "
        "the next try, or the second SYN, is served",
        _forgets_a_binding,
    ),
)
