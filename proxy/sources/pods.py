"""EFFECT: who owns a pod, by one GET, when the same-node rule needs the proof. There is no watch of pods."""

import sched
import threading
import time
from typing import NamedTuple

import msgspec
import structlog
from cachetools import FIFOCache

from endpointslice.decode import Changed, decode_object
from endpointslice.types import Kind, PodName
from proxy.sources import Post
from proxy.sources.transport import ApiError, ApiServer
from proxy.sources.watch import PATIENT, Patience

log = structlog.get_logger()

_MAX_PODS = 4096  # pods of one node; kubelet's default maximum is 110
_NOT_FOUND = 404


class _Asked(NamedTuple):
    pod: PodName
    uid: str


class PodLookup:
    """Answers questions about single pods. Owns a thread from `start` to `stop`."""

    def __init__(self, api: ApiServer, post: Post, patience: Patience = PATIENT) -> None:
        self._api = api
        self._post = post
        self._lock = threading.Lock()  # against the callers of `request`
        self._asked: FIFOCache[_Asked, bool] = FIFOCache(_MAX_PODS)  # each has one entry in the schedule
        self._schedule = sched.scheduler(time.monotonic)
        self._patience = patience
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._told = ""  # the failure that the log last told of
        self._thread = threading.Thread(target=self._run, name="pods", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to end; `join` waits for it."""
        self._stopping.set()
        self._wake.set()

    def join(self, timeout_s: float) -> None:
        """Wait for the thread."""
        self._thread.join(timeout_s)

    def request(self, pod: PodName, uid: str) -> None:
        """Have the pod's owner posted, as Changed of Kind.POD; object None if there is no such pod.

        It is posted again now and then until the pod is gone, so what was posted doesn't outlive its pod. `uid` tells a
        pod from a later one of its name.
        """
        asked = _Asked(pod, uid)
        with self._lock:
            if asked in self._asked:
                return
            self._asked[asked] = True
        self._schedule.enter(0, 0, self._answer, (asked, 1))
        self._wake.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wake.wait(self._schedule.run(blocking=False))
            self._wake.clear()  # before the next run, so that a question is never slept over

    def _answer(self, asked: _Asked, attempt: int) -> None:
        if asked not in self._asked:
            return
        try:
            answer = self._fetch(asked.pod)
        except ApiError as error:
            if self._told != str(error.status):
                self._told = str(error.status)
                log.warning("pod_unread", pod=asked.pod, needs="get on pods", error=str(error))
            self._schedule.enter(self._patience.delay(attempt), 0, self._answer, (asked, attempt + 1))
            return
        self._post((answer,))
        if answer.object is not None:
            self._schedule.enter(self._patience.owner_s, 0, self._answer, (asked, 1))
        else:
            self._schedule.enter(self._patience.owner_s, 0, self._forget, (asked,))

    def _forget(self, asked: _Asked) -> None:
        """Let the pod be asked for again."""
        with self._lock:
            self._asked.pop(asked, default=False)

    def _fetch(self, pod: PodName) -> Changed:
        namespace, _, name = pod.partition("/")
        try:
            body = self._api.get(f"/api/v1/namespaces/{namespace}/pods/{name}", {})
        except ApiError as error:
            if error.status == _NOT_FOUND:
                return Changed(Kind.POD, pod, None)
            raise
        self._told = ""
        return msgspec.structs.replace(decode_object(Kind.POD, body), name=pod)
