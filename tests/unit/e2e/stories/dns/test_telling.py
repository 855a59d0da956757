import pytest

from e2e.stories.dns.rows import Row
from e2e.stories.dns.stages import STAGES
from e2e.stories.dns.telling import find_broken

TITLES = {stage.name: stage.title for stage in STAGES}


def row(stage: str, failed: int) -> Row:
    return Row(TITLES[stage], 100, 100, 100, 100, 0, failed, {}, 0.0, 0.0)


@pytest.mark.parametrize(
    ("rows", "broken"),
    [
        pytest.param([row("steady", 0), row("deleted", 0)], [], id="nothing failed"),
        pytest.param([row("steady", 0), row("killed", 80)], [], id="a crash tells nobody in time"),
        pytest.param([row("deleted", 1), row("killed", 80)], [TITLES["deleted"]], id="a deletion is told"),
    ],
)
def test_a_proxy_answers_for_what_it_was_told(rows: list[Row], broken: list[str]) -> None:
    assert find_broken(STAGES, rows) == broken


def test_every_stage_has_a_name_and_a_title_of_its_own() -> None:
    assert len(TITLES) == len(STAGES) == len(set(TITLES.values()))
