"""Which endpoints a chain of kube-proxy's leads to, and whom. Pure."""

import sys
from collections.abc import Iterable
from itertools import chain as join

import msgspec

from proxy.verify.expressions import Do, Load, Rule
from proxy.verify.foreign import Foreign

_DEEPEST = 8  # chains behind one another; kube-proxy has four
_OURSELVES = frozenset({Load.SOURCE, Load.INTERFACE, Load.SOURCE_IS_LOCAL})  # what tells this node's own traffic


class Way(msgspec.Struct, frozen=True):
    """Where a chain leads."""

    endpoints: frozenset[bytes] | None = None  # None: it comes to an end without translating
    here: "Way | None" = None  # the way of this node's own traffic, where it goes another one
    marked: bool = False  # everyone's packets are marked for masquerading
    bindings: frozenset[str] = frozenset()  # the sets that affinity looks into
    bound: frozenset[bytes] = frozenset()  # the endpoints that bindings lead to
    problem: str = ""


class Ways:
    """Follows chains; each once."""

    def __init__(self, table: Foreign) -> None:
        self._table = table
        self._known: dict[str, Way] = {}

    def follow(self, chain: str, depth: int = 0) -> Way:
        """Where the chain leads; what isn't understood ends in a problem."""
        way = self._known.get(chain)
        if way is None:
            way = self._known[chain] = self._walk(chain, depth)
        return way

    def _walk(self, chain: str, depth: int) -> Way:
        if chain not in self._table.rules or depth > _DEEPEST:
            return Way(problem=f"chain {chain} isn't there, or leads in a circle")
        way = Way()
        for rule in self._table.rules[chain]:
            way = self._step(way, rule, depth)
            if way.problem:
                return way if chain in way.problem else _replace(way, problem=f"chain {chain}: {way.problem}")
            if way.endpoints is not None or (rule.do is Do.GOTO and not _conditions(rule)):
                break
        if way.endpoints is not None and not way.bound <= way.endpoints:
            return _replace(way, problem=f"chain {chain}: a binding leads to an endpoint that isn't in its list")
        return way

    def _step(self, way: Way, rule: Rule, depth: int) -> Way:
        conditions = _conditions(rule)
        match rule.do:
            case Do.NOTHING:
                return way
            case Do.MARK if conditions <= _OURSELVES:
                return way if conditions else _replace(way, marked=True)
            case Do.GOTO if not conditions:
                return _join(way, [self.follow(rule.target, depth + 1)])
            case Do.GOTO if conditions <= _OURSELVES and (sets := _sets(rule)):
                there = self.follow(rule.target, depth + 1)
                ends = there.endpoints or frozenset()
                return _replace(way, bindings=way.bindings | sets, bound=way.bound | ends, problem=there.problem)
            case Do.GOTO if conditions <= _OURSELVES:
                return _replace(way, here=way.here or self.follow(rule.target, depth + 1))
            case Do.MAP | Do.DNAT if not conditions and (rule.draws or rule.endpoint):
                return self._draw(way, rule, depth)
            case _:
                return _replace(way, problem="a rule that isn't understood")

    def _draw(self, way: Way, rule: Rule, depth: int) -> Way:
        """The endpoints of a rule that draws one of several, or has a single one."""
        if rule.endpoint:
            return _replace(way, endpoints=frozenset({rule.endpoint}))
        found = self._table.elements.get(rule.map, {})
        if sorted(int.from_bytes(key, sys.byteorder) for key in found) != list(range(rule.draws)):
            return _replace(way, problem=f"it draws one of {rule.draws} endpoints, and has {len(found)}")
        if rule.do is Do.DNAT:
            return _replace(way, endpoints=frozenset(found.values()))
        chains = [data.decode(errors="replace").removeprefix("goto ") for data in found.values()]
        return _join(way, [self.follow(name, depth + 1) for name in chains])


def _conditions(rule: Rule) -> frozenset[Load]:
    """What a rule looks at besides the protocol, which its map has told."""
    return frozenset(match.of for match in rule.matches) - {Load.PROTOCOL}


def _sets(rule: Rule) -> frozenset[str]:
    return frozenset(match.set for match in rule.matches if match.set and not match.negated)


def _join(way: Way, others: Iterable[Way]) -> Way:
    """The way, going on as one of the others."""
    others = tuple(others)
    ends = [one.endpoints for one in others if one.endpoints is not None]
    return Way(
        endpoints=frozenset(join.from_iterable(ends)) if ends else None,
        here=way.here or next((one.here for one in others if one.here), None),
        marked=way.marked or all(one.marked for one in others),
        bindings=way.bindings.union(*(one.bindings for one in others)),
        bound=way.bound.union(*(one.bound for one in others)),
        problem=next((one.problem for one in others if one.problem), ""),
    )


def _replace(way: Way, **changes: object) -> Way:
    return msgspec.structs.replace(way, **changes)
