"""EFFECT: the images that the specs' pods run, under the tags that the suite asks for.

agnhost is itself; the others are stand-ins of Debian's tools, or agnhost under another name.
"""

import hashlib
import re
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from deploy.image.archive import Image, write_archive
from deploy.image.layers import Layer, pack_programs
from e2e.kind.images.roots import make_roots, recipe
from e2e.kind.steps import Steps

_SH = {"/usr/bin/sh": "bash"}  # specs take /bin/sh for one that knows [[ and arrays
_CERTIFICATE = ("localhost.crt", "localhost.key")
_PASSWD = b"root:x:0:0:root:/root:/bin/sh\nuser-defined-in-image:x:1000:1000::/home/user:/bin/sh\n"


class Programs(NamedTuple):
    """Our binaries that go into images."""

    agnhost: Path
    coredns: Path  # agnhost's image has one
    regression: Path
    porter: Path  # the folder in the source of agnhost that has the certificate of its TLS servers


class Layers(NamedTuple):
    """What the images are put together from."""

    toolbox: Layer
    agnhost: Layer
    regression: Layer
    shell: Layer


def plan_images(tags: Iterable[str], layers: Layers) -> list[Image]:
    """An image for each tag that is known here; the others are of specs that can't run, or that are on nodes."""
    tools = (layers.toolbox, layers.shell)
    images = []
    for tag in sorted(set(tags)):
        match re.split(r"[/:]", tag)[-2]:
            case "agnhost":
                images.append(Image(tag, (*tools, layers.agnhost), ("/agnhost",), ("pause",)))
            case "nginx":
                images.append(Image(tag, (*tools, layers.agnhost), ("/agnhost", "netexec", "--http-port=80")))
            case "busybox" | "glibc-dns-testing" | "jessie-dnsutils" | "distroless-iptables":
                images.append(Image(tag, tools, (), ("sh",)))
            case "regression-issue-74839":
                images.append(Image(tag, (layers.regression,), ("/regression-issue-74839",)))
    return images


def make_archive(suite: Path, programs: Programs, cache: Path, steps: Steps) -> Path:
    """The archive of all images, written once per version of the suite and recipe. DebianError."""
    digest = hashlib.sha256(f"{recipe()} {suite.parent.name} {[p.parent.name for p in programs]}".encode())
    digest.update(Path(__file__).read_bytes())
    archive = cache / f"suite-{digest.hexdigest()[:12]}.tar"
    if archive.exists():
        return archive
    listed = subprocess.run([str(suite), "--list-images"], check=True, capture_output=True, text=True).stdout
    roots = make_roots(cache, steps)
    with steps("images of the suite"), tempfile.TemporaryDirectory(dir=cache) as scratch:
        folder = Path(scratch)
        agnhost = {"/agnhost": programs.agnhost, "/coredns": programs.coredns}
        certificate = {f"/{name}": (programs.porter / name).read_bytes() for name in _CERTIFICATE}
        layers = Layers(
            roots.toolbox,
            pack_programs(folder / "agnhost", agnhost, {"/agnhost-2": "agnhost"}, certificate),
            pack_programs(folder / "regression", {"/regression-issue-74839": programs.regression}, {}),
            pack_programs(folder / "shell", {}, _SH, {"/etc/passwd": _PASSWD}),
        )
        write_archive(folder / "partial", plan_images(listed.split(), layers))
        (folder / "partial").replace(archive)
    return archive
