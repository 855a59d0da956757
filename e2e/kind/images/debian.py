"""EFFECT: two root file systems of Debian 12, made by debootstrap from the mirror that this host's apt uses.

The toolbox is what programs in containers want around them: a shell, nft, iptables, and the network tools that
Kubernetes' own specs call. The node adds systemd and containerd to it. One debootstrap makes both.
"""

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from e2e.kind.images.archive import PATH, Layer, pack_tar
from e2e.kind.steps import Steps

_SUITE = "bookworm"  # its systemd, 252, still boots on cgroup v1
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
_NO_SERVICES = "#!/bin/sh\nexit 101\n"  # policy-rc.d: packages must not start what they install


class DebianError(Exception):
    """A root file system can't be made; the text is the end of what the program said."""


class Roots(NamedTuple):
    """Both, cached."""

    toolbox: Layer
    node: Path  # a tar, not compressed: `docker import` reads it once


def recipe() -> str:
    """What the roots are made of, for the names of what is cached."""
    return hashlib.sha256(repr((_SUITE, _TOOLBOX, _NODE, _LEFT_OUT)).encode()).hexdigest()[:12]


def make_roots(cache: Path, steps: Steps) -> Roots:
    """Both root file systems, made if the cache has none; a minute and 600 MB for a moment. DebianError."""
    folder = _folder(cache)
    toolbox, named, node = folder / "toolbox.tar.gz", folder / "toolbox.diff-id", folder / _NODE_TAR
    if not node.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            root, partial = Path(scratch) / "root", Path(scratch) / "node.tar"
            with steps(f"Debian {_SUITE} by debootstrap"):
                _debootstrap(root)
            with steps("toolbox layer"):
                named.write_text(_pack(root, toolbox).diff_id)
            with steps("systemd and containerd"):
                _install(root, _NODE)
            with steps("node's root file system"):
                _run(["tar", *_tar_flags(root), "-cf", str(partial), "."])
            partial.replace(node)
    return Roots(Layer(toolbox, named.read_text()), node)


def _folder(cache: Path) -> Path:
    return cache / f"debian-{recipe()}"


def _debootstrap(root: Path) -> None:
    if shutil.which("debootstrap") is None:
        raise DebianError("debootstrap is missing: `.ci/setup kind` installs it")
    include = f"--include={','.join(_TOOLBOX)}"
    _run(["debootstrap", "--variant=minbase", include, _SUITE, str(root), *_find_mirror()])


def _install(root: Path, packages: Sequence[str]) -> None:
    """Add packages to the root, in a process namespace of its own: nothing of it is left running."""
    policy = root / "usr/sbin/policy-rc.d"
    policy.write_text(_NO_SERVICES)
    policy.chmod(0o755)
    inside = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--root", str(root)]
    apt = ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", *packages]
    _run([*inside, "env", "DEBIAN_FRONTEND=noninteractive", f"PATH={PATH}", *apt])
    policy.unlink()


def _pack(root: Path, path: Path) -> Layer:
    with subprocess.Popen(["tar", *_tar_flags(root), "-cf", "-", "."], stdout=subprocess.PIPE) as tar:
        assert tar.stdout
        layer = pack_tar(tar.stdout, path)
    if tar.returncode != 0:
        raise DebianError(f"tar ended with {tar.returncode}")
    return layer


def _tar_flags(root: Path) -> list[str]:
    return ["-C", str(root), "--numeric-owner", *(f"--exclude={pattern}" for pattern in _LEFT_OUT)]


def _find_mirror() -> list[str]:
    """Where this host's own Debian packages come from, its security updates aside; elsewhere debootstrap knows one."""
    targets = ["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages", "Component: main"]
    sites = subprocess.run(targets, capture_output=True, text=True, check=False).stdout.split()
    return [site for site in sites if site.rstrip("/").endswith("/debian")][:1]


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stdout + done.stderr).splitlines()[-15:]
        raise DebianError(f"{command[0]} ended with {done.returncode}:\n" + "\n".join(said))
