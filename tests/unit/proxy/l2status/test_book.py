"""One kind's objects: when they are looked at, and when they aren't."""

import time
from pathlib import Path

from endpointslice.types import IP, NodeName, ServiceName
from proxy.l2status.book import Book
from proxy.l2status.ledger import Wish
from proxy.l2status.types import Address, Entry
from proxy.l2status.wire import OWN
from proxy.sources.credentials import load_kubeconfig
from proxy.sources.transport import ApiServer
from tests.unit.proxy.l2status.test_writer import Store
from tests.unit.proxy.sources.api_double import ApiDouble, answer_json

WEB, N1, VIP = ServiceName("shop/web"), NodeName("n1"), IP("192.0.2.1")
WISH = Wish({WEB: Entry(WEB, N1, (Address(VIP, "eth0"),))}, frozenset({VIP}))


def turn(book: Book) -> None:
    """When it is due."""
    assert book.due_s is not None
    time.sleep(max(0.0, book.due_s - time.monotonic()))
    book.turn(WISH, lambda: True)


def test_what_was_written_is_looked_at_once_more_and_then_no_more(tmp_path: Path) -> None:
    store = Store()
    double = ApiDouble(lambda _: answer_json({}))
    double.answer = store
    kubeconfig = double.kubeconfig(tmp_path / "config")
    book = Book(ApiServer(lambda: load_kubeconfig(kubeconfig)), OWN, N1, lambda _: "uid-1", look_again_s=0.5)
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
    double.close()
