"""`python -m e2e.conformance run|table|all`: Kubernetes' own specs, and docs/conformance.md."""

import os
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console

from e2e.binaries.build import build, version_of
from e2e.conformance import report
from e2e.conformance.chosen import PARTS, WHOLE, Part, is_in, list_left_out
from e2e.conformance.prepare import build_binaries, prepare
from e2e.conformance.suite import REPORT, Target, list_specs, run_suite
from e2e.console import open_console
from e2e.kind.config import Proxy
from e2e.kind.errors import plain_errors
from e2e.kind.life import Ask, bring_down, bring_up, find_cluster

_RESULTS = Path(".cache") / "conformance"

_PART = click.option("--part", type=click.Choice(sorted(PARTS)), default="nodes", show_default=True)
_FOCUS = click.option("--focus", help="Regular expression on whole names, in place of the part's.")
_SKIP = click.option("--skip", help="As --focus, of specs to leave out.")
_PROCS = click.option("--procs", default=2 * (os.cpu_count() or 1), show_default=True, help="Specs at a time.")
_PAGE = click.option(
    "--page",
    type=click.Path(path_type=Path, exists=True),
    default=Path(__file__).parents[2] / "docs" / "conformance.md",
    help="With the two marks that the table stands between; docs/conformance.md by default.",
)
_OUTPUT = click.option("--output", type=click.Path(path_type=Path), help="Folder for the reports and the log.")


@click.group()
def main() -> None:
    """Kubernetes' own end-to-end specs of services."""


@main.command()
@click.option("--name", default="kind", show_default=True, help="Of a cluster of `python -m e2e.kind`.")
@click.option("--kubeconfig", type=click.Path(path_type=Path, exists=True), help="Of any other cluster.")
@click.option("--workers", type=int, help="With --kubeconfig: how many nodes take pods.")
@_PART
@_FOCUS
@_SKIP
@_PROCS
@_OUTPUT
def run(name: str, kubeconfig: Path | None, workers: int | None, **flags: object) -> None:
    """Run a part of the suite on a cluster that runs; exit code 1 if a spec fails."""
    console = open_console()
    with plain_errors("conformance", console):
        binaries = build_binaries(console)
        part = _part(str(flags["part"]), flags["focus"], flags["skip"])
        if kubeconfig is not None:
            target = Target(kubeconfig, workers or part.workers)
        else:
            target = prepare(find_cluster(name, console), binaries, console)
        output = flags["output"] or _RESULTS / name / part.name
        assert isinstance(output, Path)
        code = run_suite(binaries, target, part, int(str(flags["procs"])), output.absolute())
    _tell(output / REPORT, console)
    sys.exit(1 if code else 0)


@main.command()
@click.argument("results", nargs=-1, required=True, metavar="PROXY=REPORT..")
@_PAGE
def table(results: tuple[str, ...], page: Path) -> None:
    """Write reports into the page's table. A proxy may be given again: its parts, and its runs, are merged."""
    _write_table(results, page)


def _write_table(results: Iterable[str], page: Path) -> None:
    reports: dict[str, list[dict[str, report.Outcome]]] = {}
    for result in results:
        proxy, _, path = result.partition("=")
        outcomes = report.decode_report(Path(path).read_bytes())
        chosen = {spec: outcome for spec, outcome in outcomes.items() if any(is_in(part, spec) for part in WHOLE)}
        reports.setdefault(proxy, []).append(chosen)
    runs = {proxy: report.merge(of_proxy) for proxy, of_proxy in reports.items()}
    machine = f"{datetime.now(UTC):%Y-%m-%d}; Kubernetes {version_of('k8s.io/kubernetes')}, {os.cpu_count()} cores"
    left_out = list_left_out(list_specs(build("network.test", open_console())))
    tables = f"{report.render_table(runs, machine)}\n{report.render_left_out(left_out)}"
    page.write_text(report.put_table(page.read_text(), tables))


@main.command("all")
@_FOCUS
@_SKIP
@_PROCS
@_PAGE
@click.option("--runs", type=click.IntRange(1), default=1, show_default=True, help="Of closeby, in a row.")
def run_all(page: Path, runs: int, **flags: object) -> None:
    """Both whole parts with kube-proxy, then with closeby, each on a cluster of its own, and the page's table.

    Exit code 1 if closeby fails a spec.
    """
    console = open_console()
    results, failed = [], False
    with plain_errors("conformance", console):
        binaries = build_binaries(console)
        for proxy in (Proxy.KUBE_PROXY, Proxy.CLOSEBY):
            for part in (_part(whole.name, flags["focus"], flags["skip"]) for whole in WHOLE):
                ask = Ask(f"conformance-{part.name}", part.workers, proxy)
                target = prepare(bring_up(ask, console), binaries, console)
                for number in range(1, 1 + (runs if proxy is Proxy.CLOSEBY else 1)):
                    output = (_RESULTS / proxy / f"{part.name}-{number}").absolute()
                    code = run_suite(binaries, target, part, int(str(flags["procs"])), output)
                    failed = failed or (proxy is Proxy.CLOSEBY and code != 0)
                    results.append(f"{proxy}={output / REPORT}")
                bring_down(ask.name, console)
    _write_table(results, page)
    sys.exit(1 if failed else 0)


def _part(name: str, focus: object, skip: object) -> Part:
    part = PARTS[name]
    return part._replace(focus=str(focus or part.focus), skip=str(part.skip if skip is None else skip))


def _tell(path: Path, console: Console) -> None:
    if path.exists():
        outcomes = report.decode_report(path.read_bytes())
        failed = [name for name, outcome in outcomes.items() if outcome.state is report.State.FAILED]
        console.print(f"{len(outcomes)} specs, {len(failed)} failed; {path}", soft_wrap=True, highlight=False)
        for name in failed:
            console.print(f"  {name}", soft_wrap=True, markup=False, highlight=False)


if __name__ == "__main__":
    main()
