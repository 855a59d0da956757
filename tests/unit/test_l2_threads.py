"""The page of L2 threads: 42 of them, each with a test that exists."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "l2-threads.md").read_text()
THREADS = 42


def rows() -> list[list[str]]:
    lines = [line for line in PAGE.splitlines() if line.startswith("|") and not line.startswith("|---")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[1:]]


def test_every_thread_has_a_test() -> None:
    found = rows()

    assert len(found) == len({row[0] for row in found}) == THREADS
    assert all(len(row) == 3 and re.search(r"`test_\w+`", row[2]) for row in found)


def test_every_test_that_the_page_of_threads_names_exists() -> None:
    files = [path for folder in ("tests", "e2e") for path in (ROOT / folder).rglob("test_*.py")]
    known = {name for path in files for name in re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE)}

    assert set(re.findall(r"`(test_\w+)`", PAGE)) - known == set()
