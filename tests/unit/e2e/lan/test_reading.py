"""`python -m e2e.lan --read`: what ran apart becomes one table."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from e2e.lan.__main__ import MARKS, bench
from e2e.lan.measure import Figure
from e2e.lan.rows import Result, render_json

RUN = dict.fromkeys(Figure, 0.0)


def write(path: Path, speaker: str, *dark: float, nodes: int = 3) -> str:
    runs = tuple(RUN | {Figure.DARK: seconds} for seconds in dark)
    path.write_text(render_json(Result("node lost", speaker, "ipv4", nodes, runs)) + "\n")
    return f"--read={path}"


def test_files_of_several_runs_become_one_table_between_the_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Before.\n")
    read = [
        write(tmp_path / "a.json", "closeby", 0.9),
        write(tmp_path / "b.json", "closeby", 1.1),
        write(tmp_path / "c.json", "keepalived 1 s", 3.5),
    ]

    done = CliRunner().invoke(bench, [*read, f"--markdown={page}"])

    assert done.exit_code == 0, done.output
    text = page.read_text()
    assert text.startswith("Before.\n")
    assert MARKS[0] in text
    assert MARKS[1] in text
    assert "| 0.90 / 1.10 / 1.10 | 3.50 / 3.50 / 3.50 |" in text


@pytest.mark.parametrize(("content", "says"), [("tea\n", "line 1"), ("", "one result at least")])
def test_a_file_that_has_no_results_ends_it_with_its_flag(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)

    done = CliRunner().invoke(bench, [f"--read={path}"])

    assert done.exit_code == 2
    assert "--read" in done.output
    assert says in done.output


def test_results_of_two_sizes_of_lan_are_not_mixed(tmp_path: Path) -> None:
    three = write(tmp_path / "a.json", "closeby", 0.9)
    five = write(tmp_path / "b.json", "closeby", 0.9, nodes=5)

    done = CliRunner().invoke(bench, [three, five])

    assert done.exit_code == 2
    assert "LANs of one size" in done.output
