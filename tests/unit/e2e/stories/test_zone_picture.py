from pathlib import Path

from e2e.stories.zone_picture import draw_shares
from e2e.stories.zone_shares import Place, Second, Stage, Told

SECONDS = [Second({Place.NODE: 3, Place.ZONE: 1}, 4), Second({}, 0), Second({Place.ELSEWHERE: 1, Place.FAILED: 1}, 0)]
TOLD = Told("closeby", "", [Stage("scaled to 2", 0.0, 1.0, 3.0)], {"web": SECONDS}, {}, [], [])


def test_the_same_figures_are_the_same_picture_with_all_that_is_said_in_it(tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg"):
        draw_shares(tmp_path / name, {"web": "A Service"}, [TOLD])
    drawn = (tmp_path / "one.svg").read_text()

    assert drawn == (tmp_path / "two.svg").read_text()
    assert all(words in drawn for words in ("A Service: closeby", "scaled", "to 2", *Place))
