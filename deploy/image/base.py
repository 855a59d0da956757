"""EFFECT: a Debian 12 base by debootstrap, with the wheels that the image needs, where none can be pulled.

It holds all that `root.py` takes, so that building in it needs no network. Kept in closeby's cache folder; made anew
when the wheels that are wanted change.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path

from deploy.image.root import PYTHON, WHEELS

ROOT = Path(__file__).parents[2]
SUITE = "bookworm"
_BUILDER = "setuptools>=68"  # pyproject.toml's build-system
_GLIBC_MINORS = range(36, 16, -1)  # Debian 12 has 2.36; wheels name what they were built on

Say = Callable[[str], None]


class BaseError(Exception):
    """The base can't be made here."""


def cache_folder() -> Path:
    """`$CLOSEBY_CACHE`, or `~/.cache/closeby`."""
    return Path(os.environ.get("CLOSEBY_CACHE") or Path.home() / ".cache" / "closeby")


def requirements() -> list[str]:
    """What pip needs to install closeby: what it depends on, and what builds it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [*project["dependencies"], _BUILDER, "wheel"]


def make_base(say: Say) -> Path:
    """The base's folder, made first if need be (a minute, as root)."""
    wanted = "\n".join([SUITE, PYTHON, *requirements(), (ROOT / "constraints.txt").read_text()])
    folder = cache_folder() / "image-base" / hashlib.sha256(wanted.encode()).hexdigest()[:12]
    if folder.is_dir():
        return folder
    if shutil.which("debootstrap") is None:
        raise BaseError("no base image can be pulled and there is no debootstrap: apt-get install debootstrap")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="making-") as name:
        made = Path(name) / "base"
        say(f"Debian {SUITE} by debootstrap")
        include = f"--include={PYTHON},python3-pip"
        _run("debootstrap", "--variant=minbase", include, SUITE, str(made))
        say("the wheels that constraints.txt pins")
        download_wheels(made / WHEELS.relative_to("/"))
        shutil.rmtree(made / "var/cache/apt", ignore_errors=True)
        for part in ("src", "layers"):
            (made / part).mkdir()
        made.rename(folder)
    return folder


def download_wheels(folder: Path) -> None:
    """Wheels for Debian 12's Python, whatever Python runs this."""
    machine = platform.machine()
    platforms = [f"manylinux_2_{minor}_{machine}" for minor in _GLIBC_MINORS] + [f"manylinux2014_{machine}"]
    with tempfile.TemporaryDirectory() as home:
        _run(
            *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--dest", str(folder)),
            *("--only-binary=:all:", "--implementation", "cp", "--python-version", PYTHON.removeprefix("python")),
            *(word for name in platforms for word in ("--platform", name)),
            *("--constraint", str(ROOT / "constraints.txt"), *requirements()),
            cwd=home,
        )


def _run(*command: str, cwd: str | None = None) -> None:
    """BaseError with the end of what it said if the command fails."""
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise BaseError(f"{command[0]} failed:\n" + "\n".join(done.stdout.splitlines()[-15:]))
