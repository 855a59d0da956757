"""Where the world's state comes from: the API server (`apiserver`) or a folder of manifests (`manifests`).

Both post the same events, Changed and Listed, from threads of their own; nothing here decides anything about traffic.
Pure: `stream`, `documents`, `folder`, `derive`. Effects: `transport`, `watch`, `pods`, `apiserver`, `manifests`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from endpointslice.decode import Changed, Listed
from endpointslice.types import Kind, PodName

Post = Callable[[Sequence[Changed | Listed]], None]


class KindStatus(msgspec.Struct, frozen=True):
    """How well we hear of one kind of object."""

    complete: bool = False  # a complete list was posted, at some time
    connected: bool = False  # changes would reach us now
    error: str = ""  # the last error, while not connected


class Source(Protocol):
    """A source of events.

    The first Listed of a kind marks it complete: what it doesn't name isn't there. Nothing may be removed from the
    kernel before every kind in `kinds` is complete. A source that loses its origin posts nothing: the last
    state stands.
    """

    @property
    def kinds(self) -> frozenset[Kind]:
        """The kinds of which a first Listed will come."""
        ...

    def start(self, post: Post) -> None:
        """Start the threads. They call `post` with one batch of events at a time, several threads at once."""
        ...

    def stop(self) -> None:
        """End the threads; no event is posted after this returns, except by a thread stuck for over a second."""
        ...

    def request_pod(self, pod: PodName, uid: str) -> None:
        """Ask for the owner of a pod; the answer is posted as Changed of Kind.POD. Asking again costs nothing."""
        ...

    def status(self) -> Mapping[Kind, KindStatus]:
        """How well we hear of each of `kinds`."""
        ...
