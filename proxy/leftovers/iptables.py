"""Pure. kube-proxy's chains in what `iptables-save` prints, and the `iptables-restore` input that removes these alone.

Chain names as Kubernetes v1.20 to v1.36 gives them. Not kube-proxy's, and never touched: the kubelet's KUBE-MARK-DROP,
KUBE-IPTABLES-HINT and KUBE-KUBELET-CANARY, container runtimes' KUBE-HOSTPORTS and KUBE-HP-*, other agents'
KUBE-ROUTER-* and the like. KUBE-FIREWALL is the kubelet's too: both write the same rule, which keeps packets from
outside away from 127.0.0.0/8 while net.ipv4.conf.all.route_localnet is set (kubernetes#90259); so it stays.
"""

import re
import shlex
from collections.abc import Iterable
from typing import NamedTuple

_OURS = re.compile(
    r"KUBE-(?:SERVICES|EXTERNAL-SERVICES|NODEPORTS|NODE-PORT|LOAD-BALANCER|POSTROUTING|MARK-MASQ|FORWARD"
    r"|PROXY-FIREWALL|SOURCE-RANGES-FIREWALL|PROXY-CANARY|IPVS-FILTER|IPVS-OUT-FILTER"
    r"|(?:SVC|SVL|SEP|EXT|FW|XLB)-[A-Z2-7]{16})"
)
_MARK, _MASQUERADE = "KUBE-MARK-MASQ", "KUBE-POSTROUTING"  # one sets the mark that the other reads


class SavedTable(NamedTuple):
    """One table of iptables."""

    name: str
    chains: tuple[str, ...]
    builtin: frozenset[str]
    rules: tuple[str, ...]  # "-A CHAIN .."


class Removal(NamedTuple):
    """What takes kube-proxy's part out of one table, in one transaction."""

    table: str
    chains: tuple[str, ...]  # that go
    jumps: int  # rules of built-in chains that go
    kept: tuple[str, ...]  # kube-proxy's chains that rules of others lead to
    text: str  # for `iptables-restore --noflush`


def parse_save(text: str) -> tuple[SavedTable, ...]:
    """The tables of `iptables-save`'s output; lines that it never writes are passed over."""
    tables: list[SavedTable] = []
    name, chains, builtin, rules = "", list[str](), set[str](), list[str]()
    for line in text.splitlines():
        if line.startswith("*"):
            name, chains, builtin, rules = line[1:].strip(), [], set(), []
        elif line.startswith(":"):
            chain, _, policy = line[1:].partition(" ")
            chains.append(chain)
            if not policy.startswith("-"):
                builtin.add(chain)
        elif line.startswith("-A "):
            rules.append(line)
        elif line.strip() == "COMMIT":
            tables.append(SavedTable(name, tuple(chains), frozenset(builtin), tuple(rules)))
    return tuple(tables)


def plan_removal(table: SavedTable) -> Removal | None:
    """What to remove from the table; None if kube-proxy has nothing in it, or nothing that may go."""
    ours = {chain for chain in table.chains if chain not in table.builtin and _OURS.fullmatch(chain)}
    edges = [(_chain(rule), _target(rule)) for rule in table.rules]
    kept = _reached_by_others(ours, table.builtin, edges)
    gone = tuple(chain for chain in table.chains if chain in ours - kept)
    jumps = [rule for rule, (chain, target) in zip(table.rules, edges, strict=True) if _is_jump(chain, target, gone)]
    if not gone:
        return None
    lines = [
        f"*{table.name}",
        *(f":{chain} - [0:0]" for chain in gone),  # under --noflush: exists, and is empty
        *(f"-D{rule[2:]}" for rule in jumps),
        *(f"-X {chain}" for chain in gone),
        "COMMIT",
    ]
    return Removal(table.name, gone, len(jumps), tuple(sorted(kept)), "".join(f"{line}\n" for line in lines))


def _reached_by_others(ours: set[str], builtin: frozenset[str], edges: Iterable[tuple[str, str]]) -> set[str]:
    """Those of our chains that chains of other programs lead to, with all that they lead to themselves."""
    inner = list(edges)
    kept = {target for chain, target in inner if target in ours and chain not in ours and chain not in builtin}
    size = -1
    while size != len(kept):
        size = len(kept)
        if _MARK in kept and _MASQUERADE in ours:
            kept.add(_MASQUERADE)
        kept |= {target for chain, target in inner if chain in kept and target in ours}
    return kept


def _is_jump(chain: str, target: str, gone: tuple[str, ...]) -> bool:
    """Whether the rule of another chain leads to one that goes."""
    return chain not in gone and target in gone


def _chain(rule: str) -> str:
    return rule.split(" ", 2)[1]


def _target(rule: str) -> str:
    """Where a rule leads; "" for one without -j or -g. The last one counts: a comment may be a word like -j."""
    try:
        words = shlex.split(rule)
    except ValueError:
        return ""
    leads = [words[at + 1] for at, word in enumerate(words[:-1]) if word in {"-j", "-g"}]
    return leads[-1] if leads else ""
