"""kube-proxy's table as its v1.36 writes it, made from what should be in it: values for decoding, without a kernel."""

import sys
from collections.abc import Iterable, Mapping

from endpointslice.addresses import pack_ip
from endpointslice.topology import Verdict
from endpointslice.types import IP, Family
from proxy.planner.keys import pack_node_port, pack_vip
from proxy.planner.plan import Source
from proxy.verify.expressions import Do, Load, Match, Rule
from proxy.verify.foreign import Foreign
from proxy.verify.types import Fate, Key, Treatment

_GOTO_REJECT = b"goto reject-chain"
_MAPS = ("service-ips", "service-nodeports", "no-endpoint-services", "no-endpoint-nodeports", "firewall-ips")
_POD = Match(Load.SOURCE, b"\x0a\xf4")
_HOST = Match(Load.SOURCE_IS_LOCAL, b"\0\0\0\2")


class KubeProxyTable:
    """One family's table; `foreign()` is what the decoder is given."""

    def __init__(self, family: Family, cluster_ips: Iterable[IP] = (), node_ips: Iterable[IP] = ()) -> None:
        self.family = family
        self.elements: dict[str, dict[bytes, bytes]] = {name: {} for name in _MAPS}
        self.elements["cluster-ips"] = dict.fromkeys(map(pack_ip, cluster_ips), b"")
        self.elements["nodeport-ips"] = dict.fromkeys(map(pack_ip, node_ips), b"")
        self.timeouts_s: dict[str, int] = {}
        self.rules: dict[str, list[Rule]] = {
            "services": [_look("service-ips"), _look("service-nodeports", Match(Load.DESTINATION, set="nodeport-ips"))],
            "firewall-check": [_look("firewall-ips")],
            "service-endpoints-check": [_look("no-endpoint-services")],
            "nodeport-endpoints-check": [_look("no-endpoint-nodeports")],
            "reject-chain": [Rule(Do.REJECT)],
        }
        self.hooks: dict[str, int] = {}
        for hook, (base, chains) in enumerate(_BASE):
            self.hooks[base] = hook
            self.rules[base] = [Rule(Do.JUMP, target=chain) for chain in chains]

    def add(self, key: Key, treatment: Treatment) -> None:
        """A frontend that is treated so."""
        vip = key.ip != ""
        packed = pack_vip(key.ip, key.protocol, key.port) if vip else pack_node_port(key.protocol, key.port)
        name = f"{key.ip}/{key.protocol}/{key.port}"
        refusal = {Verdict.REJECT: _GOTO_REJECT, Verdict.DROP: b"drop"}.get(treatment.outside.verdict or Verdict.DNAT)
        if refusal is not None:
            self.elements["no-endpoint-services" if vip else "no-endpoint-nodeports"][packed] = refusal
        if Verdict.DNAT in {treatment.outside.verdict, treatment.here.verdict}:
            self.elements["service-ips" if vip else "service-nodeports"][packed] = f"goto external-{name}".encode()
            self._add_external(name, treatment)
        if treatment.sources:
            self.elements["firewall-ips"][packed] = f"goto firewall-{name}".encode()
            size = 4 if self.family is Family.IPV4 else 16
            ranges = (first.to_bytes(size) + last.to_bytes(size) for first, last in treatment.sources)
            self.elements[f"set-{name}"] = dict.fromkeys(ranges, b"")
            only = Match(Load.SOURCE, set=f"set-{name}", negated=True)
            self.rules[f"firewall-{name}"] = [Rule(Do.DROP, (only,))]

    def _add_external(self, name: str, treatment: Treatment) -> None:
        rules = self.rules[f"external-{name}"] = []
        if treatment.source is Source.MASQUERADED:
            rules.append(Rule(Do.MARK))
        if treatment.here != treatment.outside:
            chain = self._add_list(f"service-{name}", treatment.here, treatment.affinity_s)
            rules.append(Rule(Do.GOTO, (_POD,), target=chain))
            rules.append(Rule(Do.MARK, (_HOST,)))
            rules.append(Rule(Do.GOTO, (_HOST,), target=chain))
        if treatment.outside.verdict is Verdict.DNAT:
            chain = self._add_list(f"local-{name}", treatment.outside, treatment.affinity_s)
            rules.append(Rule(Do.GOTO, target=chain))

    def _add_list(self, chain: str, fate: Fate, affinity_s: int | None) -> str:
        targets = [_pack(text) for text in fate.endpoints]
        rules = self.rules[chain] = []
        elements = self.elements[f"map-{chain}"] = {}
        for index, target in enumerate(targets):
            key = index.to_bytes(4, sys.byteorder)
            elements[key] = target
            if affinity_s is not None:
                own, bound = f"endpoint-{chain}-{index}", f"affinity-{chain}-{index}"
                self.timeouts_s[bound] = affinity_s
                self.rules[own] = [Rule(Do.NOTHING), Rule(Do.DNAT, endpoint=target)]
                rules.append(Rule(Do.GOTO, (Match(Load.SOURCE, set=bound),), target=own))
                elements[key] = f"goto {own}".encode()
        draw = Do.DNAT if affinity_s is None else Do.MAP
        rules.append(Rule(draw, map=f"map-{chain}", draws=len(targets)))
        return chain

    def foreign(self) -> Foreign:
        """The table as it stands."""
        rules: Mapping[str, tuple[Rule, ...]] = {chain: tuple(rules) for chain, rules in self.rules.items()}
        return Foreign(self.family, self.hooks, rules, self.elements, self.timeouts_s)


_BASE = (  # by NF_INET_ hook number
    ("prerouting", ("services", "firewall-check")),
    ("input", ("nodeport-endpoints-check", "service-endpoints-check")),
    ("forward", ("service-endpoints-check",)),
    ("output", ("services", "firewall-check", "service-endpoints-check")),
)


def _look(name: str, *matches: Match) -> Rule:
    return Rule(Do.MAP, matches, map=name)


def _pack(text: str) -> bytes:
    host, _, port = text.rpartition(":")
    return pack_ip(IP(host.strip("[]"))) + int(port).to_bytes(2) + bytes(2)
