"""EFFECT: two root file systems of Debian, cached.

The toolbox is what programs in containers want around them: a shell, nft, iptables, and the network tools that
Kubernetes' own specs call. The node adds systemd and containerd to it. One debootstrap makes both.
"""

import hashlib
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from deploy.image.debian import SUITE, DebianError, add_packages, make_root, run_quietly
from deploy.image.layers import Layer, pack_tar, read_layer
from e2e.kind.steps import Steps

_TOOLBOX = (
    *("bind9-dnsutils", "conntrack", "curl", "iperf", "iproute2", "iptables", "iputils-ping"),
    *("netcat-openbsd", "nftables", "procps", "wget"),
)
_NODE = (
    *("ca-certificates", "containerd", "containernetworking-plugins", "e2fsprogs", "ethtool", "jq", "kmod", "mount"),
    *("runc", "socat", "systemd", "util-linux"),
)
_LEFT_OUT = (
    *("./var/cache/apt/*", "./var/lib/apt/lists/*"),
    *("./usr/share/doc/*", "./usr/share/man/*", "./usr/share/locale/*"),
)
_NODE_TAR = "node.tar"  # written last, so there with all the others


class Roots(NamedTuple):
    """Both, cached."""

    toolbox: Layer
    node: Path  # a tar, not compressed: `docker import` reads it once


def recipe() -> str:
    """What the roots are made of, for the names of what is cached."""
    return hashlib.sha256(repr((SUITE, _TOOLBOX, _NODE, _LEFT_OUT)).encode()).hexdigest()[:12]


def make_roots(cache: Path, steps: Steps) -> Roots:
    """Both root file systems, made if the cache has none; a minute and 600 MB for a moment. DebianError."""
    folder = _folder(cache)
    toolbox, named, node = folder / "toolbox.tar.gz", folder / "toolbox.diff-id", folder / _NODE_TAR
    if not node.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            root, partial = Path(scratch) / "root", Path(scratch) / "node.tar"
            with steps(f"Debian {SUITE} by debootstrap"):
                make_root(root, _TOOLBOX)
            with steps("toolbox layer"):
                named.write_text(_pack(root, toolbox).diff_id)
            with steps("systemd and containerd"):
                add_packages(root, _NODE)
            with steps("node's root file system"):
                run_quietly("tar", *_tar_flags(root), "-cf", str(partial), ".")
            partial.replace(node)
    return Roots(read_layer(toolbox, named.read_text()), node)


def _folder(cache: Path) -> Path:
    return cache / f"debian-{recipe()}"


def _pack(root: Path, path: Path) -> Layer:
    with subprocess.Popen(["tar", *_tar_flags(root), "-cf", "-", "."], stdout=subprocess.PIPE) as tar:
        assert tar.stdout
        layer = pack_tar(path, tar.stdout)
    if tar.returncode != 0:
        raise DebianError(f"tar ended with {tar.returncode}")
    return layer


def _tar_flags(root: Path) -> list[str]:
    return ["-C", str(root), "--numeric-owner", *(f"--exclude={pattern}" for pattern in _LEFT_OUT)]
