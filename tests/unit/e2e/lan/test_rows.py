"""The table of the LAN's benchmark."""

import json
from typing import Any

import msgspec
import pytest

from e2e.lan.measure import Figure
from e2e.lan.rows import (
    Result,
    RowsError,
    join_results,
    parse_results,
    render_json,
    render_markdown,
    render_table,
)

RUN = dict.fromkeys(Figure, 0.0)


def result(speaker: str, *dark: float, scenario: str = "node lost") -> Result:
    runs = tuple(RUN | {Figure.DARK: seconds, Figure.LOST: round(seconds * 100)} for seconds in dark)
    return Result(scenario, speaker, "ipv4", 3, runs)


def test_speakers_stand_side_by_side_with_what_is_given_of_metallb_and_the_target() -> None:
    head, dark, *_ = render_table([result("closeby", 0.9, 1.0, 0.8), result("keepalived 0.1 s", 0.3)])

    assert head[3:5] == ("closeby", "keepalived 0.1 s")
    assert dark[:3] == ("node lost", "client dark, s", "ipv4")
    assert dark[3:6] == ("0.90 / 1.00 / 1.00", "0.30 / 0.30 / 0.30", "5.70 / 6.87 / 7.95")
    assert dark[6].startswith("p50 < 1.0")
    assert dark[7] == "3 / 1"


def test_counts_are_whole_numbers() -> None:
    rows = render_table([result("closeby", 0.9)])

    assert next(row for row in rows if row[1] == Figure.LOST)[3] == "90 / 90 / 90"


def test_a_speaker_that_did_not_play_a_scenario_has_a_dash() -> None:
    rows = render_table([result("closeby", 0.9), result("keepalived 1 s", 0.0, scenario="planned drain")])

    assert {row[4] for row in rows[1:] if row[0] == "node lost"} == {"-"}
    assert {row[7] for row in rows[1:] if row[0] == "planned drain"} == {"- / 1"}


@pytest.mark.parametrize("other", [{"family": "ipv6"}, {"nodes": 5}])
def test_what_is_given_of_metallb_is_of_ipv4_on_three_nodes(other: dict[str, Any]) -> None:
    rows = render_table([msgspec.structs.replace(result("closeby", 0.9), **other)])

    assert {row[4] for row in rows[1:]} == {"-"}


def test_every_row_of_the_markdown_has_as_many_cells_as_its_head() -> None:
    lines = render_markdown(render_table([result("closeby", 0.9)])).splitlines()

    assert len({line.count("|") for line in lines}) == 1
    assert lines[1].startswith("| --- | --- | --- | ---: |")


def test_a_line_of_json_has_every_figure_and_every_run() -> None:
    line = json.loads(render_json(result("closeby", 0.9, 1.0)))

    assert line["figures"]["client dark, s"] == {"p50": 0.9, "p95": 1.0, "max": 1.0, "runs": 2}
    assert [run["client dark, s"] for run in line["runs"]] == [0.9, 1.0]
    assert set(line["figures"]) == set(Figure)


def test_results_are_read_back_as_they_were_written() -> None:
    results = (result("closeby", 0.9, 1.0), result("keepalived 1 s", 0.5, scenario="node returns"))

    assert parse_results("".join(render_json(each) + "\n" for each in results)) == results


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "[]",
        render_json(result("closeby", 1.0, scenario="tea")),
        msgspec.json.encode(result("closeby")).decode(),
        msgspec.json.encode(Result("node lost", "closeby", "ipv4", 3, ({Figure.DARK: 1.0},))).decode(),
    ],
)
def test_a_line_that_is_no_result_is_named(line: str) -> None:
    with pytest.raises(RowsError, match="line 2: "):
        parse_results(f"{render_json(result('closeby', 1.0))}\n{line}\n")


def test_runs_of_one_scenario_with_one_speaker_are_joined_in_the_scenarios_order() -> None:
    later, first, second = (
        result("closeby", 0.1, scenario="node returns"),
        result("closeby", 0.9),
        result("closeby", 1.0),
    )

    joined = join_results([later, first, result("keepalived 1 s", 3.0), second])

    assert joined == (result("closeby", 0.9, 1.0), result("keepalived 1 s", 3.0), later)
