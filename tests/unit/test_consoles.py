"""Rich reads ":ab:" in a MAC as an emoji's name, so consoles are opened where that is off, and nowhere else."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
OPENERS = {"proxy/cli/show.py", "e2e/console.py", "e2e/demo/host.py"}


def test_every_console_is_opened_without_emoji() -> None:
    opened = {
        str(path.relative_to(ROOT)): calls
        for folder in ("proxy", "endpointslice", "deploy", "e2e")
        for path in (ROOT / folder).rglob("*.py")
        if (calls := re.findall(r"(?<!\w)Console\(.*", path.read_text()))
    }

    assert set(opened) == OPENERS
    assert all("emoji=False" in call for calls in opened.values() for call in calls)
