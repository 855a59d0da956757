"""What the tests of one kind's watch share: a server that answers in turn, and what they ask of what was posted."""

from collections.abc import Callable

from endpointslice.decode import Changed, Listed
from endpointslice.types import Kind, Service
from proxy.sources.watch import KindWatch, Resource
from tests.unit.proxy.sources.api_double import (
    Answer,
    Feed,
    Request,
    event,
)

SERVICES = Resource(Kind.SERVICE, "/api/v1/services", "!hidden", "spec.clusterIP!=None")
EXPIRED = event("ERROR", {"kind": "Status", "code": 410, "message": "too old resource version"})
StartWatch = Callable[..., KindWatch]


def serve(lists: list[Answer], watches: list[Answer | Feed]) -> Callable[[Request], Answer]:
    """Answers in turn; the last of each kind again and again."""

    def answer(request: Request) -> Answer:
        if not request.is_watch:
            return lists.pop(0) if len(lists) > 1 else lists[0]
        given = watches.pop(0) if len(watches) > 1 else watches[0]
        return Answer(given) if isinstance(given, Feed) else given

    return answer


def ports_of(batch: object) -> list[int]:
    """The port of each Service in a batch of changes."""
    assert isinstance(batch, tuple)
    return [change.object.ports[0].port for change in batch if isinstance(change.object, Service)]


def names_in(listed: Changed | Listed) -> list[str]:
    assert isinstance(listed, Listed)
    return [change.name for change in listed.objects]
