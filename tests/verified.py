"""A node's plan and the tables that should come of it, for tests of what `verify` says of them."""

from collections.abc import Iterable
from typing import NamedTuple

from endpointslice.snapshot import EMPTY, Changed, Snapshot, apply_events
from endpointslice.topology import Place
from endpointslice.types import CIDR, Family, Object
from proxy.planner.planner import NOTHING, Moment, Planner
from proxy.planner.settings import Settings
from proxy.verify.checks import Check, check_kube_proxy, check_own
from proxy.verify.expected import Wanted, expect
from proxy.verify.own import Elements
from tests.kube_proxy_table import KubeProxyTable
from tests.small_worlds import NODE
from tests.strategies import kind_of

SETTINGS = Settings(NODE, cluster_cidrs=(CIDR("10.244.0.0/16"), CIDR("fd00:244::/56")))


class Planned(NamedTuple):
    """What should be."""

    wanted: Wanted
    elements: Elements
    settings: Settings

    def check_own(self, installed: Elements) -> Check:
        """What is said of our tables with these elements."""
        by_family = {family: _of(installed, family) for family in Family}
        return check_own(by_family, self.elements, self.wanted, self.settings)

    def check_kube_proxy(self, tables: Iterable[KubeProxyTable]) -> Check:
        """What is said of kube-proxy's."""
        return check_kube_proxy([table.foreign() for table in tables], self.wanted, self.settings)


def plan_events(events: Iterable[Changed], settings: Settings = SETTINGS) -> Planned:
    """The plan after these events."""
    return plan_snapshot(apply_events(EMPTY, events)[0], settings)


def plan_objects(*objects: Object, settings: Settings = SETTINGS) -> Planned:
    """The plan for these objects."""
    return plan_events([Changed(kind_of(one), one.name, one) for one in objects], settings)


def plan_snapshot(snapshot: Snapshot, settings: Settings = SETTINGS) -> Planned:
    """The plan for a Snapshot."""
    planner = Planner(settings)
    planner.update(snapshot, NOTHING, Moment({}, frozenset(), 0.0))
    node = snapshot.nodes.get(settings.node)
    plans = [planner.plan(name, 0.0) for name in sorted(snapshot.services)]
    place = Place(settings.node, node.zone if node is not None else None)
    wanted = expect([plan for plan in plans if plan is not None], place, planner.node_addresses)
    return Planned(wanted, planner.desired.elements, settings)


def tables_of(wanted: Wanted) -> list[KubeProxyTable]:
    """kube-proxy's tables, as they are where it chooses by its own rules."""
    tables = {
        family: KubeProxyTable(
            family,
            [ip for ip in wanted.cluster_ips if (":" in ip) == (family is Family.IPV6)],
            [ip for ip in wanted.node_addresses if (":" in ip) == (family is Family.IPV6)],
        )
        for family in Family
    }
    for key, expected in wanted.frontends.items():
        treatment, other = expected.treatment, expected.by_kube_proxy
        if other is not None:
            treatment = treatment.__class__(
                other.outside, other.here, treatment.affinity_s, treatment.sources, treatment.source
            )
        tables[key.family].add(key, treatment)
    return list(tables.values())


def _of(elements: Elements, family: Family) -> Elements:
    return {set_id: part for set_id, part in elements.items() if set_id.family is family}
