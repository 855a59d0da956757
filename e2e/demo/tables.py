"""How the demo looks: every table and text that it prints. Pure but for printing nothing itself."""

from collections.abc import Iterable, Mapping, Sequence

from rich import box
from rich.console import Group
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table

from e2e.demo.cast import Offer
from e2e.demo.judge import Addresses, Change
from e2e.demo.promises import Promise
from e2e.demo.visits import Visit
from e2e.world.clients import Outcome, Tally
from e2e.world.hosts import Node, Pod
from proxy.cli.show import TIER_STYLES

Moved = tuple[Visit, tuple[Promise, Promise], Change]  # a stream, the plans before and after, and how it went over

_SHOWN_COMPLAINTS = 5
_ENDS = {"refused": "refused", "timed-out": "no answer", "unreachable": "unreachable", "broken": "broken off"}


def show_world(nodes: Iterable[Node], pods: Iterable[Pod]) -> Table:
    """The nodes and what runs on them."""
    table = Table("zone", "node", "address", "pods", box=box.SIMPLE_HEAD, title="The cluster", title_justify="left")
    listed = list(pods)
    for node in nodes:
        names = sorted(pod.host.name for pod in listed if pod.node == node.host.name and pod.ports)
        table.add_row(node.zone, node.host.name, node.host.ipv4, " ".join(names))
    return table


class Asked:
    """What one person's visits to a Service were promised and got, put together for a row."""

    def __init__(self, visit: Visit, promise: Promise, addresses: Addresses) -> None:
        self.visit, self.promise, self.addresses = visit, promise, addresses
        self.tallies: list[Tally] = []
        self.complaints: list[str] = []


def show_service(offer: Offer, rows: Iterable[Asked], *, headed: bool) -> Group:
    """Who asked, what was promised, who answered, and whom the servers saw; `headed`: with the columns' names."""
    ports = ", ".join(f"{port.protocol} {port.node_port or port.port}" for port in offer.ports)
    families = "IPv4 and IPv6" if len(offer.cluster_ips) > 1 else "IPv4"
    title = f"[bold]{offer.name}[/]  {escape(offer.shows)}  [dim]({ports}, {families})[/]"
    table = open_table(headed=headed)
    table.add_column("who asks", width=23)
    table.add_column("promised: tier and rule", ratio=5)
    table.add_column("answers, by pod", ratio=6)
    table.add_column("the server saw", width=28)
    table.add_column("kept", width=4)
    complaints = []
    for row in rows:
        table.add_row(
            row.visit.who,
            _show_promise(row.promise, with_reason=True),
            _show_answers(row.tallies),
            _show_sources(row),
            show_kept(row.complaints),
        )
        complaints += show_complaints(row.visit.who, row.complaints)
    return Group(title, table, *complaints, "")


def show_change(rows: Sequence[Moved], title: str, *, headed: bool) -> Group:
    """Where traffic went before and after, and how long the change took; `headed`: with the columns' names."""
    table = open_table(headed=headed)
    table.add_column("traffic", width=28)
    table.add_column("before", ratio=1)
    table.add_column("after", ratio=1)
    for heading in ("first new", "last old", "failed"):
        table.add_column(heading, justify="right", width=len(heading))
    table.add_column("kept", width=4)
    complaints = []
    for visit, (old, new), change in rows:
        traffic = f"{visit.service.partition('/')[2]} from {visit.who}"
        table.add_row(
            traffic,
            f"{_show_promise(old)} {_show_counts(change.before)}",
            f"{_show_promise(new)} {_show_counts(change.after)}",
            _show_ms(change.first_new_s),
            _show_ms(change.last_old_s),
            str(change.failed),
            show_kept(change.complaints),
        )
        complaints += show_complaints(traffic, change.complaints)
    return Group(f"[bold]{escape(title)}[/]", table, *complaints, "")


def open_table(*, headed: bool) -> Table:
    """A table whose columns stand below those of the tables before it."""
    return Table(box=None, expand=True, show_header=headed, header_style="dim", padding=(0, 2, 0, 0), pad_edge=False)


def show_result(promises: int, broken: int, connections: int, took_s: float, changes_s: Sequence[float]) -> Panel:
    """The last word."""
    lines = [
        f"{connections} connections and exchanges, {promises} promises, [bold]{broken} broken[/], in {took_s:.0f} s."
    ]
    if changes_s:
        ordered = sorted(changes_s)
        lines.append(
            f"From the file's write until traffic followed: {ordered[0] * 1000:.0f} to {ordered[-1] * 1000:.0f} ms, "
            f"median {ordered[len(ordered) // 2] * 1000:.0f} ms."
        )
    return Panel(
        "\n".join(lines),
        title="Every promise was kept" if not broken else "Promises were broken",
        style="red" if broken else "green",
    )


def _show_promise(promise: Promise, *, with_reason: bool = False) -> str:
    word = {"reject": "refused", "drop": "dropped"}.get(promise.verdict, promise.tier)
    reason = f" [dim]{promise.reason}[/]" if with_reason else ""
    return f"[{TIER_STYLES.get(promise.tier, 'white')}]{word}[/]{reason}"


def _show_answers(tallies: Iterable[Tally]) -> str:
    counts: dict[str, int] = {}
    for tally in tallies:
        ends = {outcome.value: n for outcome, n in tally.outcomes.items() if outcome is not Outcome.ANSWERED}
        for name, n in {**tally.answers, **ends}.items():
            counts[name] = counts.get(name, 0) + n
    return _show_counts(counts)


def _show_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{_ENDS.get(name, name)} [dim]x[/]{n}" for name, n in sorted(counts.items()))


def _show_sources(row: Asked) -> str:
    seen = {source for tally in row.tallies for source in tally.sources}
    own, of_node = seen & row.addresses.own, seen & row.addresses.of_node - row.addresses.own
    owners = (("its own", own), ("the node's", of_node), ("[red]unknown[/]", seen - own - of_node))
    return "\n".join(f"{whose} {_show_ips(ips)}" for whose, ips in owners if ips) or "-"


def _show_ips(ips: Iterable[str]) -> str:
    """Addresses of one owner: the IPv4 ones, the node's LAN address first, and whether there are others."""
    ordered = sorted(ips, key=lambda ip: (":" in ip, not ip.startswith("172."), ip))
    ipv4 = [ip for ip in ordered if ":" not in ip]
    return ", ".join(ipv4 or ordered) + (" + IPv6" if ipv4 and len(ipv4) < len(ordered) else "")


def show_kept(complaints: Sequence[str]) -> str:
    return "[bold red]NO[/]" if complaints else "[green]yes[/]"


def show_complaints(who: str, complaints: Sequence[str]) -> list[str]:
    distinct = list(dict.fromkeys(complaints))
    more = f" (+{len(distinct) - _SHOWN_COMPLAINTS})" if len(distinct) > _SHOWN_COMPLAINTS else ""
    shown = "; ".join(distinct[:_SHOWN_COMPLAINTS])
    return [f"  [red]{escape(f'{who}: {shown}{more}')}[/]"] if distinct else []


def _show_ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1000:.0f} ms"
