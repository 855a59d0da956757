"""One table held against what closeby would choose: every row and remark. Pure."""

from collections.abc import Iterable, Mapping

import msgspec

from endpointslice.types import Family
from proxy.kernel.ruleset import TABLE, SetId
from proxy.planner.settings import Settings
from proxy.verify.compare import Row, compare
from proxy.verify.expected import Wanted
from proxy.verify.foreign import Foreign
from proxy.verify.kube_proxy import read_table
from proxy.verify.own import Elements, find_odd, read_own
from proxy.verify.remarks import Remark, find_remarks

_NFT_WORDS = {Family.IPV4: "ip", Family.IPV6: "ip6"}


class Check(msgspec.Struct, frozen=True):
    """What became of one table."""

    table: str
    rows: tuple[Row, ...]
    remarks: tuple[Remark, ...]
    unseen: tuple[str, ...] = ()


def check_own(
    installed: Mapping[Family, Elements | None], desired: Elements, wanted: Wanted, settings: Settings
) -> Check:
    """Our own table, element by element. None for a family: its rules aren't ours, so its elements say nothing."""
    readable = [family for family, elements in installed.items() if elements is not None]
    held = {set_id: part for elements in installed.values() if elements for set_id, part in elements.items()}
    should = {set_id: part for set_id, part in desired.items() if _is_of(set_id, readable)}
    here = _restrict(wanted, readable)
    table = read_own(held, readable)
    odd = tuple(find_odd(held, should, here.frontends.keys() | table.treatments.keys()))
    problems = tuple(
        Remark(
            f"table {_NFT_WORDS[family]} {TABLE} isn't as this version makes it: absent, another version's, or edited; "
            "a running closeby would replace it, and its elements are not compared"
        )
        for family, elements in installed.items()
        if elements is None
    )
    return Check(TABLE, compare(here, table, odd), (*problems, *find_remarks(here, table, settings, odd)))


def check_kube_proxy(parts: Iterable[Foreign], wanted: Wanted, settings: Settings) -> Check:
    """kube-proxy's table, frontend by frontend."""
    table = read_table(parts)
    return Check(table.name, compare(wanted, table), find_remarks(wanted, table, settings), table.unseen)


def _is_of(set_id: SetId, families: Iterable[Family]) -> bool:
    return set_id.family in families


def _restrict(wanted: Wanted, families: Iterable[Family]) -> Wanted:
    """What concerns these families."""
    frontends = {key: expected for key, expected in wanted.frontends.items() if key.family in families}
    of_families = frozenset(key.ip for key in frontends)
    return msgspec.structs.replace(wanted, frontends=frontends, cluster_ips=wanted.cluster_ips & of_families)
