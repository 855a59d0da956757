"""EFFECT: a Debian 12 base by debootstrap, with the wheels that the image needs, where none can be pulled.

It holds all that `root.py` takes, so that building in it needs no network. Kept in closeby's cache folder; made anew
when the wheels that are wanted change.
"""

import hashlib
import os
import platform
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path

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
    wanted = "\n".join([SUITE, PYTHON, *requirements(), (ROOT / "constraints.txt").read_text()])
    folder = cache_folder() / "image-base" / hashlib.sha256(wanted.encode()).hexdigest()[:12]
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="making-") as name:
        made = Path(name) / "base"
        say(f"Debian {SUITE} by debootstrap")
        make_root(made, (PYTHON, "python3-pip"))
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
        run_quietly(
            *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--dest", str(folder)),
            *("--only-binary=:all:", "--implementation", "cp", "--python-version", PYTHON.removeprefix("python")),
            *(word for name in platforms for word in ("--platform", name)),
            *("--constraint", str(ROOT / "constraints.txt"), *requirements()),
            cwd=home,
        )
