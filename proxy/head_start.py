"""EFFECT: the configuration's source, started before most of the daemon is imported.

The API server needs 0.1 s for the lists of 1,000 Services and 0.4 s or more for those of 10,000. Meanwhile the modules
of the kernel, the planner and the servers are imported; so this one imports nothing but what asks for the lists.
"""

import threading
from collections.abc import Sequence
from functools import partial
from typing import IO, TYPE_CHECKING, NamedTuple

from endpointslice.snapshot import Changed, Listed
from proxy.config import Config
from proxy.control import hold_lock
from proxy.notices import Tell, tell_nobody
from proxy.sources import Post, Source

if TYPE_CHECKING:
    from proxy.sources.transport import ApiServer


class Waiting:
    """Keeps what a source posts until there is somebody to take it; in order, for any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # against a batch that comes while those before are handed on
        self._batches: list[Sequence[Changed | Listed]] = []
        self._post: Post | None = None

    def post(self, batch: Sequence[Changed | Listed]) -> None:
        """To whoever takes it, now or later."""
        with self._lock:
            if self._post is None:
                self._batches.append(batch)
                return
        self._post(batch)

    def hand_to(self, post: Post) -> None:
        """Everything that waits, and from now on all that comes."""
        with self._lock:
            for batch in self._batches:
                post(batch)
            self._batches.clear()
            self._post = post


class HeadStart(NamedTuple):
    """A source that was started, and who writes Events to it."""

    lock: IO[str]  # held until the process ends
    source: Source
    tell: Tell
    waiting: Waiting
    api: "ApiServer | None" = None  # None: the source is a folder


def start_source(config: Config) -> HeadStart:
    """The started source that the configuration names; ConfigError if it can't be used, LockError if another runs."""
    lock = hold_lock(config.control_socket)
    source, tell, api = _open_source(config)
    waiting = Waiting()
    source.start(waiting.post)
    return HeadStart(lock, source, tell, waiting, api)


def _open_source(config: Config) -> tuple[Source, Tell, "ApiServer | None"]:
    # Imported here: a folder of manifests needs no HTTP, an API server no YAML.
    if config.manifests is not None:
        from proxy.sources.manifests import ManifestSource  # noqa: PLC0415

        return ManifestSource(config.manifests), tell_nobody, None
    from proxy.sources.apiserver import ApiServerSource  # noqa: PLC0415
    from proxy.sources.credentials import NO_PROXY_YET, load_in_cluster, load_kubeconfig  # noqa: PLC0415
    from proxy.sources.recorder import EventRecorder  # noqa: PLC0415
    from proxy.sources.transport import ApiServer  # noqa: PLC0415

    kubeconfig, master = config.kubeconfig, config.master
    if kubeconfig is None:
        api = ApiServer(partial(load_in_cluster, master=master), "" if master else NO_PROXY_YET)
    else:
        api = ApiServer(partial(load_kubeconfig, kubeconfig, master))
    recorder = EventRecorder(api, config.settings.node)
    recorder.start()
    return ApiServerSource(api, config.settings.node), recorder.tell, api
