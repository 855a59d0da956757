"""What kube-proxy's table does with each frontend: its documented maps, then verdicts and rules, never chains' names.

Names of maps as kube-proxy v1.36 gives them. Pure.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain as join

from endpointslice.topology import Verdict
from endpointslice.types import IP, Family
from proxy.planner.plan import Source
from proxy.verify.expressions import Do, Load, Match, Rule
from proxy.verify.fields import merge_sources, show_target, unpack_address, unpack_key, unpack_range
from proxy.verify.foreign import TABLE, Foreign
from proxy.verify.types import Fate, Key, Sources, Table, Treatment
from proxy.verify.ways import Way, Ways

SERVICE_IPS, NODE_PORTS = "service-ips", "service-nodeports"
REFUSED, REFUSED_NODE_PORTS = "no-endpoint-services", "no-endpoint-nodeports"
FIREWALL, CLUSTER_IPS = "firewall-ips", "cluster-ips"
_PREROUTING, _INPUT, _FORWARD, _OUTPUT = range(4)  # NF_INET_*
_ASKED: Mapping[str, tuple[int, ...]] = {  # which maps must be asked at which hooks
    SERVICE_IPS: (_PREROUTING, _OUTPUT),
    NODE_PORTS: (_PREROUTING, _OUTPUT),
    FIREWALL: (_PREROUTING, _OUTPUT),
    REFUSED: (_INPUT, _FORWARD, _OUTPUT),
    REFUSED_NODE_PORTS: (_INPUT,),
}
_HOOKS = ("prerouting", "input", "forward", "output")
_UNSEEN = (
    "whose ClusterIP traffic is masqueraded, and of which pods that reach themselves",
    "what becomes of other ports of a ClusterIP, and of ServiceCIDR addresses that no Service has",
    "which clients affinity has bound",
)


def read_table(parts: Iterable[Foreign]) -> Table:
    """Both families' tables as one."""
    parts = tuple(parts)
    return Table(
        name=TABLE,
        treatments={key: one for part in parts for key, one in _Decoder(part).iter_treatments()},
        cluster_ips=frozenset(ip for part in parts for ip in _addresses(part, CLUSTER_IPS)),
        node_addresses={part.family: _node_addresses(part) for part in parts},
        problems=tuple(join.from_iterable(_find_problems(part) for part in parts)),
        unseen=_UNSEEN,
    )


def _addresses(part: Foreign, name: str) -> frozenset[IP]:
    return frozenset(unpack_address(key) for key in part.elements.get(name, {}) if len(key) in {4, 16})


def _node_addresses(part: Foreign) -> frozenset[IP] | None:
    """Where NodePorts answer; None: at any local address."""
    found: set[IP] = set()
    for rule in join.from_iterable(part.rules.values()):
        if rule.map != NODE_PORTS:
            continue
        for match in rule.matches:
            if match.of is Load.DESTINATION_IS_LOCAL:
                return None
            if match.of is Load.DESTINATION and match.set and not match.negated:
                found |= _addresses(part, match.set)
    return frozenset(found)


def _find_problems(part: Foreign) -> Iterator[str]:
    """What is wrong with the table as a whole."""
    table = f"table {'ip' if part.family is Family.IPV4 else 'ip6'} {TABLE}"
    for name, hooks in _ASKED.items():
        if name not in part.elements:
            yield f"{table} has no map {name}: it is of a version that isn't known here"
            continue
        for hook in hooks:
            if name not in _maps_asked(part, hook):
                yield f"{table} doesn't look into {name} at {_HOOKS[hook]}"


def _maps_asked(part: Foreign, hook: int) -> frozenset[str]:
    """The maps that packets are looked up in on their way from a hook."""
    asked: set[str] = set()
    seen: set[str] = set()
    chains = [name for name, number in part.hooks.items() if number == hook]
    while chains:
        name = chains.pop()
        if name in seen:
            continue
        seen.add(name)
        for rule in part.rules.get(name, ()):
            if rule.do is Do.MAP and not rule.draws:
                asked.add(rule.map)
            elif rule.do in {Do.JUMP, Do.GOTO}:
                chains.append(rule.target)
    return frozenset(asked)


class _Decoder:
    """Reads one family's frontends."""

    def __init__(self, part: Foreign) -> None:
        self._part = part
        self._ways = Ways(part)
        self._cluster_ips = _addresses(part, CLUSTER_IPS)

    def iter_treatments(self) -> Iterator[tuple[Key, Treatment]]:
        for services, refused in ((SERVICE_IPS, REFUSED), (NODE_PORTS, REFUSED_NODE_PORTS)):
            translated = self._part.elements.get(services, {})
            refusals = self._part.elements.get(refused, {})
            for packed in dict.fromkeys((*translated, *refusals)):
                key = unpack_key(self._part.family, packed)
                if key is not None:
                    verdicts = (translated.get(packed, b""), refusals.get(packed, b""))
                    firewall = self._part.elements.get(FIREWALL, {}).get(packed, b"")
                    yield key, self._treat(key, verdicts, firewall)

    def _treat(self, key: Key, verdicts: tuple[bytes, bytes], firewall: bytes) -> Treatment:
        way = self._lead(verdicts[0])
        refused = self._refuse(verdicts[1])
        sources, problem = self._read_firewall(firewall)
        outside = self._end(way, refused)
        bound = {name for one in (way, way.here) if one for name in one.bindings}
        seen = key.ip not in self._cluster_ips and outside.verdict is Verdict.DNAT
        return Treatment(
            outside=outside,
            here=self._end(way.here, refused) if way.here else outside,
            affinity_s=max((self._part.timeouts_s.get(name, 0) for name in bound), default=None),
            sources=sources,
            source=(Source.MASQUERADED if way.marked else Source.KEPT) if seen else None,
            problem=way.problem or (way.here.problem if way.here else "") or problem,
        )

    def _lead(self, verdict: bytes) -> Way:
        """The way on from an element of a map of frontends; b"": there is none."""
        word, _, target = verdict.decode(errors="replace").partition(" ")
        if not verdict:
            return Way()
        return self._ways.follow(target) if word == "goto" else Way(problem=f"it leads to {word}")

    def _refuse(self, verdict: bytes) -> Verdict | None:
        if verdict == b"drop":
            return Verdict.DROP
        word, _, target = verdict.decode(errors="replace").partition(" ")
        rules = self._part.rules.get(target, ())
        return Verdict.REJECT if word == "goto" and any(rule.do is Do.REJECT for rule in rules) else None

    def _end(self, way: Way, refused: Verdict | None) -> Fate:
        if way.endpoints is None:
            return Fate(refused)
        return Fate(Verdict.DNAT, tuple(sorted(show_target(self._part.family, one) for one in way.endpoints)))

    def _read_firewall(self, verdict: bytes) -> tuple[Sources, str]:
        """The only sources that the firewall lets through, and what could not be understood."""
        word, _, target = verdict.decode(errors="replace").partition(" ")
        if not verdict:
            return (), ""
        rules = self._part.rules.get(target, ())
        if word == "goto" and len(rules) == 1 and (sources := self._read_exception(rules[0])):
            return sources, ""
        return (), f"its source ranges aren't understood ({verdict.decode(errors='replace')})"

    def _read_exception(self, rule: Rule) -> Sources:
        """Who isn't dropped by `saddr != RANGES drop`; () if the rule is another one."""
        if rule.do is not Do.DROP or len(rule.matches) != 1:
            return ()
        (match,) = rule.matches
        if match.of is not Load.SOURCE or not match.negated:
            return ()
        if match.set:
            return self._read_set(match.set)
        return merge_sources((_read_network(match, 32 if self._part.family is Family.IPV4 else 128),))

    def _read_set(self, name: str) -> Sources:
        size = 4 if self._part.family is Family.IPV4 else 16
        keys = self._part.elements.get(name, {})
        return merge_sources(unpack_range(key if len(key) == 2 * size else key * 2) for key in keys)


def _read_network(match: Match, bits: int) -> tuple[int, int]:
    """First and last address that begin as the match says."""
    length = len(match.value) * 8
    free = (1 << bits - length) - 1
    first = int.from_bytes(match.value) << bits - length
    if match.mask:
        free |= (~int.from_bytes(match.mask) & ((1 << length) - 1)) << bits - length
    return first, first | free
