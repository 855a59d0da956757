"""A place is gone when its block ends, also one that could not be built whole."""

import subprocess

import pytest

from e2e.world.netns import create_namespaces, list_namespaces
from e2e.world.place import Place
from e2e.world.processes import start_program

pytestmark = pytest.mark.netns


class Half(Place):
    """It has a namespace with a program in it, and then something fails."""

    def __init__(self) -> None:
        super().__init__("half")
        self.program: subprocess.Popen[str] | None = None

    def _build(self) -> None:
        create_namespaces([self.prefix + "a"])
        self.program = start_program(self.prefix + "a", "server", ["a", "tcp:80"])
        raise ValueError("the rest can't be made")

    def _take_programs(self) -> list[subprocess.Popen[str]]:
        return [self.program] if self.program else []


def test_what_was_built_before_a_failure_is_removed() -> None:
    place = Half()
    with pytest.raises(ValueError, match="the rest"), place:
        pytest.fail("the block must not begin")

    assert list_namespaces(place.prefix) == []
    assert place.program is not None
    assert place.program.returncode is not None


def test_closing_twice_does_no_harm() -> None:
    place = Half()
    place.close()
    place.close()

    assert list_namespaces(place.prefix) == []
