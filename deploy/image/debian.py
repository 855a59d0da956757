"""EFFECT: root file systems of Debian 12, made by debootstrap from the mirror that this host's apt uses."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from deploy.image.archive import PATH

SUITE = "bookworm"  # its systemd, 252, still boots on cgroup v1
_NO_SERVICES = "#!/bin/sh\nexit 101\n"  # policy-rc.d: packages must not start what they install
_SHOWN_LINES = 15
# What runs in it leaves no process and no mount: debootstrap mounts /proc in the root, and forgets it when interrupted.
_ENDS_WITH_US = ("unshare", "--mount", "--pid", "--fork", "--kill-child")


class DebianError(Exception):
    """A root file system can't be made; the text is the end of what the program said."""


def make_root(root: Path, packages: Sequence[str]) -> None:
    """A root file system: the smallest, and these packages with what they need. DebianError."""
    if shutil.which("debootstrap") is None:
        raise DebianError("debootstrap is missing: apt-get install debootstrap")
    include = f"--include={','.join(packages)}"
    run_quietly(*_ENDS_WITH_US, "debootstrap", "--variant=minbase", include, SUITE, str(root), *_find_mirror())


def add_packages(root: Path, packages: Sequence[str]) -> None:
    """Install more, in a process namespace of its own: nothing of it is left running. DebianError."""
    policy = root / "usr/sbin/policy-rc.d"
    policy.write_text(_NO_SERVICES)
    policy.chmod(0o755)
    inside = [*_ENDS_WITH_US, "--mount-proc", "--root", str(root)]
    apt = ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", *packages]
    run_quietly(*inside, "env", "DEBIAN_FRONTEND=noninteractive", f"PATH={PATH}", *apt)
    policy.unlink()


def run_quietly(*command: str, cwd: str | None = None) -> None:
    """Run a command that takes no input. DebianError, with the end of what it said, if it fails."""
    done = subprocess.run(
        command,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        said = "\n".join(done.stdout.splitlines()[-_SHOWN_LINES:])
        raise DebianError(f"{command[0]} ended with {done.returncode}:\n{said}")


def _find_mirror() -> list[str]:
    """Where this host's own Debian packages come from, its security updates aside; elsewhere debootstrap knows one."""
    if shutil.which("apt-get") is None:
        return []
    targets = ["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages", "Component: main"]
    sites = subprocess.run(targets, capture_output=True, text=True, check=False).stdout.split()
    return [site for site in sites if site.rstrip("/").endswith("/debian")][:1]
