"""EFFECT: a folder of manifests as a source, read once (`load_folder`) or watched (`ManifestSource`).

The watcher (inotify) only says when to look; what changed is told by each file's time, size and inode, so replaced
symbolic links (a mounted ConfigMap) and missed events come out right.
"""

import os
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path, PurePath
from stat import S_ISREG
from typing import NamedTuple

import structlog
from watchfiles import watch

from endpointslice.decode import Changed
from endpointslice.types import Kind, PodName, Skipped
from proxy.config import ConfigError
from proxy.sources import KindStatus, Post
from proxy.sources.documents import Manifest, Wrong, keep_good, parse_manifest, refuse_file
from proxy.sources.folder import Objects, diff_objects, list_objects, merge_manifests

log = structlog.get_logger()

SUFFIXES = frozenset({".yaml", ".yml", ".json"})
_QUIET_MS = 25  # a change is read when nothing else has changed for so long: editors write in several steps
_LATEST_MS = 100  # and this late at most
MOST_BYTES = 128 << 20  # of one file; YAML takes some fifty times its size to read
LOOK_MS = 1000  # look without being told: the folder may be gone, or on a file system without inotify
_JOIN_S = 1.0


class _Stamp(NamedTuple):
    mtime_ns: int
    size: int
    inode: int


class Folder:
    """The files of a folder as last read; not for several threads at once."""

    def __init__(self, root: Path) -> None:
        """Raises ConfigError if there is no such folder."""
        if not root.is_dir():
            raise ConfigError(f"--manifests: {root} is not a directory")
        self.root = root
        self._stamps: dict[str, _Stamp] = {}
        self._manifests: dict[str, Manifest] = {}
        self._problems: tuple[Skipped, ...] = ()

    def read(self, touched: Collection[str] = ()) -> Objects | None:
        """All objects after another look at the folder; None if nothing changed.

        `touched` are paths to read even if they look unchanged: two writes within one tick of the kernel's clock (4 ms)
        leave the same time. A folder that is gone keeps its last objects.
        """
        problems = (
            ()
            if self.root.is_dir()
            else (Skipped(_show(str(self.root)), Wrong.NO_FOLDER, "the folder is gone; its last state stands"),)
        )
        before = self._problems
        self._problems = problems
        changed = not problems and self._read_files(touched)
        return merge_manifests(self._manifests.values(), problems) if changed or problems != before else None

    def problems(self) -> Mapping[str, tuple[Skipped, ...]]:
        """What is wrong, by file; with the folder itself, under ""."""
        problems = {path: manifest.problems for path, manifest in self._manifests.items()} | {"": self._problems}
        return {path: found for path, found in problems.items() if found}

    def _read_files(self, touched: Collection[str]) -> bool:
        stamps = dict(_list_files(self.root))
        stale = [path for path, stamp in stamps.items() if self._stamps.get(path) != stamp or path in touched]
        gone = self._manifests.keys() - stamps.keys()
        before = {path: self._manifests.get(path) for path in stale}
        for path in gone:
            del self._manifests[path]
        for path in stale:
            self._manifests[path] = keep_good(before[path], _read_manifest(self.root, path))
        self._stamps = stamps
        return bool(gone) or any(self._manifests[path] != manifest for path, manifest in before.items())


def load_folder(root: Path) -> tuple[Changed, ...]:
    """Every object of the folder, and what is wrong with its files as `merge_manifests` says. Raises ConfigError."""
    return tuple((Folder(root).read() or {}).values())


class ManifestSource:
    """A Source that watches a folder. Owns a thread from `start` to `stop`."""

    kinds = frozenset(Kind)

    def __init__(self, root: Path, look_ms: int = LOOK_MS) -> None:
        """Raises ConfigError if there is no such folder."""
        self._folder = Folder(root)
        self._look_ms = look_ms
        self._objects: Objects = {}
        self._status = KindStatus()  # of every kind; replaced as a whole, so any thread may read it
        self._told: Mapping[str, tuple[Skipped, ...]] = {}
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, post: Post) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, args=(post,), name="manifests", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(_JOIN_S)

    def request_pod(self, pod: PodName, uid: str) -> None:
        """Nothing: the folder's Pods are posted anyway."""

    def status(self) -> Mapping[Kind, KindStatus]:
        """The same for every kind: the folder's."""
        return dict.fromkeys(self.kinds, self._status)

    def _run(self, post: Post) -> None:
        self._objects = self._folder.read() or {}
        self._report()
        post(list_objects(self._objects))
        while not self._stopping.is_set():
            for touched in self._wait_for_changes():
                self._look(post, touched)

    def _wait_for_changes(self) -> Iterator[frozenset[str]]:
        """Paths that changed, relative to the folder; an empty set now and then. Ends when the watch doesn't hold."""
        root = self._folder.root
        try:
            watched = root.stat().st_ino
            for events in watch(
                root,
                watch_filter=None,
                debounce=_LATEST_MS,
                step=_QUIET_MS,
                rust_timeout=self._look_ms,
                yield_on_timeout=True,
                stop_event=self._stopping,
                raise_interrupt=False,
            ):
                yield frozenset(os.path.relpath(path, root) for _, path in events)
                if root.stat().st_ino != watched:
                    return  # another folder has taken its place: watch that one
        except (OSError, RuntimeError) as error:  # RuntimeError: watchfiles' own, as for too many watches
            if not isinstance(error, FileNotFoundError):  # a folder that is gone is reported by the next look
                log.warning("manifests_unwatched", folder=str(root), error=str(error))
            self._stopping.wait(self._look_ms / 1000)
            yield frozenset()

    def _look(self, post: Post, touched: frozenset[str]) -> None:
        """Post what changed since the last look, if anything did."""
        started_s = time.monotonic()
        objects = self._folder.read(touched)
        self._report()
        if objects is not None:
            changes = diff_objects(self._objects, objects)
            self._objects = objects
            if changes:
                post(changes)
            log.info("manifests_read", changes=len(changes), took_s=round(time.monotonic() - started_s, 3))

    def _report(self) -> None:
        """Set the status, and log what is newly wrong or right with each file."""
        problems = self._folder.problems()
        error = "; ".join(problem.detail for problem in problems.get("", ()))
        self._status = KindStatus(complete=True, connected=not error, error=error)
        for path in problems.keys() | self._told.keys():
            now, told = problems.get(path, ()), self._told.get(path, ())
            if now == told:
                continue
            for problem in now:
                log.warning("manifest_broken", where=problem.object, why=problem.reason, detail=problem.detail)
            if not now:
                log.info("manifest_mended", file=path or str(self._folder.root))
        self._told = problems


def _list_files(root: Path) -> Iterator[tuple[str, _Stamp]]:
    """Manifest files of the folder and its subfolders. Hidden ones, and so most editors' temporary files, aren't."""
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = [name for name in subfolders if not name.startswith(".")]
        for name in names:
            if name.startswith(".") or PurePath(name).suffix not in SUFFIXES:
                continue
            path = Path(folder, name)
            try:
                stat = path.stat()
            except OSError:
                continue  # gone since the folder was listed, or a link to nowhere
            if S_ISREG(stat.st_mode):
                yield path.relative_to(root).as_posix(), _Stamp(stat.st_mtime_ns, stat.st_size, stat.st_ino)


def _read_manifest(root: Path, path: str) -> Manifest:
    shown = _show(path)
    try:
        with (root / path).open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        return refuse_file(shown, Wrong.UNREADABLE_FILE, error.strerror or str(error))
    if len(content) > MOST_BYTES:
        return refuse_file(shown, Wrong.TOO_LARGE, f"more than {MOST_BYTES >> 20} MiB")
    return parse_manifest(shown, content)


def _show(path: str) -> str:
    """The path as text that can be written anywhere; bytes that are no UTF-8 are kept visible."""
    return os.fsencode(path).decode(errors="backslashreplace")
