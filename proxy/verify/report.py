"""What `closeby verify -o json` prints: a contract, to which fields are added. Pure."""

from collections.abc import Iterable

import msgspec

from endpointslice.topology import Place
from endpointslice.types import Family
from proxy.verify.checks import Check
from proxy.verify.compare import Row
from proxy.verify.fields import show_sources
from proxy.verify.types import Fate, Treatment


class SideReport(msgspec.Struct, frozen=True):
    """What should become, or becomes, of a new connection."""

    verdict: str  # dnat, reject, drop; none: nothing translates or refuses it
    endpoints: tuple[str, ...]  # "ip:port", sorted
    affinity: int | None  # seconds; null: off
    source_ranges: tuple[str, ...]  # the only sources that may reach it; empty: all
    source: str | None  # kept, masqueraded; null: it can't be seen, or nothing is translated


class FrontendCheck(msgspec.Struct, frozen=True, rename={"client": "from"}):
    """One frontend, for one kind of client."""

    service: str | None  # null: no Service should have this frontend
    service_port: str | None
    protocol: str
    family: str
    kind: str | None  # ClusterIP, ExternalIP, LoadBalancerIP, NodePort
    ip: str | None  # null: a NodePort
    port: int
    client: str  # any, outside, this-node
    tier: str | None
    reason: str | None
    expected: SideReport | None
    found: SideReport | None
    differences: tuple[str, ...]
    meant: str  # why it may be so; "": nothing explains it
    detail: str


class RemarkReport(msgspec.Struct, frozen=True):
    """What differs about a table as a whole."""

    what: str
    meant: str


class TableCheck(msgspec.Struct, frozen=True):
    """One table."""

    table: str
    frontends: tuple[FrontendCheck, ...]
    remarks: tuple[RemarkReport, ...]
    unseen: tuple[str, ...]  # what the table doesn't show
    counts: dict[str, int]  # frontends: same, meant, different; remarks that nothing explains: remarks


class VerifyReport(msgspec.Struct, frozen=True):
    """All tables."""

    node: str
    zone: str | None
    tables: tuple[TableCheck, ...]

    @property
    def wrong(self) -> bool:
        """Whether something differs that nothing explains."""
        return any(table.counts["different"] or table.counts["remarks"] for table in self.tables)


def report_checks(place: Place, checks: Iterable[Check]) -> VerifyReport:
    """Every table with all rows."""
    return VerifyReport(place.node, place.zone, tuple(map(_report_table, checks)))


def keep_differences(report: VerifyReport) -> VerifyReport:
    """The same without the frontends that are as they should be."""
    tables = (
        msgspec.structs.replace(table, frontends=tuple(row for row in table.frontends if row.differences))
        for table in report.tables
    )
    return msgspec.structs.replace(report, tables=tuple(tables))


def _report_table(check: Check) -> TableCheck:
    differing = {row.key for row in check.rows if row.differences}
    wrong = {row.key for row in check.rows if row.wrong}
    return TableCheck(
        table=check.table,
        frontends=tuple(map(_report_row, sorted(check.rows, key=_by_service))),
        remarks=tuple(RemarkReport(remark.what, remark.meant) for remark in check.remarks),
        unseen=check.unseen,
        counts={
            "same": len({row.key for row in check.rows} - differing),
            "meant": len(differing - wrong),
            "different": len(wrong),
            "remarks": sum(not remark.meant for remark in check.remarks),
        },
    )


def _by_service(row: Row) -> tuple[str, str]:
    """Services by name, each one's frontends in the order they are in; "~": what no Service has comes last."""
    return (row.expected.service, row.expected.port) if row.expected else ("~", "")


def _report_row(row: Row) -> FrontendCheck:
    key, expected = row.key, row.expected
    return FrontendCheck(
        service=expected.service if expected else None,
        service_port=expected.port if expected else None,
        protocol=key.protocol.value,
        family=key.family.value,
        kind=expected.kind.value if expected else None,
        ip=key.ip or None,
        port=key.port,
        client=row.client.value,
        tier=row.choice.tier.value if row.choice else None,
        reason=row.choice.why.value if row.choice else None,
        expected=_report_side(key.family, row.wanted, expected.treatment if expected else None),
        found=_report_side(key.family, row.found, row.treatment),
        differences=tuple(difference.value for difference in row.differences),
        meant=row.meant,
        detail=row.detail,
    )


def _report_side(family: Family, fate: Fate | None, treatment: Treatment | None) -> SideReport | None:
    if fate is None or treatment is None:
        return None
    return SideReport(
        verdict=fate.verdict.value if fate.verdict else "none",
        endpoints=fate.endpoints,
        affinity=treatment.affinity_s,
        source_ranges=show_sources(family, treatment.sources),
        source=treatment.source.value if treatment.source else None,
    )
