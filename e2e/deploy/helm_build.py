"""EFFECT: helm, built once from its Go module: `python -m e2e.deploy.helm_build` prints its path.

A module of its own: in one with Kubernetes it would lift the versions that Kubernetes was released with.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).with_name("helm")
_PACKAGE = "helm.sh/helm/v3/cmd/helm"


def helm_path() -> Path:
    """Where the built helm lies, or will: in `$CLOSEBY_CACHE` (default `~/.cache/closeby`), by what go.sum says."""
    cache = Path(os.environ.get("CLOSEBY_CACHE") or Path.home() / ".cache" / "closeby")
    return cache / "helm" / hashlib.sha256((SOURCE / "go.sum").read_bytes()).hexdigest()[:12] / "helm"


def build_helm() -> Path:
    """The helm, built if it isn't there, in minutes. CalledProcessError; FileNotFoundError without Go."""
    helm = helm_path()
    if not helm.exists():
        go = shutil.which("go") or str(Path(sys.executable).with_name("go"))
        helm.parent.mkdir(parents=True, exist_ok=True)
        partial = helm.with_name(f"helm.{os.getpid()}")
        flags = ("-trimpath", "-mod=readonly", "-ldflags", "-s -w")
        environment = {**os.environ, "CGO_ENABLED": "0"}
        subprocess.run([go, "build", *flags, "-o", str(partial), _PACKAGE], cwd=SOURCE, env=environment, check=True)
        partial.replace(helm)
    return helm


if __name__ == "__main__":
    print("==> helm, to test the chart (the first time: minutes)", file=sys.stderr)
    print(build_helm())
