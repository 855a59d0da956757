from collections.abc import Sequence

import pytest

from e2e.stories.dns.queries import LookUp
from e2e.stories.dns.rows import Row, Run, count, longest_gap_s, render_rows

NODE_OF = {"client-a": "a", "client-b": "b"}


def look_up(began: float = 0.0, server: str = "a", **fields: object) -> LookUp:
    """An answered one of a millisecond."""
    told = {"way": 0, "began": began, "took_s": 0.001, "tries": 1, "server": server, "fault": "", **fields}
    return LookUp(**told)  # type: ignore[arg-type]  # fields of each test's own


def failed(began: float = 0.0, fault: str = "timed-out") -> LookUp:
    return look_up(began, server="", took_s=10.0, tries=2, fault=fault)


def test_a_look_up_counts_as_the_own_nodes_only_if_that_answered() -> None:
    row = count("steady", {"client-a": [look_up(), look_up(server="b"), failed()], "client-b": []}, NODE_OF, [])

    assert (row.lookups, row.own, row.failed, row.retried) == (3, 1, 1, 0)


def test_clients_of_nodes_that_nothing_happened_to_are_counted_apart() -> None:
    lookups = {"client-a": [look_up(server="b")] * 5, "client-b": [look_up(server="b")] * 3 + [look_up(server="a")]}
    row = count("deleted", lookups, NODE_OF, ["a"])

    assert (row.lookups, row.own) == (9, 3)
    assert (row.untouched, row.untouched_own) == (4, 3)


def test_an_answer_to_a_second_try_is_no_failure() -> None:
    row = count("hung", {"client-a": [look_up(tries=2, took_s=5.0), look_up()]}, NODE_OF, [])

    assert (row.retried, row.failed, row.longest_wait_s) == (1, 0, 5.0)


def test_failures_are_told_by_their_reason() -> None:
    row = count("killed", {"client-a": [failed(), failed(fault="refused"), failed()]}, NODE_OF, ["a"])

    assert row.faults == {"timed-out": 2, "refused": 1}


@pytest.mark.parametrize(
    ("lookups", "gap_s"),
    [
        pytest.param([], 0.0, id="nothing asked"),
        pytest.param([look_up(0.0), look_up(1.0), look_up(4.0)], 3.0, id="between two answers"),
        pytest.param([failed(0.0), look_up(2.0)], 2.001, id="until the first answer"),
        pytest.param([look_up(0.0), failed(1.0), look_up(6.0)], 6.0, id="a failure is no answer"),
        pytest.param([look_up(0.0), look_up(0.5, way=1), look_up(1.0)], 1.0, id="each way by itself"),
        pytest.param([look_up(0.0, took_s=5.0), look_up(1.0)], 3.999, id="answers count when they come"),
    ],
)
def test_the_longest_gap(lookups: Sequence[LookUp], gap_s: float) -> None:
    assert longest_gap_s(lookups) == pytest.approx(gap_s)


def row(stage: str, **fields: object) -> Row:
    told = {"lookups": 1000, "own": 1000, "untouched": 500, "untouched_own": 500, "retried": 0, "failed": 0}
    rest = {"faults": {}, "longest_gap_s": 0.05, "longest_wait_s": 0.01}
    return Row(stage=stage, **{**told, **rest, **fields})  # type: ignore[arg-type]  # fields of each test's own


def test_runs_of_one_stage_stand_together() -> None:
    runs = [Run(proxy, "PreferClose", "", [row("first"), row("second")]) for proxy in ("kube-proxy", "closeby")]
    told = [line.split(" | ")[:2] for line in render_rows(runs).splitlines()[2:]]

    assert told == [
        ["| first", "closeby"],
        ["| first", "kube-proxy"],
        ["| second", "closeby"],
        ["| second", "kube-proxy"],
    ]


@pytest.mark.parametrize(
    ("fields", "cells"),
    [
        pytest.param({}, "1,000 | 100 % | 100 % | 0 | 0 | 0.05 s", id="all well"),
        pytest.param({"own": 999, "lookups": 100_000}, "100,000 | 1.0 % | 100 % | 0 | 0 | 0.05 s", id="rounded"),
        pytest.param(
            {"own": 99_999, "lookups": 100_000}, "100,000 | 99.9 % | 100 % | 0 | 0 | 0.05 s", id="not quite all"
        ),
        pytest.param({"own": 1, "lookups": 100_000}, "100,000 | 0.1 % | 100 % | 0 | 0 | 0.05 s", id="not quite none"),
        pytest.param({"own": 0}, "1,000 | 0 % | 100 % | 0 | 0 | 0.05 s", id="none"),
        pytest.param({"untouched": 0, "untouched_own": 0}, "1,000 | 100 % | - | 0 | 0 | 0.05 s", id="all are touched"),
        pytest.param(
            {"failed": 3, "faults": {"timed-out": 1, "refused": 2}},
            "1,000 | 100 % | 100 % | 0 | 3 (2 refused, 1 timed-out) | 0.05 s",
            id="with reasons",
        ),
    ],
)
def test_what_a_row_shows(fields: dict[str, object], cells: str) -> None:
    shown = render_rows([Run("closeby", "PreferClose", "", [row("it", **fields)])])

    assert shown.splitlines()[2] == f"| it | closeby | PreferClose | {cells} |"
