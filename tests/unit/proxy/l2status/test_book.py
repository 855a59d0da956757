"""One kind's objects: when they are looked at, and when they aren't."""

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from endpointslice.types import IP, NodeName, ServiceName
from proxy.l2status.book import REFUSALS, Book, Waits
from proxy.l2status.ledger import Wish
from proxy.l2status.types import Address, Entry
from proxy.l2status.wire import OWN
from proxy.sources.credentials import load_kubeconfig
from proxy.sources.transport import ApiServer
from tests.unit.proxy.l2status.test_writer import Store
from tests.unit.proxy.sources.api_double import Answer, ApiDouble, Request, answer_json, answer_status

WEB, N1, VIP = ServiceName("shop/web"), NodeName("n1"), IP("192.0.2.1")
WISH = Wish({WEB: Entry(WEB, N1, (Address(VIP, "eth0"),))}, frozenset({VIP}))


def turn(book: Book) -> None:
    """When it is due."""
    assert book.due_s is not None
    time.sleep(max(0.0, book.due_s - time.monotonic()))
    book.turn(WISH, lambda: True)


@pytest.fixture
def double() -> Iterator[ApiDouble]:
    running = ApiDouble(lambda _: answer_json({}))
    yield running
    running.close()


def make_book(double: ApiDouble, folder: Path, waits: Waits) -> Book:
    kubeconfig = double.kubeconfig(folder / "config")
    return Book(ApiServer(lambda: load_kubeconfig(kubeconfig)), OWN, N1, lambda _: "uid-1", waits)


def answer_refusal(code: int, _request: Request) -> Answer:
    return answer_status(code, "no")


def test_a_server_that_starts_and_refuses_everybody_is_asked_again(double: ApiDouble, tmp_path: Path) -> None:
    store = double.answer = Store()
    book = make_book(double, tmp_path, Waits(patience_s=0.05))

    with capture_logs() as logs:
        book.mark({WEB})
        for code in (*(503,) * REFUSALS, *(403,) * (REFUSALS - 1)):
            store.refuse = partial(answer_refusal, code)
            turn(book)
        store.refuse = lambda _: None
        turn(book)

    assert len(store.objects) == 1
    assert [line["event"] for line in logs] == ["status_waits"]


def test_a_right_that_is_missing_is_told_once_and_asked_for_at_the_next_change(
    double: ApiDouble, tmp_path: Path
) -> None:
    store = double.answer = Store()
    store.refuse = lambda _: answer_status(403, "forbidden")
    book = make_book(double, tmp_path, Waits(patience_s=0.05))

    with capture_logs() as logs:
        for _ in range(2):
            book.mark({WEB})
            for _ in range(REFUSALS):
                turn(book)
            assert book.due_s is None

    assert [line["event"] for line in logs] == ["status_unwritten"]
    store.refuse = lambda _: None
    book.mark({WEB})
    turn(book)
    assert len(store.objects) == 1


def test_what_was_written_is_looked_at_once_more_and_then_no_more(double: ApiDouble, tmp_path: Path) -> None:
    store = double.answer = Store()
    book = make_book(double, tmp_path, Waits(look_again_s=0.5))
    assert book.due_s is None

    book.mark({WEB})
    turn(book)
    assert len(store.objects) == 1

    store.objects.clear()  # by a node that has given the address away, and doesn't know it yet
    turn(book)
    assert len(store.objects) == 1

    turn(book)
    assert book.due_s is None
    assert [one.method for one in double.requests] == ["GET", "PATCH", "GET", "PATCH", "GET"]
