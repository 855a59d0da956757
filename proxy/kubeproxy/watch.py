"""EFFECT: notices that the configuration file changed, so that the process can be started anew by whoever runs it."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

POLL_S = 1.0


class ConfigFileWatch:
    """Looks at the file once a second, by its path: a ConfigMap's update swaps a link above it."""

    def __init__(self, path: Path, content: bytes, end: Callable[[str], None], poll_s: float = POLL_S) -> None:
        """`content` is what is in force; `end` is called once, with a sentence, when the file holds something else."""
        self._path = path
        self._content = content
        self._end = end
        self._poll_s = poll_s
        self._thread = threading.Thread(target=self._run, name="config-file", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def _run(self) -> None:
        while not self.changed():
            time.sleep(self._poll_s)
        self._end(f"--config: {self._path} changed; start again to take it in")

    def changed(self) -> bool:
        """Whether the file holds something else; one that can't be read is about to be written."""
        try:
            return self._path.read_bytes() != self._content
        except OSError:
            return False
