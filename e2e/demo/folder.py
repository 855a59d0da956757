"""EFFECT: the folder of manifests, written the way tools and people write files."""

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

Write = Callable[[Path, str], None]


class Folder:
    """The folder; remembers what it wrote, so that only what differs is written."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._written: dict[str, str] = {}
        root.mkdir()

    def write(self, files: Mapping[str, str], write: Write) -> dict[str, float]:
        """Write the files that differ, in their order; when each write began, monotonic seconds."""
        began: dict[str, float] = {}
        for name, text in files.items():
            if self._written.get(name) != text:
                began[name] = time.monotonic()
                write(self.root / name, text)
                self._written[name] = text
        return began


def replace_file(path: Path, text: str) -> None:
    """As tools do: the whole new file under another name, then renamed over the old one."""
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text)
    partial.replace(path)


def edit_file(path: Path, text: str) -> None:
    """As vi does: a swap file, the old file moved aside as a backup, a new one written in its place, no backup left.

    For a moment there is no file, and then one that isn't whole.
    """
    swap = path.with_name(f".{path.name}.swp")
    swap.write_text("swap")
    backup = path.with_name(f"{path.name}~")
    path.replace(backup)
    half = len(text) // 2
    with path.open("w") as file:
        file.write(text[:half])
        file.flush()
        file.write(text[half:])
        file.flush()
        os.fsync(file.fileno())
    backup.unlink()
    swap.unlink()
