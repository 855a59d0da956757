"""EFFECT: `make image`: closeby's image as a file, and in docker where a daemon runs.

    python -m deploy.image.build [--tag closeby:0.1.0] [--output FILE] [--base IMAGE] [--without-docker]

With a docker daemon: docker builds deploy/image/Dockerfile, on the published Debian or, where it can't be pulled, on a
base made here. Without one: the same steps in a chroot, and the file is written here; that takes root. The last line
printed is the file's path.
"""

import datetime as dt
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path

from deploy.image.archive import Image, architecture, write_archive
from deploy.image.base import ROOT, make_base
from deploy.image.debian import DebianError
from deploy.image.layers import pack_folder
from deploy.image.root import PYTHON, VERSIONS

PUBLISHED = "debian:bookworm-slim"
_LAYERS = ("system", "packages", "closeby")
_SOURCES = ("pyproject.toml", "constraints.txt", "README.md", "LICENSE", "endpointslice", "proxy")
_FOR_PYTHON = shutil.ignore_patterns("__pycache__", "*.pyc")
_ENTRYPOINT, _COMMAND, _USER = ("/usr/local/bin/closeby",), ("--help",), "65532:65532"  # as in the Dockerfile
# In a mount namespace of its own: nothing stays mounted, whatever ends it. And in a network namespace: nothing is
# fetched.
_IN_CHROOT = """
set -e
mount -t overlay overlay -o lowerdir="$1",upperdir="$2/upper",workdir="$2/work" "$2/base"
mount --bind "$2/src" "$2/base/src"
mount --bind "$2/layers" "$2/base/layers"
mount -t proc proc "$2/base/proc"
exec chroot "$2/base" /usr/bin/python3.11 /src/root.py /src /layers
"""


class BuildError(Exception):
    """The image can't be built here."""


def say(text: str) -> None:
    """One step, for whoever waits."""
    print(f"==> {text}", file=sys.stderr, flush=True)


def version() -> str:
    """closeby's, of pyproject.toml."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])


def build_image(tag: str, output: Path, base: str = "", *, with_docker: bool = True) -> Path:
    """`output`, an image file; in docker as well where a daemon runs.

    BuildError or DebianError says what is in the way.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    if with_docker and _works("docker", "info"):
        _build_by_docker(tag, output, base)
    elif base:
        raise BuildError("--base names a docker image, so it takes a docker daemon")
    else:
        _build_by_chroot(tag, output)
    say(f"{tag}: {output.stat().st_size / 1e6:.0f} MB")
    return output


def _build_by_docker(tag: str, output: Path, base: str) -> None:
    base = base or _choose_base()
    say(f"docker build on {base}")
    build = ("docker", "build", "-t", tag, "--build-arg", f"BASE={base}", "-f", "deploy/image/Dockerfile")
    _run(*build, ".")
    reading = f"print(open('/{VERSIONS}').read())"
    said = subprocess.run(
        ["docker", "run", "--rm", "--network=none", f"--entrypoint=/usr/bin/{PYTHON}", tag, "-c", reading],
        stdout=subprocess.PIPE,
        check=True,
    ).stdout
    labels = [word for name, value in _labels(json.loads(said)).items() for word in ("--label", f"{name}={value}")]
    _run(*build, *labels, ".")  # all but the labels is there already
    _run("docker", "save", "-o", str(output), tag)


def _choose_base() -> str:
    """The published base, or one that is made here and imported."""
    if _works("docker", "image", "inspect", PUBLISHED) or _works("docker", "pull", "--quiet", PUBLISHED):
        return PUBLISHED
    say(f"{PUBLISHED} can't be pulled: a base of our own")
    folder = make_base(say)
    name = f"closeby-base:{folder.name}"
    if not _works("docker", "image", "inspect", name):
        say(f"docker import of {name}")
        with subprocess.Popen(["tar", "-C", str(folder), "-c", "."], stdout=subprocess.PIPE) as tar:
            subprocess.run(["docker", "import", "-", name], stdin=tar.stdout, stdout=sys.stderr, check=True)
    return name


def _build_by_chroot(tag: str, output: Path) -> None:
    if os.geteuid() != 0:
        raise BuildError("no docker daemon answers, and without one it takes root (a chroot)")
    base = make_base(say)
    with tempfile.TemporaryDirectory(prefix="closeby-image-") as name:
        work = Path(name)
        for part in ("src", "layers", "upper", "work", "base"):
            (work / part).mkdir()
        for source in _SOURCES:
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, work / "src" / source, ignore=_FOR_PYTHON)
            else:
                shutil.copy2(ROOT / source, work / "src")
        shutil.copy2(Path(__file__).with_name("root.py"), work / "src")
        say("the layers, in a chroot")
        _run("unshare", "--mount", "--net", "sh", "-c", _IN_CHROOT, "sh", str(base), str(work))
        say("the image file")
        layers = tuple(pack_folder(work / f"{part}.tar.gz", work / "layers" / part, _time_s()) for part in _LAYERS)
        labels = _labels(json.loads((work / "layers" / "closeby" / VERSIONS).read_text()))
        write_archive(output, [Image(tag, layers, _ENTRYPOINT, _COMMAND, _USER, labels, _created())])


def _labels(versions: Mapping[str, str]) -> dict[str, str]:
    return {
        "org.opencontainers.image.title": "closeby",
        "org.opencontainers.image.description": "A node's service proxy for Kubernetes",
        "org.opencontainers.image.version": version(),
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.revision": _git("rev-parse", "HEAD"),
        "org.opencontainers.image.created": _created(),
        **versions,
    }


def _time_s() -> int:
    """Of the source, so that the same source makes the same image: SOURCE_DATE_EPOCH, or the commit's."""
    return int(os.environ.get("SOURCE_DATE_EPOCH") or _git("log", "-1", "--format=%ct") or 0)


def _created() -> str:
    return dt.datetime.fromtimestamp(_time_s(), dt.UTC).isoformat().replace("+00:00", "Z")


def _git(*args: str) -> str:
    """What git says; "" outside of a clone."""
    done = subprocess.run(["git", "-C", str(ROOT), *args], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _works(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def _run(*command: str) -> None:
    """Its output goes to stderr; BuildError if it fails."""
    if subprocess.run(command, cwd=ROOT, stdout=sys.stderr, check=False).returncode != 0:
        raise BuildError(f"{command[0]} failed; its message is above")


def _read_arguments() -> Namespace:
    parser = ArgumentParser(prog="python -m deploy.image.build", description="Build closeby's container image.")
    parser.add_argument("--tag", default=f"closeby:{version()}")
    parser.add_argument("--output", type=Path, help="the image file; build/closeby-VERSION-ARCHITECTURE.tar by default")
    parser.add_argument("--base", default="", help="a Debian 12 image to build in")
    parser.add_argument("--without-docker", action="store_true", help="even if a docker daemon answers")
    return parser.parse_args()


def main() -> int:
    """Build and print the path; 1 with plain words if it can't be built."""
    asked = _read_arguments()
    output = asked.output or ROOT / "build" / f"closeby-{version()}-{architecture()}.tar"
    try:
        print(build_image(asked.tag, output.resolve(), asked.base, with_docker=not asked.without_docker))
    except (BuildError, DebianError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
