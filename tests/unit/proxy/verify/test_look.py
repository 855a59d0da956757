"""When a difference counts: if it is there twice in a row while no table changes."""

from collections.abc import Sequence

import pytest

from proxy.verify.look import LOOKS, Look, settle
from proxy.verify.report import TableCheck, VerifyReport


def seen(generation: int, different: int) -> Look:
    counts = {"same": 1, "meant": 0, "different": different, "remarks": 0}
    return Look(generation, VerifyReport("n1", None, (TableCheck("closeby", (), (), (), counts),)))


GOOD = seen(1, 0)


@pytest.mark.parametrize(
    ("looks", "taken", "wrong", "still"),
    [
        pytest.param([GOOD], 1, False, True, id="nothing differs: one look"),
        pytest.param([seen(1, 1), seen(1, 1)], 2, True, True, id="the same twice, and nobody wrote"),
        pytest.param([seen(1, 1), GOOD], 2, False, True, id="a proxy that was about to write"),
        pytest.param([seen(1, 1), seen(2, 1), seen(2, 1)], 3, True, True, id="written between two looks"),
        pytest.param([seen(1, 1), seen(1, 2), seen(1, 2)], 3, True, True, id="the API changed between two looks"),
        pytest.param([seen(n, 1) for n in range(LOOKS)], LOOKS, True, False, id="it never rests"),
    ],
)
def test_what_is_told(looks: Sequence[Look], taken: int, wrong: bool, still: bool) -> None:  # noqa: FBT001  # a table
    remaining = list(looks)
    pauses: list[float] = []

    settled = settle(lambda: remaining.pop(0), pauses.append)

    assert (settled.report.wrong, settled.still) == (wrong, still)
    assert len(looks) - len(remaining) == taken
    assert len(pauses) == taken - 1
