"""What the bytes of one kind mean: the watch brings them, a Sink decodes and posts. No I/O."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from endpointslice.decode import Changed, Listed, Page, decode_list, decode_watch_line
from endpointslice.types import Kind
from proxy.sources import Post
from proxy.sources.stream import read_batch


class Taken(NamedTuple):
    """What came of a list, or of some lines of a watch."""

    resource_version: str  # resume from here; "": no line named one
    objects: int = 0  # of a list
    failure: tuple[int, str] | None = None  # code and message of an ERROR, or of an unreadable line: the stream ends


class Sink(Protocol):
    """Takes what the server says of one kind, in order, from one thread."""

    def take_pages(self, pages: Iterator[bytes]) -> Taken:
        """Post one complete list, made of these pages. Raises DecodeError, and whatever the pages raise."""
        ...

    def take_nothing(self) -> None:
        """Post a complete list without an object: we may not read them."""
        ...

    def take_lines(self, lines: Sequence[bytes]) -> Taken:
        """Post what consecutive lines of a watch say, up to the first that ends it."""
        ...


class EventSink:
    """The Sink of a Source: posts Listed and Changed."""

    def __init__(self, kind: Kind, post: Post) -> None:
        self._kind = kind
        self._post = post

    def take_pages(self, pages: Iterable[bytes]) -> Taken:
        """As Sink."""
        changes: list[Changed] = []
        page = Page((), "", "")
        for body in pages:
            page = decode_list(self._kind, body)
            changes += page.changes
        self._post((Listed(self._kind, tuple(changes)),))
        return Taken(page.resource_version, len(changes))

    def take_nothing(self) -> None:
        """As Sink."""
        self._post((Listed(self._kind, ()),))

    def take_lines(self, lines: Sequence[bytes]) -> Taken:
        """As Sink."""
        batch = read_batch(decode_watch_line(self._kind, line) for line in lines)
        if batch.changes:
            self._post(batch.changes)
        failed = batch.failed
        return Taken(batch.resource_version, failure=(failed.code, failed.message) if failed else None)
