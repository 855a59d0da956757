from pathlib import Path

import pytest

from e2e.stories.replace import AWAIT, AWAIT_END, CLEAN, CLEAN_ALL, DELETE, KEEP_OFF, LABEL, OVERLAY, SAVE, UNLABEL

PAGE = Path(__file__).parents[4] / "docs" / "migration.md"
COMMANDS = (KEEP_OFF, LABEL, OVERLAY, AWAIT_END, AWAIT, CLEAN, SAVE, DELETE, UNLABEL, *CLEAN_ALL)


def words(text: str) -> str:
    return " ".join(text.replace("\\\n", "").split())


@pytest.mark.parametrize("command", COMMANDS)
def test_the_story_does_what_the_page_says(command: str) -> None:
    assert words(command) in words(PAGE.read_text())
