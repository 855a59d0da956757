"""A source that listens to a real API server, and what it posted."""

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from e2e.controlplane.api import Api
from e2e.controlplane.objects import service
from endpointslice.decode import Changed, Listed
from endpointslice.snapshot import EMPTY, Snapshot, apply_events
from endpointslice.types import Kind, ServiceName
from proxy.sources import Source
from proxy.sources.credentials import load_kubeconfig
from proxy.sources.transport import ApiServer, Stream

NAMESPACE = "source"
WEB = ServiceName("source/web")


class Listener:
    """What a source posted, as the loop would have it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # several threads post
        self.snapshot: Snapshot = EMPTY
        self.listed: list[Kind] = []
        self.smallest: dict[Kind, int] = {}  # objects of the shortest list

    def __call__(self, batch: Sequence[Changed | Listed]) -> None:
        """As the loop's inbox."""
        with self._lock:
            self.snapshot, _ = apply_events(self.snapshot, batch)
            for event in batch:
                if isinstance(event, Listed):
                    self.listed.append(event.kind)
                    self.smallest[event.kind] = min(self.smallest.get(event.kind, 1 << 30), len(event.objects))

    def port_of(self, name: ServiceName) -> int | None:
        """The Service's first port; None if there is no such Service."""
        found = self.snapshot.services.get(name)
        return found.ports[0].port if found and found.ports else None


class RecordingServer(ApiServer):
    """An API server whose requests are remembered."""

    def __init__(self, kubeconfig: Path) -> None:
        super().__init__(lambda: load_kubeconfig(kubeconfig))
        self.queries: list[Mapping[str, str]] = []

    def get(self, path: str, query: Mapping[str, str]) -> bytes:
        """As ApiServer."""
        self.queries.append(query)
        return super().get(path, query)

    def open_stream(self, path: str, query: Mapping[str, str], read_timeout_s: float) -> Stream:
        """As ApiServer."""
        self.queries.append(query)
        return super().open_stream(path, query, read_timeout_s)


StartSource = Callable[..., tuple[Source, Listener]]


def is_connected(source: Source) -> bool:
    """Whether it hears of every kind."""
    return all(status.connected for status in source.status().values())


def set_port(api: Api, port: int) -> None:
    """The Service has this port."""
    api.apply(service(WEB, {"http": port}))
