"""EFFECT: lays out the image's three layers. Runs as root inside a Debian 12 base, by its Python and nothing else.

    python3.11 root.py SOURCE LAYERS

LAYERS gets the folders `system` (Python and what it links to), `packages` (what closeby needs, as constraints.txt pins
it) and `closeby`, the one that changes, with the versions for the labels in it. It ends with a look: every module can
be imported, every library is there.
"""

import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

PYTHON = "python3.11"
SITE = f"usr/local/lib/{PYTHON}/dist-packages"  # on sys.path of Debian's Python as it is
OWN = ("endpointslice", "proxy")
VERSIONS = "usr/local/share/closeby/versions.json"
WHEELS = Path("/opt/wheels")  # of a home-made base: then pip asks no index

# Debian's packages that are shipped, by the files they own.
DEBIAN = (
    f"{PYTHON}-minimal",
    f"lib{PYTHON}-minimal",
    f"lib{PYTHON}-stdlib",
    "libc6",
    "libgcc-s1",
    "libssl3",
    "libexpat1",
    "libffi8",
    "zlib1g",
    "libbz2-1.0",
    "liblzma5",
    "libuuid1",
    "libsqlite3-0",  # pyroute2 imports sqlite3
)
# Not shipped: for people at a shell, for other programs, for tests.
_DEBIAN_LEFT = (
    "usr/share/doc/*/[!c]*",  # the copyright files stay
    "usr/share/doc/*/changelog*",
    *(f"usr/share/{name}" for name in ("man", "locale", "lintian", "bug", "pixmaps", "applications", "binfmts")),
    "usr/lib/*/gconv",
    "usr/lib/*/perl-base",
    "etc/ld.so.conf.d",
)
_STDLIB_LEFT = (
    *("test", "idlelib", "tkinter", "turtledemo", "lib2to3", "ensurepip", "pydoc_data", "distutils"),
    *(
        f"lib-dynload/{name}.*"
        for name in ("_curses", "_curses_panel", "readline", "nis", "_dbm", "_crypt", "_tkinter")
    ),
    *(f"lib-dynload/{name}*" for name in ("_test", "_xx", "xx", "_ctypes_test")),
)
# Kubernetes' models, and its asyncio twin with the HTTP library that only that needs, are never used (DESIGN.md, D14).
_ASYNCIO_ONLY = (
    *("aiohttp", "aiohttp_retry", "aiosignal", "aiohappyeyeballs", "frozenlist", "multidict", "propcache", "yarl"),
    *("attr", "attrs"),
)
_PACKAGES_LEFT = (
    *("bin", "*/tests", "*/test", "**/*.pyi"),
    *("kubernetes/aio", "kubernetes/client/api/[!_]*", "kubernetes/client/models/[!_]*", "kubernetes/docs"),
    *(f"{name}{part}" for name in _ASYNCIO_ONLY for part in ("", "-*.dist-info")),
    "pygments/lexers/[!_]*",
)
_CAP_NET_ADMIN, _CAP_NET_RAW, _CAP_SYS_NICE = 12, 13, 23  # the proxy's right, and the announcer's two
_VFS_CAP_REVISION_2 = 0x02000000
_USERS = "root:x:0:0:root:/:/nonexistent\nnobody:x:65532:65532:nobody:/:/nonexistent\n"
_COMMAND = f"""#!/usr/bin/{PYTHON} -I
from proxy.__main__ import main

main()
"""
# Run in the finished tree: whatever is missing ends it.
_LOOK = """
import importlib, pkgutil, sys
import endpointslice, proxy
for package in (endpointslice, proxy):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
from kubernetes.client import Configuration
from kubernetes.client.rest import RESTClientObject
from kubernetes.config import load_kube_config
RESTClientObject(Configuration())
"""


def run(*command: str) -> str:
    """What the command printed; CalledProcessError if it fails."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def remove(folder: Path, patterns: Iterable[str]) -> None:
    """Take away what matches below the folder."""
    for pattern in patterns:
        for path in [*folder.glob(pattern)]:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


def owned_files(package: str) -> Iterator[Path]:
    """Files and links of an installed Debian package, where they really lie: /lib is a link to /usr/lib."""
    for line in run("dpkg-query", "-L", package).splitlines():
        path = Path(line)
        if path.parent != Path("/") and (path.is_symlink() or path.is_file()):
            yield path.parent.resolve() / path.name


def lay_system(layer: Path) -> None:
    """Debian's files, those that every image has, and the rights on the network for whoever may have them."""
    for name in ("bin", "lib", "lib64", "sbin"):
        (layer / "usr" / name).mkdir(parents=True)
        (layer / name).symlink_to(f"usr/{name}")
    for package in DEBIAN:
        for path in owned_files(package):
            target = layer / path.relative_to("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target, follow_symlinks=False)
        status = layer / "var/lib/dpkg/status.d" / package  # where scanners of images look
        status.parent.mkdir(parents=True, exist_ok=True)
        status.write_text(run("dpkg-query", "-s", package))
    remove(layer, _DEBIAN_LEFT)
    remove(layer / "usr/lib" / PYTHON, _STDLIB_LEFT)
    for name, mode in (("tmp", 0o1777), ("run/closeby", 0o1777), ("etc", 0o755)):
        (layer / name).mkdir(parents=True, exist_ok=True)
        (layer / name).chmod(mode)
    shutil.copy2("/usr/lib/os-release", layer / "etc/os-release")
    (layer / "etc/passwd").write_text(_USERS)
    (layer / "etc/group").write_text("root:x:0:\nnobody:x:65532:\n")
    (layer / "etc/nsswitch.conf").write_text("hosts: files dns\n")
    compile_python(layer, f"usr/lib/{PYTHON}")
    permit_network(layer / "usr/bin" / PYTHON)


def permit_network(file: Path) -> None:
    """Let a user who isn't root keep these over execve, of which the container has few or none (capabilities(7)).

    Permitted, not effective: with the effective bit the kernel refuses to run the file at all without all, and
    `closeby plan` needs none. `proxy/privilege.py` and `proxy/announcer/rights.py` make theirs effective.
    """
    permitted = 1 << _CAP_NET_ADMIN | 1 << _CAP_NET_RAW | 1 << _CAP_SYS_NICE
    words = (_VFS_CAP_REVISION_2, permitted, 0, 0, 0)
    os.setxattr(file, "security.capability", struct.pack("<5I", *words))


def lay_packages(source: Path, packages: Path, own: Path) -> None:
    """By pip: closeby, split into what it needs and itself."""
    site = packages / SITE
    offline = ("--no-index", "--find-links", str(WHEELS)) if WHEELS.is_dir() else ()
    # By the environment, since it holds for what builds closeby, too; the flag does not.
    pins = f"PIP_CONSTRAINT={source / 'constraints.txt'}"
    run(
        *(
            "env",
            pins,
            PYTHON,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--root-user-action=ignore",
            "--disable-pip-version-check",
        ),
        *("--no-compile", "--break-system-packages", *offline, "--target", str(site)),
        str(source),
    )
    remove(site, _PACKAGES_LEFT)
    (own / SITE).mkdir(parents=True)
    for path in [*site.iterdir()]:
        if path.name in OWN or path.name.startswith("closeby-"):
            path.rename(own / SITE / path.name)
    command = own / "usr/local/bin/closeby"
    command.parent.mkdir(parents=True)
    command.write_text(_COMMAND)
    command.chmod(0o755)
    compile_python(packages, SITE)
    compile_python(own, SITE)


def compile_python(layer: Path, folder: str) -> None:
    """The root file system is read-only where it runs, so what isn't compiled now would be at each start."""
    run(
        *(PYTHON, "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash"),
        *("-s", str(layer), "-p", "/", str(layer / folder)),
    )


def look(layers: Iterable[Path], whole: Path) -> None:
    """Merge the layers and run them: CalledProcessError if a module or a library is missing."""
    for layer in layers:
        shutil.copytree(layer, whole, symlinks=True, dirs_exist_ok=True)
    run("chroot", str(whole), f"/usr/bin/{PYTHON}", "-I", "-W", "ignore", "-c", _LOOK)
    run("chroot", str(whole), "/usr/local/bin/closeby", "version")
    loader = next(path for path in ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1") if Path(path).exists())
    for library in whole.rglob("*.so"):
        inside = f"/{library.relative_to(whole)}"
        if "not found" in run("chroot", str(whole), loader, "--list", inside):
            raise SystemExit(f"{inside} needs a library that isn't there; see `ldd`")
    shutil.rmtree(whole)


def read_versions(site: Path) -> dict[str, str]:
    """What image labels tell, by label."""
    wheels = sorted(path.name.removesuffix(".dist-info") for path in site.glob("*.dist-info"))
    return {
        "io.closeby.debian": Path("/etc/debian_version").read_text().strip(),
        "io.closeby.python": sys.version.split()[0],
        "io.closeby.packages": " ".join(wheels),
        "io.closeby.libnftables": "none: the base ruleset ships compiled",
    }


def main(source: Path, layers: Path) -> None:
    """Make the layers."""
    system, packages, own = (layers / name for name in ("system", "packages", "closeby"))
    print("    Python and what it links to", flush=True)
    lay_system(system)
    print("    closeby and what it needs", flush=True)
    lay_packages(source, packages, own)
    (own / VERSIONS).parent.mkdir(parents=True)
    (own / VERSIONS).write_text(json.dumps(read_versions(packages / SITE)))
    print("    a look at the whole", flush=True)
    look((system, packages, own), layers / "whole")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
