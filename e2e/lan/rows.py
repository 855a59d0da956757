"""What was measured, as JSON lines and as a table. No I/O."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec

from e2e.lan.baseline import GIVEN, NODES, SPEAKER
from e2e.lan.measure import Figure, Spread, spread
from e2e.lan.scenarios import BY_NAME, Scenario


class Result(msgspec.Struct, frozen=True):
    """Every run of one scenario with one speaker; figures are in the order of the runs."""

    scenario: str
    speaker: str
    family: str
    nodes: int
    runs: tuple[Mapping[Figure, float], ...]


Table = tuple[tuple[str, ...], ...]


class RowsError(Exception):
    """Lines that are no results of this rig."""


def render_json(result: Result) -> str:
    """One line: the spread of each figure, and all that it was made of."""
    line: dict[str, Any] = {
        "scenario": result.scenario,
        "speaker": result.speaker,
        "family": result.family,
        "nodes": result.nodes,
        "figures": {figure: dict(zip(_SPREAD, spread_of(result, figure), strict=True)) for figure in Figure},
        "runs": result.runs,
    }
    return msgspec.json.encode(line).decode()


def parse_results(lines: str) -> tuple[Result, ...]:
    """What `render_json` wrote, a result a line. RowsError names the line that is something else."""
    results = []
    for number, line in enumerate(lines.splitlines(), start=1):
        try:
            result = msgspec.json.decode(line, type=Result)
        except msgspec.DecodeError as error:
            raise RowsError(f"line {number}: {error}") from error
        if result.scenario not in BY_NAME or not result.runs or any(set(run) != set(Figure) for run in result.runs):
            raise RowsError(f"line {number}: no result of this version's scenarios and figures")
        results.append(result)
    return tuple(results)


def join_results(results: Iterable[Result]) -> tuple[Result, ...]:
    """One result for each scenario, family, LAN and speaker, with the runs of all, in the scenarios' order."""
    runs: dict[tuple[str, str, int, str], tuple[Mapping[Figure, float], ...]] = {}
    for result in results:
        key = (result.scenario, result.family, result.nodes, result.speaker)
        runs[key] = (*runs.get(key, ()), *result.runs)
    order = list(BY_NAME)
    keys = sorted(runs, key=lambda key: (order.index(key[0]), key[1:]))
    return tuple(
        Result(name, speaker, family, nodes, runs[name, family, nodes, speaker])
        for name, family, nodes, speaker in keys
    )


def render_table(results: Sequence[Result]) -> Table:
    """A row for each figure that a scenario is about, a column for each speaker, the head first.

    Cells are median / p95 / longest; "-" where nothing was measured.
    """
    speakers = tuple(dict.fromkeys(result.speaker for result in results))
    head = ("what happens", "figure", "family", *speakers, SPEAKER, "target of closeby", "runs")
    groups: dict[tuple[str, str], dict[str, Result]] = {}
    for result in results:
        groups.setdefault((result.scenario, result.family), {})[result.speaker] = result
    rows = (_rows(BY_NAME[name], family, by_speaker, speakers) for (name, family), by_speaker in groups.items())
    return head, *chain.from_iterable(rows)


def render_markdown(table: Table) -> str:
    """The table, its figures to the right."""
    head, *rows = table
    line = tuple("---" if number < 3 else "---:" for number in range(len(head)))
    return "".join(f"| {' | '.join(cells)} |\n" for cells in [head, line, *rows])


def spread_of(result: Result, figure: Figure) -> Spread:
    """The figure's spread over the runs."""
    return spread([run[figure] for run in result.runs])


def _rows(scenario: Scenario, family: str, by_speaker: Mapping[str, Result], speakers: Sequence[str]) -> Table:
    given = family == "ipv4" and all(result.nodes == NODES for result in by_speaker.values())
    runs = " / ".join(str(len(by_speaker[name].runs)) if name in by_speaker else "-" for name in speakers)
    return tuple(
        (
            scenario.name,
            figure.value,
            family,
            *(_cell(by_speaker.get(name), figure) for name in speakers),
            GIVEN.get((scenario.name, figure), "-") if given else "-",
            target or "-",
            runs,
        )
        for figure, target in scenario.wanted
    )


def _cell(result: Result | None, figure: Figure) -> str:
    if result is None:
        return "-"
    shown = (f"{value:.2f}" if figure.endswith(", s") else f"{value:.0f}" for value in spread_of(result, figure)[:3])
    return " / ".join(shown)


_SPREAD = ("p50", "p95", "max", "runs")
