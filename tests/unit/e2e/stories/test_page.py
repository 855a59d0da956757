from datetime import date

import pytest

from e2e.stories.page import mark, put_figures, render_rows, render_run

BEGIN, END = mark("update")


def test_figures_stand_between_the_marks_and_nothing_else_changes() -> None:
    page = f"# Stories\n{BEGIN}\nold\n{END}\nWhat it means.\n"

    assert put_figures(page, "update", "new\n") == f"# Stories\n{BEGIN}\n\nnew\n\n{END}\nWhat it means.\n"


def test_writing_twice_is_writing_once() -> None:
    once = put_figures(f"{BEGIN}\n{END}", "update", "new")

    assert put_figures(once, "update", "new") == once


@pytest.mark.parametrize("page", ["", BEGIN, END, f"{mark('lost')[0]}\n{mark('lost')[1]}"])
def test_a_page_without_place_for_the_story_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match="no place for the story update"):
        put_figures(page, "update", "new")


def test_figures_are_set_right_and_thousands_have_commas() -> None:
    assert render_rows(("proxy", "asked", "longest, s"), [("a|b", 12345, 1.26)]) == (
        "| proxy | asked | longest, s |\n|---|---:|---:|\n| a\\|b | 12,345 | 1.3 |"
    )


def test_a_run_says_when_and_on_what() -> None:
    assert render_run(date(2026, 11, 30), "v1.36.3", 2) == "2026-11-30; Kubernetes v1.36.3, 2 shared cores."
