"""EFFECT: a Debian 12 base by debootstrap, with the wheels that the image needs, where none can be pulled.

It holds all that `root.py` takes, so that building in it needs no network. Kept in closeby's cache folder; made anew
when the wheels that are wanted change. Two programs may make it at once: the first to end gives it to both.
"""

import hashlib
import os
import platform
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

from deploy.image.debian import SUITE, make_root, run_quietly
from deploy.image.root import PYTHON, WHEELS

ROOT = Path(__file__).parents[2]
_BUILDERS = ("setuptools", "wheel")  # as pyproject.toml's build-system wants, and as constraints.txt pins them
_GLIBC_MINORS = range(36, 16, -1)  # Debian 12 has 2.36; wheels name what they were built on

Say = Callable[[str], None]


def cache_folder() -> Path:
    """`$CLOSEBY_CACHE`, or `~/.cache/closeby`."""
    return Path(os.environ.get("CLOSEBY_CACHE") or Path.home() / ".cache" / "closeby")


def requirements() -> list[str]:
    """What pip needs to install closeby: what it depends on, and what builds it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [*project["dependencies"], *_BUILDERS]


def make_base(say: Say) -> Path:
    """The base's folder, made first if need be (a minute, as root). DebianError."""
    folder = cache_folder() / "image-base"
    key = _digest([SUITE, PYTHON, *requirements()])
    pinned = read_pins((ROOT / "constraints.txt").read_text())
    for there in sorted(folder.glob(f"{key}-*")):
        if fits(_list_wheels(there), pinned):
            return there
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix="making-") as name:
        made = Path(name) / "base"
        say(f"Debian {SUITE} by debootstrap")
        make_root(made, (PYTHON, "python3-pip"))
        say("the wheels that constraints.txt pins")
        download_wheels(made / WHEELS.relative_to("/"))
        shutil.rmtree(made / "var/cache/apt", ignore_errors=True)
        for part in ("src", "layers"):
            (made / part).mkdir()
        return keep(made, folder / f"{key}-{_digest(_list_wheels(made))}")


def keep(made: Path, kept: Path) -> Path:
    """The folder under its lasting name; where somebody was first with that, theirs."""
    try:
        made.rename(kept)
    except OSError:
        if not kept.is_dir():
            raise
    return kept


def read_pins(constraints: str) -> dict[str, str]:
    """Version by name, of lines such as `rich==15.0.0`."""
    pins = (Requirement(line) for line in constraints.splitlines() if line.strip())
    return {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in pins}


def fits(wheels: Iterable[str], pinned: Mapping[str, str]) -> bool:
    """Whether these files are of the pinned versions, where one is pinned. Pins of other packages don't matter."""
    found = (parse_wheel_filename(wheel)[:2] for wheel in wheels)
    return all(pinned.get(name, str(version)) == str(version) for name, version in found)


def _list_wheels(base: Path) -> list[str]:
    return sorted(path.name for path in (base / WHEELS.relative_to("/")).glob("*.whl"))


def _digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]


def download_wheels(folder: Path) -> None:
    """Wheels for Debian 12's Python, whatever Python runs this."""
    machine = platform.machine()
    platforms = [f"manylinux_2_{minor}_{machine}" for minor in _GLIBC_MINORS] + [f"manylinux2014_{machine}"]
    with tempfile.TemporaryDirectory() as home:
        run_quietly(
            *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--dest", str(folder)),
            *("--only-binary=:all:", "--implementation", "cp", "--python-version", PYTHON.removeprefix("python")),
            *(word for name in platforms for word in ("--platform", name)),
            *("--constraint", str(ROOT / "constraints.txt"), *requirements()),
            cwd=home,
        )
