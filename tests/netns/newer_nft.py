"""Fetches Debian 13's nft (1.1.3) into a private folder, beside the installed one, by ordinary means of apt.

    python -m tests.netns.newer_nft

Tests that use it are skipped until this was run once; nothing is installed and no file of apt's own is touched.
"""

import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[2] / ".cache" / "newer-nft"
_ROOT = FOLDER / "root"
_SOURCE = "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {site} trixie main\n"
_PACKAGES = (
    *("nftables", "libnftables1", "libnftnl11", "libmnl0", "libjansson4", "libedit2", "libgmp10"),
    *("libxtables12", "libc6", "libtinfo6", "libbsd0", "libmd0"),
)


def newer_nft() -> list[str] | None:
    """The command of the newer nft, run by its own C library; None if it was not fetched."""
    loaders = sorted(_ROOT.glob("usr/lib/*/ld-linux*.so.*"))
    return [str(loaders[0]), "--library-path", str(loaders[0].parent), str(_ROOT / "usr/sbin/nft")] if loaders else None


def _find_site() -> str:
    """Where this host's own Debian packages come from, its security updates aside."""
    targets = ["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages", "Component: main"]
    sites = subprocess.check_output(targets, text=True).split()
    sites = [site for site in sites if not site.endswith("-security")]
    if not sites:
        sys.exit("newer_nft: apt knows no source of Debian's packages; run apt-get update first")
    return sites[0]


def main() -> None:
    """Fetch and unpack, if that wasn't done."""
    if newer_nft() is not None:
        return
    shutil.rmtree(FOLDER, ignore_errors=True)
    for part in ("lists/partial", "archives/partial", "packages"):
        (FOLDER / part).mkdir(parents=True)
    (FOLDER / "sources.list").write_text(_SOURCE.format(site=_find_site()))
    options = {
        "Dir::Etc::sourcelist": FOLDER / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State::lists": FOLDER / "lists",
        "Dir::Cache": FOLDER,
        "APT::Sandbox::User": "root",
    }
    apt = ["apt-get", *(word for name, value in options.items() for word in ("-o", f"{name}={value}"))]
    subprocess.run([*apt, "update"], check=True)
    packages = [f"{package}/trixie" for package in _PACKAGES]
    subprocess.run([*apt, "download", *packages], check=True, cwd=FOLDER / "packages")
    for package in (FOLDER / "packages").glob("*.deb"):
        subprocess.run(["dpkg-deb", "--extract", package, _ROOT], check=True)
    for part in ("lists", "archives", "packages"):
        shutil.rmtree(FOLDER / part)
    sys.stdout.write(f"{subprocess.check_output([*(newer_nft() or ()), '--version'], text=True)}")


if __name__ == "__main__":
    main()
