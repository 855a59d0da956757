"""EFFECT: the watches of what addresses depend on, from the moment that this replica leads until it doesn't.

They begin with whole lists, which the API server answers as of now: nothing that the former leader wrote is missed.
"""

from collections.abc import Callable, Iterator, Sequence

import structlog

from proxy.addresses.decode import Change, Readers, decode_page, read_lines
from proxy.addresses.messages import Heard
from proxy.addresses.types import Kind
from proxy.sources.sink import Taken
from proxy.sources.transport import ApiServer
from proxy.sources.watch import PATIENT, KindWatch, Resource, Reunion

log = structlog.get_logger()

GROUP = "/apis/metallb.io/v1beta1"
L2_STATUSES = "/apis/closeby.dev/v1beta1/servicel2statuses"
Post = Callable[[Heard], None]


def list_resources(namespace: str) -> tuple[Resource, ...]:
    """What is followed; pools and advertisements of one namespace.

    Without pools nothing is decided, so there is no doing without the right to read them. Nodes are read for their
    addresses, which are then not given out; advertisements to say what is wrong with them; ServiceL2Statuses for
    foreign hosts, which become a Service's condition.
    """
    return (
        Resource(Kind.SERVICE, "/api/v1/services"),
        Resource(Kind.NAMESPACE, "/api/v1/namespaces"),
        Resource(Kind.POOL, f"{GROUP}/namespaces/{namespace}/ipaddresspools"),
        Resource(Kind.NODE, "/api/v1/nodes", permission="list and watch on nodes"),
        Resource(
            Kind.ADVERTISEMENT,
            f"{GROUP}/namespaces/{namespace}/l2advertisements",
            permission="list and watch on l2advertisements in metallb.io",
        ),
        Resource(
            Kind.L2_STATUS,
            L2_STATUSES,
            permission="list and watch on servicel2statuses in closeby.dev",
            is_custom=True,
        ),
    )


class ChangeSink:
    """The Sink of one kind."""

    def __init__(self, kind: Kind, term: int, post: Post, readers: Readers | None = None) -> None:
        self._kind = kind
        self._readers = readers
        self._term = term
        self._post = post

    def take_pages(self, pages: Iterator[bytes]) -> Taken:
        """As Sink."""
        changes: list[Change] = []
        version = ""
        for body in pages:
            page = decode_page(self._kind, body, self._readers)
            changes += page.changes
            version = page.resource_version
        self._tell(tuple(changes), listed=True)
        return Taken(version, len(changes))

    def take_nothing(self) -> None:
        """As Sink."""
        self._tell((), listed=True)

    def take_lines(self, lines: Sequence[bytes]) -> Taken:
        """As Sink."""
        changes, version, failure = read_lines(self._kind, iter(lines), self._readers)
        if changes:
            self._tell(tuple(changes), listed=False)
        return Taken(version, failure=failure)

    def _tell(self, changes: tuple[Change, ...], *, listed: bool) -> None:
        for change in changes:
            if change.problem:
                log.warning("object_unreadable", kind=self._kind, object=change.name, why=change.problem)
        self._post(Heard(self._term, self._kind, changes, listed))


class Following:
    """The watches of one term."""

    def __init__(self, api: ApiServer, namespace: str, term: int, post: Post) -> None:
        reunion = Reunion()
        self.kinds = frozenset(Kind)
        self._watches = [
            KindWatch(api, resource, ChangeSink(Kind(resource.kind), term, post), PATIENT, reunion)
            for resource in list_resources(namespace)
        ]
        for watch in self._watches:
            watch.start()

    def stop(self) -> None:
        """End the threads, without waiting: what they still say is of an old term."""
        for watch in self._watches:
            watch.stop()
