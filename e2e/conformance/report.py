"""What ginkgo reported of runs, and docs/conformance.md made of it. No I/O."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

import msgspec

from e2e.conformance.chosen import find_reason

BEGIN = "<!-- results: written by `python -m e2e.conformance table`, don't edit -->"
END = "<!-- end of results -->"
_PREFIX = "[sig-network] "


class State(StrEnum):
    """How a spec ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"  # by itself: the cluster has not what it needs


class Outcome(NamedTuple):
    """Of one spec, in one run or in several."""

    state: State
    took_s: float  # of several runs, the mean
    message: str  # the first line of why it failed or skipped itself
    runs: int = 1
    failed: int = 0  # of these


class _Failure(msgspec.Struct, frozen=True, rename="pascal"):
    message: str = ""


class _Spec(msgspec.Struct, frozen=True, rename="pascal"):
    leaf_node_type: str
    leaf_node_text: str
    state: str
    container_hierarchy_texts: list[str] | None = None
    run_time: int = 0  # ns
    failure: _Failure = _Failure()


class _Suite(msgspec.Struct, frozen=True, rename="pascal"):
    spec_reports: list[_Spec] | None = None


def decode_report(report: bytes) -> dict[str, Outcome]:
    """Spec -> outcome of a `ginkgo run --json-report` file, without those that were not chosen. msgspec.DecodeError."""
    outcomes = {}
    for suite in msgspec.json.decode(report, type=list[_Suite]):
        for spec in suite.spec_reports or ():
            message = spec.failure.message.strip().partition("\n")[0]
            if spec.leaf_node_type != "It" or (spec.state in {"skipped", "pending"} and not message):
                continue
            state = State(spec.state) if spec.state in {"passed", "skipped"} else State.FAILED
            outcomes[_name(spec)] = Outcome(state, spec.run_time / 1e9, message, 1, int(state is State.FAILED))
    return outcomes


def decode_names(report: bytes) -> list[str]:
    """Every spec's whole name, run or not. msgspec.DecodeError."""
    suites = msgspec.json.decode(report, type=list[_Suite])
    return [_name(spec) for suite in suites for spec in suite.spec_reports or () if spec.leaf_node_type == "It"]


def _name(spec: _Spec) -> str:
    return " ".join([*(spec.container_hierarchy_texts or ()), spec.leaf_node_text])


def merge(reports: Iterable[Mapping[str, Outcome]]) -> dict[str, Outcome]:
    """One proxy's runs in one. A spec that was skipped in one and ran in another counts as it ran.

    One that ran more than once has passed if it always did.
    """
    merged: dict[str, Outcome] = {}
    for report in reports:
        for name, outcome in report.items():
            seen = merged.get(name)
            if seen is None or seen.state is State.SKIPPED:
                merged[name] = outcome
            elif outcome.state is not State.SKIPPED:
                merged[name] = _both(seen, outcome)
    return merged


def _both(seen: Outcome, more: Outcome) -> Outcome:
    runs = seen.runs + more.runs
    return Outcome(
        State.FAILED if State.FAILED in {seen.state, more.state} else State.PASSED,
        (seen.took_s * seen.runs + more.took_s * more.runs) / runs,
        seen.message or more.message,
        runs,
        seen.failed + more.failed,
    )


def render_table(runs: Mapping[str, Mapping[str, Outcome]], machine: str) -> str:
    """Markdown: a summary, then a row a spec with each proxy's outcome, and a remark where one did not pass."""
    proxies = list(runs)
    names = sorted({name for run in runs.values() for name in run})
    lines = [machine, "", *_summary(runs), ""]
    lines += [f"| spec | {' | '.join(proxies)} | remark |", f"|---|{'---:|' * len(proxies)}---|"]
    for name in names:
        cells = [_cell(runs[proxy].get(name)) for proxy in proxies]
        lines.append(f"| {_escape(name.removeprefix(_PREFIX))} | {' | '.join(cells)} | {_remark(name, runs)} |")
    return "\n".join(lines) + "\n"


def render_left_out(left_out: Mapping[str, str]) -> str:
    """Markdown: how many specs are not run, for each reason."""
    counts = Counter(reason or "not looked at yet" for reason in left_out.values())
    lines = ["| specs of the suite that are not run | why |", "|---:|---|"]
    lines += [f"| {count} | {reason} |" for reason, count in sorted(counts.items(), key=lambda each: -each[1])]
    return "\n".join(lines) + "\n"


def put_table(page: str, table: str) -> str:
    """The page with the table between its two marks; the text around them is people's."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table}{END}{after}"


def _summary(runs: Mapping[str, Mapping[str, Outcome]]) -> list[str]:
    lines = ["| proxy | passed | failed | skipped themselves | seconds in specs, a run |", "|---|---:|---:|---:|---:|"]
    for proxy, run in runs.items():
        counts = [sum(outcome.state is state for outcome in run.values()) for state in State]
        took_s = sum(outcome.took_s for outcome in run.values())
        lines.append(f"| {proxy} | {' | '.join(str(count) for count in counts)} | {took_s:.0f} |")
    return lines


def _cell(outcome: Outcome | None) -> str:
    if outcome is None:
        return "-"
    times = f" x{outcome.runs}" if outcome.runs > 1 else ""
    failed = f"**failed**{f' {outcome.failed} of {outcome.runs}' if outcome.runs > 1 else ''}"
    shown = {State.PASSED: f"{outcome.took_s:.0f} s{times}", State.FAILED: failed, State.SKIPPED: "skipped"}
    return shown[outcome.state]


def _remark(name: str, runs: Mapping[str, Mapping[str, Outcome]]) -> str:
    outcomes: Sequence[Outcome] = [run[name] for run in runs.values() if name in run]
    missed = [outcome for outcome in outcomes if outcome.state is not State.PASSED]
    if not missed:
        return ""
    return _escape(find_reason(name) or missed[-1].message)


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
