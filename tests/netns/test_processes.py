"""Clients of a world take their order, say what they saw, and never outlive who started them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.world.netns import create_namespaces, list_inhabitants, remove_namespaces, unique_prefix
from e2e.world.processes import Clients, Errand, ProgramError, read_answer, start_client, stop_programs

pytestmark = pytest.mark.netns

Seen = tuple[str, int]

# Each takes its order. The first repeats it once stdin has ended; the others end early.
FAITHFUL = """
import json, sys
order = json.loads(sys.stdin.readline())
print("ready", flush=True)
sys.stdin.read()
print(json.dumps([[order["word"], order["number"]]]), flush=True)
"""
NEVER_READY = "import sys; sys.stdin.readline(); sys.exit(3)"
NO_ANSWER = "import sys; sys.stdin.readline(); print('ready', flush=True); sys.exit(4)"


@pytest.fixture(scope="module")
def name() -> Iterator[str]:
    """A namespace."""
    name = unique_prefix("clients") + "here"
    create_namespaces([name])
    yield name
    remove_namespaces([name])


def program(folder: Path, source: str) -> str:
    path = folder / "program"
    path.with_suffix(".py").write_text(source)
    return str(path)


def clients(name: str, module: str) -> Clients[list[Seen]]:
    errands = {who: Errand(name, {"word": who, "number": number}) for number, who in enumerate(("a", "b"))}
    return Clients(module, "the client", list[Seen], errands)


def test_each_client_follows_its_own_order_until_its_end(name: str, tmp_path: Path) -> None:
    with clients(name, program(tmp_path, FAITHFUL)) as working:
        assert len(list_inhabitants([name])) == 2
        seen = working.end()

    assert seen == {"a": [("a", 0)], "b": [("b", 1)]}
    assert list_inhabitants([name]) == []


def test_leaving_the_block_kills_clients_that_were_not_told_to_end(name: str, tmp_path: Path) -> None:
    with clients(name, program(tmp_path, FAITHFUL)):
        pass

    assert list_inhabitants([name]) == []


def test_a_client_that_never_gets_ready_is_named_and_the_others_are_killed(name: str, tmp_path: Path) -> None:
    with (
        pytest.raises(ProgramError, match="the client in a ended with 3 before it was ready"),
        clients(name, program(tmp_path, NEVER_READY)),
    ):
        pass

    assert list_inhabitants([name]) == []


def test_a_client_that_ends_without_an_answer_is_named(name: str, tmp_path: Path) -> None:
    with (
        pytest.raises(ProgramError, match="the client in a ended with 4"),
        clients(name, program(tmp_path, NO_ANSWER)) as working,
    ):
        working.end()


def test_a_single_client_may_do_its_errand_and_end_by_itself(name: str, tmp_path: Path) -> None:
    brief = "import json, sys; print(json.dumps(json.loads(sys.stdin.readline())['number']), flush=True)"
    process = start_client(name, program(tmp_path, brief), {"number": 7})

    assert read_answer(process, "it", int) == 7
    stop_programs([process])
