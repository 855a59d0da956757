"""EFFECT: the moments at which the API says something new, by a watch that needs no polling."""

import json
import subprocess
import threading
import time
from types import TracebackType
from typing import Any, Self

from e2e.kind.cluster import Cluster

Object = dict[str, Any]


class Watching:
    """Every state of the objects of `kubectl get WHAT`, with when it was told; used as a context manager."""

    def __init__(self, cluster: Cluster, *what: str) -> None:
        self._command = cluster.kubectl_command("get", *what, "--watch", "--output-watch-events", "-o", "json")
        self._told: list[tuple[float, Object]] = []
        self._process: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._read, daemon=True)

    def states(self) -> list[tuple[float, Object]]:
        """What was told so far: monotonic seconds, and the object; of a deleted one its last state comes again."""
        return list(self._told)

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process
        self._process.kill()
        self._process.wait()
        self._thread.join()
        assert self._process.stdout
        self._process.stdout.close()

    def _read(self) -> None:
        assert self._process
        assert self._process.stdout
        for line in self._process.stdout:  # an event each
            self._told.append((time.monotonic(), json.loads(line)["object"]))


def is_ready(node: Object) -> bool:
    """Whether a Node's condition Ready is true. Pure."""
    return any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"].get("conditions", ()))


def serving_on(endpoint_slice: Object, node: str) -> int:
    """How many endpoints on the node the slice calls ready; absent conditions mean yes (KEP-752). Pure."""
    endpoints = endpoint_slice.get("endpoints") or ()
    return sum(
        (endpoint.get("conditions") or {}).get("ready") is not False
        for endpoint in endpoints
        if endpoint.get("nodeName") == node
    )
