"""The out-of-memory adjustment."""

from pathlib import Path

import pytest

from proxy.oom import set_oom_score


@pytest.mark.parametrize("before", ["0\n", "-999\n"])
def test_it_is_written(tmp_path: Path, before: str) -> None:
    file = tmp_path / "oom_score_adj"
    file.write_text(before)

    set_oom_score(-999, file)

    assert int(file.read_text()) == -999


def test_where_it_may_not_be_written_it_stays(tmp_path: Path) -> None:
    set_oom_score(-999, tmp_path / "none" / "oom_score_adj")

    assert not (tmp_path / "none").exists()
