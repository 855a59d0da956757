"""IPAddressPool and L2Advertisement, from the wire to checked values: the one place that says what is valid.

The controller and `closeby validate` both ask here. Whether pools go together is `accept`'s question.
"""

from collections.abc import Iterable, Sequence
from itertools import combinations

from proxy.addresses import wire
from proxy.addresses.ranges import overlaps, parse_range, show_range
from proxy.addresses.selectors import matches_any, read_selector, read_selectors
from proxy.addresses.types import Advertisement, Pool, Preference, Problem, Range
from proxy.interfaces import is_interface_name

SPREAD_ANNOTATION = "closeby.dev/spread-clients"  # of an L2Advertisement: its schema is MetalLB's, without such a field
_SPREAD_FIELD = f"metadata.annotations[{SPREAD_ANNOTATION}]"
_YES, _NO = "true", "false"
_WEIGHTS = range(1, 101)


def check_pool(pool: wire.Pool, problems: list[Problem]) -> Pool:
    """The pool; it is valid if nothing was added to `problems`."""
    spec = pool.spec
    allocation = spec.service_allocation or wire.ServiceAllocation()
    field = "spec.serviceAllocation"
    priority = allocation.priority or 0
    if priority < 0:
        problems.append(Problem(f"{field}.priority", f"{priority} is below 0"))
    namespaces = allocation.namespaces or []
    check_unique(f"{field}.namespaces", namespaces, problems)
    return Pool(
        name=pool.metadata.name,
        ranges=_ranges(spec.addresses or [], problems),
        auto_assign=spec.auto_assign is not False,
        avoid_buggy_ips=spec.avoid_buggy_ips is True,
        priority=priority,
        namespaces=frozenset(namespaces) if namespaces else None,
        namespace_selectors=read_selectors(f"{field}.namespaceSelectors", allocation.namespace_selectors, problems),
        service_selectors=read_selectors(f"{field}.serviceSelectors", allocation.service_selectors, problems),
        labels=frozenset((pool.metadata.labels or {}).items()),
        created=pool.metadata.creation_timestamp or "",
    )


def _ranges(texts: Sequence[str], problems: list[Problem]) -> tuple[Range, ...]:
    if not texts:
        problems.append(Problem("spec.addresses", "none given"))
    found: list[tuple[int, Range]] = []
    for index, text in enumerate(texts):
        parsed = parse_range(text)
        if isinstance(parsed, str):
            problems.append(Problem(f"spec.addresses[{index}]", parsed))
        else:
            found.append((index, parsed))
    for (earlier, one), (later, other) in combinations(found, 2):
        if overlaps(one, other):
            what = f"{show_range(other)} overlaps spec.addresses[{earlier}], {show_range(one)}"
            problems.append(Problem(f"spec.addresses[{later}]", what))
    return tuple(parsed for _index, parsed in found)


def check_advertisement(advertisement: wire.Advertisement, problems: list[Problem]) -> Advertisement:
    """The advertisement; it is valid if nothing was added to `problems`."""
    spec = advertisement.spec
    pools, interfaces = spec.ip_address_pools or [], spec.interfaces or []
    check_unique("spec.ipAddressPools", pools, problems)
    check_unique("spec.interfaces", interfaces, problems)
    for index, name in enumerate(interfaces):
        if not is_interface_name(name):
            problems.append(Problem(f"spec.interfaces[{index}]", f'"{name}" is no name of an interface'))
    return Advertisement(
        name=advertisement.metadata.name,
        pools=frozenset(pools),
        pool_selectors=read_selectors("spec.ipAddressPoolSelectors", spec.ip_address_pool_selectors, problems) or (),
        node_selectors=read_selectors("spec.nodeSelectors", spec.node_selectors, problems) or (),
        preferences=_preferences(spec.preferred_node_selectors or (), problems),
        interfaces=frozenset(interfaces),
        service_selectors=read_selectors("spec.serviceSelectors", spec.service_selectors, problems) or (),
        spreads=(advertisement.metadata.annotations or {}).get(SPREAD_ANNOTATION) == _YES,
    )


def check_spread(advertisement: wire.Advertisement) -> tuple[Problem, ...]:
    """What makes no sense of its wish to spread clients. It is announced all the same, and spreads nothing."""
    asked = (advertisement.metadata.annotations or {}).get(SPREAD_ANNOTATION, _NO)
    if asked not in {_YES, _NO}:
        return (Problem(_SPREAD_FIELD, f'"{asked}" is neither "true" nor "false": clients aren\'t spread'),)
    if asked == _YES and advertisement.spec.preferred_node_selectors:
        return (Problem(_SPREAD_FIELD, "spec.preferredNodeSelectors prefer nodes, so clients aren't spread"),)
    return ()


def _preferences(wires: Iterable[wire.PreferredNodes], problems: list[Problem]) -> tuple[Preference, ...]:
    found = []
    for index, preferred in enumerate(wires):
        field = f"spec.preferredNodeSelectors[{index}]"
        if preferred.weight is None or preferred.weight not in _WEIGHTS:
            problems.append(Problem(f"{field}.weight", f"{preferred.weight} is not a number from 1 to 100"))
        if preferred.preference is None:
            problems.append(Problem(f"{field}.preference", "none given"))
        selector = read_selector(f"{field}.preference", preferred.preference or wire.LabelSelector(), problems)
        found.append(Preference(preferred.weight or 0, selector))
    return tuple(found)


def check_unique(field: str, texts: Sequence[str], problems: list[Problem]) -> None:
    """Add a problem for each text that stands there before."""
    problems += [
        Problem(f"{field}[{index}]", f'"{text}" is repeated')
        for index, text in enumerate(texts)
        if text in texts[:index]
    ]


def is_for(advertisement: Advertisement, pool: Pool) -> bool:
    """Whether the pool's addresses are to be announced by it, but for what it says of Services."""
    named = advertisement.pools or advertisement.pool_selectors
    return not named or pool.name in advertisement.pools or matches_any(advertisement.pool_selectors, pool.labels)
