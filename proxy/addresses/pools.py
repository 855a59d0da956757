"""IPAddressPool and L2Advertisement, from the wire to checked values: the one place that says what is valid.

The controller and `closeby validate` both ask here. Whether pools go together is `accept`'s question.
"""

from collections.abc import Iterable, Sequence
from itertools import combinations

from proxy.addresses import wire
from proxy.addresses.ranges import overlaps, parse_range, show_range
from proxy.addresses.selectors import read_selector, read_selectors
from proxy.addresses.types import Advertisement, Pool, Preference, Problem, Range
from proxy.interfaces import is_interface_name

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
    )


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
