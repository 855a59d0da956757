from pathlib import Path

import pytest

from proxy.sources.access import TOKEN_PERIOD_S, TokenFile


def test_a_token_file_is_read_again_after_its_period(tmp_path: Path) -> None:
    now_s = 0.0
    path = tmp_path / "token"
    path.write_text("first\n")
    token = TokenFile(path, lambda: now_s)
    assert token.authorization() == "Bearer first"

    path.write_text("second\n")
    assert token.authorization() == "Bearer first"
    now_s = TOKEN_PERIOD_S
    assert token.authorization() == "Bearer second"


@pytest.mark.parametrize("content", [pytest.param(None, id="gone"), pytest.param(" \n", id="empty")])
def test_an_unreadable_token_file_keeps_the_token(content: str | None, tmp_path: Path) -> None:
    now_s = 0.0
    path = tmp_path / "token"
    path.write_text("first")
    token = TokenFile(path, lambda: now_s)
    assert token.authorization() == "Bearer first"

    now_s = TOKEN_PERIOD_S
    if content is None:
        path.unlink()
    else:
        path.write_text(content)
    assert token.authorization() == "Bearer first"

    path.write_text("second")
    assert token.authorization() == "Bearer second"
