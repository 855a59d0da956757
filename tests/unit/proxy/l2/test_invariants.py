"""The page of invariants: all seventeen, and every test that it names exists."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "tests" / "l2" / "README.md").read_text()


def test_every_invariant_is_listed_with_what_checks_it() -> None:
    table = PAGE.partition("## Invariants")[2]
    numbers = [int(number) for number in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)]
    files = list(Path(__file__).parent.glob("test_*.py"))
    known = {path.stem for path in files}
    known |= {name for path in files for name in re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE)}

    assert numbers == list(range(17))
    assert set(re.findall(r"`(test_\w+)`", PAGE)) - known == set()
