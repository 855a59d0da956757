"""EFFECT: Services' endpoints as the API tells of them, with the moment at which each change was told."""

import json
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, NamedTuple, Self

from e2e.kind.cluster import Cluster
from e2e.stories.zone_shares import Reach
from e2e.world.processes import stop_programs

_LABEL = "kubernetes.io/service-name"


class Endpoint(NamedTuple):
    """One of an EndpointSlice."""

    node: str
    ready: bool
    terminating: bool


class EndpointWatch:
    """The IPv4 endpoints of Services, followed while the context lasts."""

    def __init__(self, cluster: Cluster, services: Iterable[str]) -> None:
        self._cluster = cluster
        self._selector = f"{_LABEL} in ({','.join(services)})"
        self._slices: defaultdict[str, dict[str, list[Endpoint]]] = defaultdict(dict)
        self._reaches: defaultdict[str, list[Reach]] = defaultdict(list)
        self._lock = threading.Lock()  # the reader's thread writes what callers read

    def reaches(self, service: str) -> list[Reach]:
        """All that was told of a Service so far."""
        with self._lock:
            return list(self._reaches[service])

    def is_settled(self, service: str, ready: int) -> bool:
        """Whether so many endpoints are ready, and none drains."""
        with self._lock:
            endpoints = [endpoint for part in self._slices[service].values() for endpoint in part]
        return len(endpoints) == ready and all(e.ready and not e.terminating for e in endpoints)

    def __enter__(self) -> Self:
        watch = ("--watch", "--output-watch-events", "--output=json")
        argv = self._cluster.kubectl_command("get", "endpointslices", f"--selector={self._selector}", *watch)
        self._process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", *argv], stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._reader.join()
        stop_programs([self._process])

    def _read(self) -> None:
        assert self._process.stdout
        for event in split_documents(self._process.stdout):
            if event["object"]["addressType"] == "IPv4":
                self._follow(event)

    def _follow(self, event: dict[str, Any]) -> None:
        metadata = event["object"]["metadata"]
        service, name = metadata["labels"][_LABEL], metadata["name"]
        with self._lock:
            slices = self._slices[service]
            slices[name] = [] if event["type"] == "DELETED" else decode_endpoints(event["object"])
            ready = frozenset(e.node for part in slices.values() for e in part if e.ready)
            self._reaches[service].append(Reach(time.monotonic(), ready))


def split_documents(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The JSON objects that follow each other in a text, each as soon as it is whole. Pure."""
    decoder = json.JSONDecoder()
    text = ""
    for line in lines:
        text = (text + line).lstrip()
        if not line.rstrip().endswith("}"):
            continue
        try:
            document, end = decoder.raw_decode(text)
        except json.JSONDecodeError:
            continue
        yield document
        text = text[end:]


def decode_endpoints(endpoint_slice: dict[str, Any]) -> list[Endpoint]:
    """The endpoints of a discovery.k8s.io/v1 EndpointSlice that are on nodes. Pure."""
    return [
        Endpoint(
            endpoint["nodeName"],
            endpoint["conditions"].get("ready", True),
            endpoint["conditions"].get("terminating", False),
        )
        for endpoint in endpoint_slice.get("endpoints") or ()
        if "nodeName" in endpoint
    ]
