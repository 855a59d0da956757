from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from e2e.stories.__main__ import STORIES, Stories, main

FOLDER = Path(__file__).parents[4] / "e2e" / "stories"
THERE = [name for name in STORIES if (FOLDER / f"{name}.py").exists()]


def test_every_story_that_is_there_is_listed_without_loading_one() -> None:
    shown = CliRunner().invoke(main, ["--help"]).output

    assert all(f"\n  {name} " in shown for name in [*THERE, "all"])


@pytest.mark.parametrize("name", [*THERE, "all"])
def test_a_story_explains_itself(name: str) -> None:
    command = Stories().get_command(click.Context(main), name)

    assert command
    assert command.help


def test_no_other_word_is_a_story() -> None:
    ended = CliRunner().invoke(main, ["romance"])

    assert ended.exit_code == 2
    assert "romance" in ended.output
