"""One socket to nf_tables on the real kernel: answers kept apart, refusals told, dumps repeated until right."""

from collections.abc import Iterator

import pytest

from e2e.world.netns import run_in
from endpointslice.types import Family
from proxy.kernel.attributes import pack_name, pack_nest
from proxy.kernel.batch import APPEND, CREATE, Message, Type
from proxy.kernel.change import KernelError
from proxy.kernel.connection import Connection
from proxy.kernel.dumps import Unusable
from proxy.kernel.netlink import NftKernel
from tests.netns.kernel_space import Space

pytestmark = pytest.mark.netns

ADD_TABLE = Message(Type.NEWTABLE, Family.IPV4, pack_name(1, "closeby"), CREATE)


@pytest.fixture
def connection(space: Space) -> Iterator[Connection]:
    opened = run_in(space.name, Connection)
    yield opened
    opened.close()


def test_every_transaction_of_anybody_changes_the_generation(space: Space, connection: Connection) -> None:
    before = connection.generation()

    space.nft("add table ip other")

    assert connection.generation() != before


def test_a_read_that_someone_came_between_is_repeated(space: Space, connection: Connection) -> None:
    edits = iter(["add table ip a", "add table ip b"])
    read: list[int] = []

    def read_under_change() -> int:
        if edit := next(edits, ""):
            space.nft(edit)
        read.append(len(read))
        return read[-1]

    assert connection.read_stable(read_under_change) == 2
    assert read == [0, 1, 2]


def test_a_read_with_repeated_elements_is_repeated(connection: Connection) -> None:
    answers = iter([Unusable.REPEATED, Unusable.REPEATED, "right"])

    assert connection.read_stable(lambda: next(answers)) == "right"


def test_foreign_elements_are_an_answer(connection: Connection) -> None:
    assert connection.read_stable(lambda: Unusable.FOREIGN) is Unusable.FOREIGN


def test_a_read_that_never_succeeds_is_given_up(connection: Connection) -> None:
    with pytest.raises(KernelError, match="many attempts") as given_up:
        connection.read_stable(lambda: Unusable.REPEATED)

    assert given_up.value.unknown


def test_a_dump_left_in_its_middle_does_not_disturb_what_follows(connection: Connection, kernel: NftKernel) -> None:
    kernel.install({})
    rules = Message(Type.GETRULE, Family.IPV4, pack_name(1, "closeby"))
    whole = [reply.payload for reply in connection.dump(rules)]

    next(connection.dump(rules))

    assert connection.generation()
    assert [reply.payload for reply in connection.dump(rules)] == whole


def test_sequence_numbers_begin_anew_after_two_billion(connection: Connection) -> None:
    connection._sequence = (1 << 31) - 3  # noqa: SLF001  # it takes years to get there

    for _time in range(3):
        connection.transact([ADD_TABLE])
        assert connection.request(ADD_TABLE._replace(kind=Type.GETTABLE, flags=0))


def test_what_is_not_there_is_no_answer(connection: Connection) -> None:
    assert connection.request(Message(Type.GETTABLE, Family.IPV4, pack_name(1, "nobodys"))) is None
    assert (
        list(connection.dump(Message(Type.GETSETELEM, Family.IPV4, pack_name(1, "nobodys") + pack_name(2, "x")))) == []
    )


def test_five_thousand_failing_messages_are_one_refusal_with_the_first_reason(
    connection: Connection, kernel: NftKernel
) -> None:
    kernel.install({})
    missing = [
        Message(Type.DELTABLE, Family.IPV4, pack_name(1, "nobodys")),
        *(
            Message(Type.DELSETELEM, Family.IPV4, pack_name(1, "closeby") + pack_name(2, "hairpin"))
            for _ in range(5000)
        ),
    ]

    with pytest.raises(KernelError, match="deltable ip nobodys: No such file") as refused:
        connection.transact(missing)

    assert not refused.value.unknown


def test_a_kernel_without_a_part_that_the_rules_need_is_told_from_a_table_that_went_away(
    connection: Connection,
) -> None:
    """A rule with an expression that no kernel has, as `ct` is one where nf_conntrack is missing."""
    table = pack_name(1, "closeby")
    chain = Message(Type.NEWCHAIN, Family.IPV4, table + pack_name(3, "c"), CREATE)
    expressions = pack_nest(4, pack_nest(1, pack_name(1, "no_such_expression"), pack_nest(2)))
    rule = Message(Type.NEWRULE, Family.IPV4, table + pack_name(2, "c") + expressions, CREATE | APPEND)

    with pytest.raises(
        KernelError, match="newrule ip closeby c: this kernel lacks a part of nf_tables or nf_conntrack"
    ):
        connection.transact([Message(Type.NEWTABLE, Family.IPV4, table, CREATE), chain, rule])
    with pytest.raises(KernelError, match="newchain ip closeby c: No such file or directory"):
        connection.transact([chain, rule])
