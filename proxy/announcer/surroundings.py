"""EFFECT, in the proxy's process: the watches of all that an announcer must know beyond what the node itself serves.

All Nodes, the pools and advertisements of one namespace, and Services of type LoadBalancer for their labels. Only a
proxy that has an announcer watches them. Without the right to read a kind, or where metallb.io isn't installed, there
is none of it. An API server that is away changes nothing.
"""

import threading
from collections.abc import Callable, Mapping

import structlog

from proxy.addresses.decode import READERS, Readers
from proxy.addresses.follow import GROUP, ChangeSink
from proxy.addresses.messages import Heard
from proxy.addresses.nodes import read_node_state
from proxy.addresses.state import State, apply_changes, apply_list
from proxy.addresses.types import Kind
from proxy.announcer.around import Surveyed, show_problems, survey
from proxy.metrics import UNUSABLE
from proxy.sources.transport import ApiServer
from proxy.sources.watch import PATIENT, KindWatch, Patience, Resource, Reunion

log = structlog.get_logger()

_READERS: Readers = {**READERS, Kind.NODE: read_node_state}
LOOK_S = 1.0


def list_surroundings(namespace: str) -> tuple[Resource, ...]:
    """What is followed."""
    return (
        Resource(Kind.NODE, "/api/v1/nodes", permission="list and watch on nodes"),
        Resource(Kind.SERVICE, "/api/v1/services", field_selector="spec.type=LoadBalancer"),
        Resource(
            Kind.POOL,
            f"{GROUP}/namespaces/{namespace}/ipaddresspools",
            permission="list and watch on ipaddresspools in metallb.io",
            is_custom=True,
        ),
        Resource(
            Kind.ADVERTISEMENT,
            f"{GROUP}/namespaces/{namespace}/l2advertisements",
            permission="list and watch on l2advertisements in metallb.io",
            is_custom=True,
        ),
    )


class Surroundings:
    """Tells whenever something has changed, once every kind was listed."""

    def __init__(
        self,
        api: ApiServer,
        namespace: str,
        tell: Callable[[Surveyed], None],
        note_connection: Callable[[bool], None],
        patience: Patience = PATIENT,
    ) -> None:
        self._tell = tell
        self._note_connection = note_connection
        self._taking = threading.Lock()  # guards the rest, between the watches' threads
        self._state = State()
        self._surveyed = Surveyed()
        self._told = -1  # the revision
        self._problems: tuple[str, ...] = ()
        reunion = Reunion()
        self._watches: Mapping[Kind, KindWatch] = {
            (kind := Kind(resource.kind)): KindWatch(
                api, resource, ChangeSink(kind, 0, self._take, _READERS), patience, reunion
            )
            for resource in list_surroundings(namespace)
        }
        self._ended = threading.Event()

    def start(self) -> None:
        """Start the threads."""
        for watch in self._watches.values():
            watch.start()
        threading.Thread(target=self._look, name="surroundings", daemon=True).start()

    def stop(self) -> None:
        """End them, without waiting."""
        self._ended.set()
        for watch in self._watches.values():
            watch.stop()

    def _look(self) -> None:
        while not self._ended.wait(LOOK_S):
            self._note_connection(self._watches[Kind.NODE].status.connected)

    def _take(self, heard: Heard) -> None:
        apply = apply_list if heard.listed else apply_changes
        with self._taking:
            self._state = apply(self._state, heard.kind, heard.changes)
            if self._state.revision == self._told or self._state.complete != self._watches.keys():
                return
            self._told = self._state.revision
            self._surveyed = survey(self._surveyed, self._state)
            self._show_problems()
            self._tell(self._surveyed)

    def _show_problems(self) -> None:
        """In the log as they come, and counted."""
        problems = show_problems(self._surveyed)
        for problem in problems:
            if problem not in self._problems:
                log.warning("object_unusable", why=problem)
        self._problems = problems
        for kind in self._watches:
            UNUSABLE.labels(kind).set(sum(problem.startswith(f"{kind} ") for problem in problems))
