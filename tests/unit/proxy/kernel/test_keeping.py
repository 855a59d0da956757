"""An installation with bindings, and what happens where the kernel refuses them."""

from collections.abc import Sequence

import pytest
from structlog.testing import capture_logs

from endpointslice.types import Family
from proxy.kernel.batch import Message, Type
from proxy.kernel.change import KernelError
from proxy.kernel.keeping import Kept, install_with

BINDINGS = (Message(Type.NEWSETELEM, Family.IPV4, b""),)


class Installation:
    """Refuses the first `refusals` times."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals
        self.asked: list[Sequence[Message]] = []

    def __call__(self, bindings: Sequence[Message]) -> None:
        self.asked.append(bindings)
        if len(self.asked) <= self.refusals:
            raise KernelError("no room")


@pytest.mark.parametrize(
    ("kept", "refusals", "asked", "logged"),
    [
        pytest.param(
            Kept(BINDINGS, 7, 2),
            0,
            [BINDINGS],
            [{"event": "bindings_kept", "log_level": "info", "count": 7, "left_out": 2}],
            id="taken",
        ),
        pytest.param(
            Kept(BINDINGS, 7),
            1,
            [BINDINGS, ()],
            [{"event": "bindings_lost", "log_level": "warning", "why": "no room", "count": 7}],
            id="refused, and taken without bindings",
        ),
        pytest.param(Kept(), 0, [()], [], id="there are none"),
    ],
)
def test_an_installation(
    kept: Kept, refusals: int, asked: list[Sequence[Message]], logged: list[dict[str, object]]
) -> None:
    install = Installation(refusals)

    with capture_logs() as logs:
        install_with(kept, install)

    assert install.asked == asked
    assert logs == logged


@pytest.mark.parametrize("kept", [Kept(), Kept(BINDINGS, 1)], ids=["without bindings", "with bindings"])
def test_what_is_refused_without_bindings_too_is_an_error(kept: Kept) -> None:
    with pytest.raises(KernelError, match="no room"):
        install_with(kept, Installation(2))
