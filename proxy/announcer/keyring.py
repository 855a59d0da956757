"""EFFECT: the keys that sign messages: the files of a mounted Secret, read again when they change.

A file's name is its key's id, 1 to 255, and the highest is the newest. Two at a time are accepted, so a key is changed
by adding the next file and, once all members report that they know it, taking the old one away.
"""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import structlog
from watchfiles import watch

log = structlog.get_logger()

Keys = Mapping[int, bytes]
MOST_KEYS = 2
_LARGEST_ID = 255
SHORTEST_BYTES = 16
_LOOK_MS = 500  # a Secret takes up to a minute to get here


class KeyFileError(Exception):
    """The folder has no key that could be used."""


def read_keys(folder: Path) -> Keys:
    """The two newest keys by id; KeyFileError in plain words if there is none."""
    try:
        names = [path for path in folder.iterdir() if path.name.isascii() and path.name.isdecimal()]
        found = {int(path.name): path.read_bytes().strip() for path in names if 0 < int(path.name) <= _LARGEST_ID}
    except OSError as error:
        raise KeyFileError(f"{folder}: {error.strerror}") from error
    if not found:
        raise KeyFileError(f"{folder}: no key; its files are named 1, 2, .. as in `kubectl create secret generic`")
    for number, key in found.items():
        if len(key) < SHORTEST_BYTES:
            raise KeyFileError(f"{folder}/{number}: shorter than {SHORTEST_BYTES} bytes")
    return {number: found[number] for number in sorted(found)[-MOST_KEYS:]}


class KeyWatch:
    """Posts the keys after each change, from a thread of its own; those of a broken folder are kept."""

    def __init__(self, folder: Path, keys: Keys, post: Callable[[Keys], None]) -> None:
        self._folder = folder
        self._keys = keys
        self._post = post

    def start(self) -> None:
        """Begin to watch."""
        threading.Thread(target=self._run, name="keys", daemon=True).start()

    def _run(self) -> None:
        for _changes in watch(self._folder, step=_LOOK_MS, debounce=2 * _LOOK_MS, raise_interrupt=False):
            self.look()

    def look(self) -> None:
        """Read them again."""
        try:
            keys = read_keys(self._folder)
        except KeyFileError as error:
            log.warning("keys_kept", why=str(error))
            return
        if keys != self._keys:
            self._keys = keys
            self._post(keys)
