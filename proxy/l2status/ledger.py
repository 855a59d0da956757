"""What this node's announcer has told, so far as it counts. Pure.

An address that it tells of no more counts a while longer: an announcer that is started anew owns nothing for some
seconds, and then what it owned before. Who takes an address over doesn't wait for that.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from endpointslice.types import IP, NodeName, Service, ServiceName
from proxy.announcer.ownership import Conflict, Holding, Ownership
from proxy.l2status.types import Address, Entry, Stranger
from proxy.notices import Notice

GONE_S = 10.0

Services = Mapping[ServiceName, Service]  # those that have load-balancer addresses


class Wish(NamedTuple):
    """What should be said of this node."""

    entries: Mapping[ServiceName, Entry]
    held: frozenset[IP]  # what it announces now; the entries also have what it did until a moment ago


class Ledger(msgspec.Struct, frozen=True):
    """What counts."""

    begun: bool = False  # whether an announcer has told anything
    holdings: Mapping[IP, Holding] = {}
    gone_s: Mapping[IP, float] = {}  # of holdings, when it began to tell of them no more
    conflicts: Mapping[IP, Conflict] = {}
    heals: int = 0


NOTHING = Ledger()


def hear(ledger: Ledger, ownership: Ownership, now: float) -> Ledger:
    """With what was told."""
    told = {holding.vip: holding for holding in ownership.holdings}
    gone = {vip: ledger.gone_s.get(vip, now) for vip in ledger.holdings if vip not in told}
    conflicts = {conflict.vip: conflict for conflict in ownership.conflicts}
    return Ledger(
        begun=True,
        holdings={**ledger.holdings, **told},
        gone_s=gone,
        conflicts=conflicts,
        heals=ownership.heals,
    )


def expire(ledger: Ledger, now: float) -> Ledger:
    """Without what has been told no more for GONE_S."""
    over = {vip for vip, since_s in ledger.gone_s.items() if now - since_s >= GONE_S}
    if not over:
        return ledger
    holdings = {vip: holding for vip, holding in ledger.holdings.items() if vip not in over}
    gone = {vip: since_s for vip, since_s in ledger.gone_s.items() if vip not in over}
    return msgspec.structs.replace(ledger, holdings=holdings, gone_s=gone)


def due_s(ledger: Ledger) -> float | None:
    """When something expires."""
    return min(ledger.gone_s.values()) + GONE_S if ledger.gone_s else None


def make_wish(ledger: Ledger, services: Services, node: NodeName) -> Wish:
    """Something of each Service whose address the node has, or a foreign host has."""
    found = {}
    for name, service in services.items():
        vips = sorted(service.load_balancer_ips)
        held = (ledger.holdings[vip] for vip in vips if vip in ledger.holdings)
        met = (ledger.conflicts[vip] for vip in vips if vip in ledger.conflicts)
        addresses = tuple(Address(one.vip, one.interface) for one in held)
        conflicts = tuple(Stranger(one.vip, one.interface, one.mac) for one in met)
        if addresses or conflicts:
            found[name] = Entry(name, node, addresses, conflicts)
    return Wish(found, frozenset(ledger.holdings.keys() - ledger.gone_s.keys()))


def list_notices(before: Ledger, after: Ledger, services: Services, node: NodeName) -> Iterator[Notice]:
    """An Event for each Service whose address came to this node, or is another host's, too, since `before`.

    None of what the first announcer tells that this process hears: that has happened some time ago.
    """
    if not before.begun:
        return
    for name, service in services.items():
        for vip in service.load_balancer_ips:
            holding, conflict = after.holdings.get(vip), after.conflicts.get(vip)
            if holding is not None and vip not in before.holdings:
                yield _notice(name, "nodeAssigned", _describe_holding(holding, node))
            known = before.conflicts.get(vip)
            if conflict is not None and (known is None or known.mac != conflict.mac):
                yield _notice(name, "AddressConflict", _describe_conflict(conflict), warning=True)


def _notice(service: ServiceName, reason: str, note: str, *, warning: bool = False) -> Notice:
    namespace, _slash, name = service.partition("/")
    return Notice(reason, "Announce", note, kind="Service", name=name, namespace=namespace, warning=warning)


_BEFORE = {
    "taken": "which fell silent",
    "last-resort": "which fell silent, as the other nodes have",
    "received": "which gave it away",
}


def _describe_holding(holding: Holding, node: NodeName) -> str:
    """As MetalLB says it, and more."""
    said = f'announcing from node "{node}" with protocol "layer2": {holding.vip} on {holding.interface}'
    before = holding.origin.before
    return (
        f'{said}; before from node "{before}", {_BEFORE.get(holding.origin.how, "")}'.rstrip(", ") if before else said
    )


def _describe_conflict(conflict: Conflict) -> str:
    said = f"the host {conflict.mac} on {conflict.interface}, which is no node, answers for {conflict.vip}"
    return f"{said}, too: the address is defended" if conflict.held else f"{said}: it isn't announced until that ends"
