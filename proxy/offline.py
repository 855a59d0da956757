"""EFFECT: a Snapshot for `plan` and `explain`, read once: from a folder, a dump, an API server, or the daemon."""

import queue
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from endpointslice.snapshot import EMPTY, Changed, Listed, Snapshot, apply_events
from endpointslice.types import Kind, NodeName, PodName
from proxy.config import ConfigError
from proxy.control import read_dump
from proxy.dump import add_skipped, read_settings
from proxy.planner.planner import NOTHING, Moment, Planner
from proxy.planner.settings import Settings
from proxy.sources import Source
from proxy.sources.dumps import Dump, load_dump, parse_dump
from proxy.sources.manifests import load_folder

LIST_S = 15.0  # how long the API server may take for its lists
POD_S = 5.0  # and for the owners of a few pods


Posted = queue.SimpleQueue[Sequence[Changed | Listed]]


class Wanted(NamedTuple):
    """Where to read from; all None: the running daemon's control socket."""

    manifests: Path | None
    dump: Path | None
    kubeconfig: Path | None
    control_socket: Path


class Loaded(NamedTuple):
    """What was read; `settings` are those that a dump or a daemon brought along."""

    snapshot: Snapshot
    settings: Settings | None = None


def load(wanted: Wanted, node: NodeName) -> Loaded:
    """The Snapshot of the one source that is named; ConfigError where there are several, or it can't be read."""
    named = [name for name in ("manifests", "dump", "kubeconfig") if getattr(wanted, name) is not None]
    if len(named) > 1:
        raise ConfigError(f"{' and '.join(f'--{name}' for name in named)}: give one source, not {len(named)}")
    if wanted.manifests is not None:
        return Loaded(apply_events(EMPTY, load_folder(wanted.manifests))[0])
    if wanted.dump is not None:
        return _read(load_dump(wanted.dump))
    if wanted.kubeconfig is not None:
        return Loaded(_list_once(wanted.kubeconfig, node))
    return _ask_daemon(wanted.control_socket)


def _ask_daemon(socket: Path) -> Loaded:
    try:
        body = read_dump(socket)
        dump = parse_dump(body, str(socket))
    except OSError as error:
        raise ConfigError(
            f"no closeby answers at {socket} ({error}); "
            "name a source: --manifests DIR, --dump FILE or --kubeconfig FILE"
        ) from error
    return _read(dump)


def _read(dump: Dump) -> Loaded:
    snapshot, _ = apply_events(EMPTY, dump.changes)
    return Loaded(add_skipped(snapshot, dump.facts), read_settings(dump.facts))


def _list_once(kubeconfig: Path, node: NodeName) -> Snapshot:
    # Imported here: the other sources need no Kubernetes client, which takes a third of a second to import.
    from proxy.sources.apiserver import ApiServerSource  # noqa: PLC0415
    from proxy.sources.credentials import load_kubeconfig  # noqa: PLC0415
    from proxy.sources.transport import ApiServer  # noqa: PLC0415

    posted: Posted = queue.SimpleQueue()
    source = ApiServerSource(ApiServer(partial(load_kubeconfig, kubeconfig)), node)
    source.start(posted.put)
    try:
        snapshot = _await_lists(source, posted, f"--kubeconfig: {kubeconfig}")
        return _await_owners(source, posted, snapshot, node)
    finally:
        source.stop()


def _await_lists(source: Source, posted: Posted, where: str) -> Snapshot:
    missing = set(source.kinds)
    snapshot = EMPTY
    until_s = time.monotonic() + LIST_S
    while missing:
        try:
            batch = posted.get(timeout=max(0.0, until_s - time.monotonic()))
        except queue.Empty:
            kinds = ", ".join(sorted(kind.value for kind in missing))
            errors = "; ".join(sorted({status.error for status in source.status().values() if status.error}))
            raise ConfigError(f"{where}: no list of {kinds} came within {LIST_S:.0f} s {errors}") from None
        snapshot, _ = apply_events(snapshot, batch)
        missing -= {event.kind for event in batch if isinstance(event, Listed)}
    return snapshot


def _await_owners(source: Source, posted: Posted, snapshot: Snapshot, node: NodeName) -> Snapshot:
    """The Snapshot with the owners of the pods that the same-node rule asks for; those that don't come are unknown."""
    answered: set[str] = set()
    until_s = time.monotonic() + POD_S
    while wanted := _wanted_pods(snapshot, node) - answered:
        for pod in wanted:
            source.request_pod(pod, "")
        try:
            batch = posted.get(timeout=max(0.0, until_s - time.monotonic()))
        except queue.Empty:
            break
        answered |= {event.name for event in batch if isinstance(event, Changed) and event.kind is Kind.POD}
        snapshot, _ = apply_events(snapshot, batch)
    return snapshot


def _wanted_pods(snapshot: Snapshot, node: NodeName) -> frozenset[PodName]:
    planner = Planner(Settings(node))
    planner.update(snapshot, NOTHING, Moment({}, frozenset(), 0.0))
    return planner.wanted_pods
