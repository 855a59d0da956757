"""What differs about a table as a whole, in words. Pure."""

from collections.abc import Iterable, Iterator

import msgspec

from endpointslice.addresses import family_of
from endpointslice.types import IP, Family
from proxy.kernel.ruleset import TABLE as OWN
from proxy.kernel.ruleset import SetName
from proxy.planner.settings import PRIMARY, Settings
from proxy.verify.expected import Wanted
from proxy.verify.own import Odd
from proxy.verify.types import Table

_ONE_FAMILY = (
    "nodePortAddresses has no network of this family: kube-proxy then opens all its addresses, closeby none of them"
)
_TOLD = frozenset({SetName.CLUSTER_IPS, SetName.NODE_ADDRESSES})  # by their members, in other words
_WORDS = {
    SetName.HAIRPIN: "endpoints that reach themselves through their Service",
    SetName.SERVICE_CIDRS: "networks that ClusterIPs come from",
    SetName.LOCAL_PODS: "networks that tell pods",
    SetName.LOCAL_INTERFACES: "devices that tell pods",
    SetName.CLUSTER_IP_SOURCES: "networks whose ClusterIP traffic keeps its source",
    SetName.CLUSTER_IP_INTERFACES: "devices whose ClusterIP traffic keeps its source",
    SetName.AFFINITIES: "maps and chains of session affinity",
}


class Remark(msgspec.Struct, frozen=True):
    """One thing."""

    what: str
    meant: str = ""  # why it may be so; "": nothing explains it


def find_remarks(wanted: Wanted, table: Table, settings: Settings, odd: Iterable[Odd] = ()) -> tuple[Remark, ...]:
    """What is wrong with the table as a whole, with the node's addresses, and with elements of no frontend."""
    return (
        *map(Remark, table.problems),
        *_compare_cluster_ips(wanted, table),
        *_compare_node_addresses(wanted, table, settings),
        *_count_odd(odd),
    )


def _compare_cluster_ips(wanted: Wanted, table: Table) -> Iterator[Remark]:
    for ip in sorted(wanted.cluster_ips - table.cluster_ips):
        yield Remark(f"{ip} is not among the ClusterIPs: its other ports are not refused")
    for ip in sorted(table.cluster_ips - wanted.cluster_ips):
        yield Remark(f"{ip} is among the ClusterIPs, but no Service has it")


def _compare_node_addresses(wanted: Wanted, table: Table, settings: Settings) -> Iterator[Remark]:
    for family, found in table.node_addresses.items():
        ours = frozenset(ip for ip in wanted.node_addresses if family_of(ip) is family)
        if found == ours:
            continue
        if found is None:
            given = [one for one in settings.node_port_addresses if one != PRIMARY and family_of(IP(one)) is family]
            if _opens_all(given):
                continue
            what = f"NodePorts answer at every local {family.value} address, not only at {_list(ours)}"
            meant = _ONE_FAMILY if not given and PRIMARY not in settings.node_port_addresses else ""
            yield Remark(what, meant if table.name != OWN else "")
        else:
            yield Remark(f"{family.value} NodePorts answer at {_list(found)}, not at {_list(ours)}")


def _opens_all(cidrs: Iterable[str]) -> bool:
    return any(cidr in {"0.0.0.0/0", "::/0"} for cidr in cidrs)


def _list(ips: Iterable[IP]) -> str:
    return ", ".join(sorted(ips)) or "no address"


def _count_odd(odd: Iterable[Odd]) -> Iterator[Remark]:
    """Elements that belong to no frontend, but for those that are told by their members."""
    counts: dict[tuple[SetName, Family, str], int] = {}
    for one in odd:
        if one.frontend is None and one.set not in _TOLD:
            where = (one.set, one.family, one.state)
            counts[where] = counts.get(where, 0) + 1
    for (name, family, state), count in counts.items():
        yield Remark(f"{_WORDS.get(name, 'elements')} ({family.value} set {name}): {count} {state}")
