"""The page of known differences: every public report has an answer, and each test that it names exists."""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "known-differences.md").read_text()
# Public reports of kubernetes/kubernetes that concern a service proxy, as they were gathered in September 2026.
REPORTS = [
    *(131765, 122614, 109826, 122296, 134024, 136786, 140898, 140951, 135639, 139513, 139328, 128829, 122604, 123162),
    *(142183, 132955, 111863, 133694, 131265, 139628, 141371, 125467, 126130, 122740, 126934, 135323, 135266, 121371),
    *(105470, 85643, 106507, 101525, 123401, 113731, 114702, 115825, 134648, 138183, 129128, 133767, 117924, 94861),
    *(122663, 92035, 130776),
]
ELSEWHERE = ["kops#17915", "enhancements#3015", "cilium#44060", "amazon-vpc-cni-k8s#3563", "k0s#5760"]


@cache
def known_tests() -> frozenset[str]:
    """Every test of the tree."""
    files = [path for folder in ("tests", "e2e") for path in (ROOT / folder).rglob("test_*.py")]
    return frozenset(name for path in files for name in re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE))


def rows() -> list[list[str]]:
    """The cells of each row of the page's tables, heads aside."""
    lines = [line for line in PAGE.splitlines() if line.startswith("|") and not line.startswith("|---")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_every_test_that_the_page_names_exists() -> None:
    named = set(re.findall(r"`(test_\w+)`", PAGE))

    assert len(named) > 40
    assert named - known_tests() == set()


@pytest.mark.parametrize("report", [*map(str, REPORTS), *ELSEWHERE])
def test_every_report_has_a_row_with_a_test_or_a_reason(report: str) -> None:
    answers = [row[-1] for row in rows() if re.search(rf"(?<!\d){re.escape(report)}(?!\d)", row[0])]

    assert len(answers) == 1
    assert re.search(r"`test_\w+`|^No test: \w+", answers[0])


def test_no_row_is_short_of_a_cell() -> None:
    assert {len(row) for row in rows()} <= {3}
    assert all(all(row) for row in rows())
