from pathlib import Path

import pytest

from endpointslice.snapshot import Changed, Listed
from endpointslice.types import Kind, NodeName
from proxy.config import Config
from proxy.control import LockError
from proxy.head_start import Waiting, start_source
from proxy.notices import tell_nobody
from proxy.planner.settings import Settings

FIRST = (Listed(Kind.SERVICE, ()),)
SECOND = (Changed(Kind.SERVICE, "default/web", None),)
THIRD = (Changed(Kind.SERVICE, "default/db", None),)


def test_what_was_posted_early_is_handed_on_in_order_and_later_posts_follow() -> None:
    taken: list[object] = []
    waiting = Waiting()
    waiting.post(FIRST)
    waiting.post(SECOND)
    assert taken == []

    waiting.hand_to(taken.append)
    waiting.post(THIRD)

    assert taken == [FIRST, SECOND, THIRD]


def test_a_folder_is_a_source_that_takes_no_events(tmp_path: Path) -> None:
    (tmp_path / "manifests").mkdir()
    config = Config(
        settings=Settings(NodeName("n1")), manifests=tmp_path / "manifests", control_socket=tmp_path / "control.sock"
    )

    started = start_source(config)
    try:
        assert started.tell is tell_nobody
        with pytest.raises(LockError):
            start_source(config)
    finally:
        started.source.stop()
        started.lock.close()
