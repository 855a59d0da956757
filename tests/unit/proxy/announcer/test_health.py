"""Whether an announcer is well, and when it is ready."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from endpointslice.types import NodeName
from proxy.announcer.health import STUCK_S, Health
from proxy.l2.state import Start, State, Wire, start
from proxy.l2.types import PROFILES, Channel, Settings

WIRE = Channel("192.0.2.0/24")


def state(*, listening: bool) -> State:
    settings = Settings(node=NodeName("n1"), timing=PROFILES["default"], keys=(1,))
    fresh = start(settings, Start(1, b"secret"), 0.0)
    return replace(fresh, wires={WIRE: Wire(WIRE, listening=listening)})


@pytest.mark.parametrize(
    ("told", "listening", "ready"),
    [
        pytest.param(True, False, True, id="told by the proxy, and no wire is listened on"),
        pytest.param(True, True, False, id="it still listens"),
        pytest.param(False, False, False, id="the proxy's word is awaited, that it is gone included"),
    ],
)
def test_the_file_is_there_once_it_answers(tmp_path: Path, *, told: bool, listening: bool, ready: bool) -> None:
    file = tmp_path / "ready"
    health = Health(file)
    if told:
        health.told()

    health.woke(state(listening=listening))

    assert file.exists() is ready


def test_a_file_of_an_earlier_process_says_nothing_of_this_one(tmp_path: Path) -> None:
    file = tmp_path / "ready"
    file.touch()

    Health(file)

    assert not file.exists()


def test_a_loop_that_turns_is_alive_and_one_that_stands_still_is_not() -> None:
    times = iter([0.0, STUCK_S + 1, STUCK_S + 1, STUCK_S + 2])
    health = Health(None, lambda: next(times))

    assert not health.is_alive()
    health.woke(state(listening=False))
    assert health.is_alive()


def test_who_was_followed_by_another_process_is_well() -> None:
    times = iter([0.0, STUCK_S + 1])
    health = Health(None, lambda: next(times))

    health.rest()

    assert health.is_alive()
