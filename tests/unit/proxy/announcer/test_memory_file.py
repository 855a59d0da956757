"""What is left for the next start comes back whole, or not at all."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from endpointslice.types import IP
from proxy.announcer.memory_file import parse_memory, read_memory, render_memory, write_memory
from proxy.l2.state import Memory
from proxy.l2.types import Key, MemberId, Version
from tests.unit.proxy.announcer.messages import WIRES, keys, members

memories = st.builds(
    Memory,
    st.dictionaries(st.sampled_from(WIRES), st.frozensets(members, max_size=5)),
    st.dictionaries(keys, st.builds(Version, st.integers(0, 2**32), members), max_size=5),
)


@given(memories)
def test_a_memory_comes_back(memory: Memory) -> None:
    assert parse_memory(render_memory(memory)) == memory


@given(st.binary(max_size=50))
def test_nonsense_is_no_memory(data: bytes) -> None:
    assert isinstance(parse_memory(data), Memory)


def test_a_file_is_replaced_as_a_whole_and_may_be_missing(tmp_path: Path) -> None:
    file = tmp_path / "run" / "memory.json"
    memory = Memory(held={Key(IP("192.0.2.10"), WIRES[0]): Version(3, MemberId(7))})
    assert read_memory(file) == Memory()

    write_memory(file, memory)

    assert read_memory(file) == memory
    assert [path.name for path in file.parent.iterdir()] == ["memory.json"]


def test_where_nothing_can_be_written_nothing_breaks(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    write_memory(tmp_path / "file" / "memory.json", Memory())

    assert read_memory(tmp_path / "file" / "memory.json") == Memory()
