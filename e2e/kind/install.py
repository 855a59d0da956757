"""EFFECT: closeby put onto a cluster as its users do it: the image that deploy/ builds, and its overlay for kind."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

from e2e.kind.cluster import Cluster
from e2e.kind.docker import CommandError
from e2e.kind.steps import Steps

_ROOT = Path(__file__).parents[2]
_OVERLAY = _ROOT / "deploy" / "overlays" / "kind"
_DAEMON_SET = "daemonset/closeby"
_LIMIT = "--timeout=300s"


def install_closeby(cluster: Cluster, steps: Steps) -> None:
    """Returns once closeby is ready on every node. CommandError."""
    with steps("closeby's image"):
        image = build_image()
    with steps("import of it into the nodes"):
        cluster.load(image)
    with steps("closeby on every node"), tempfile.TemporaryDirectory(prefix="closeby-overlay-") as scratch:
        overlay = Path(scratch).resolve()
        text = render_overlay(os.path.relpath(_OVERLAY, overlay), cluster.control_plane)
        (overlay / "kustomization.yaml").write_text(text)
        cluster.apply(overlay)
        cluster.kubectl("--namespace=kube-system", "rollout", "status", _DAEMON_SET, _LIMIT)


def render_overlay(base: str, control_plane: str) -> str:
    """A kustomization of the base, a relative path, for the cluster whose API server is on that node.

    No ClusterIP works before closeby does, the API server's own included; the node's name does.
    """
    return yaml.safe_dump(
        {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "namespace": "kube-system",
            "resources": [base],
            "configMapGenerator": [
                {"name": "closeby", "behavior": "merge", "literals": [f"apiServer=https://{control_plane}:6443"]}
            ],
        }
    )


def build_image() -> Path:
    """The image of closeby as a file, under the tag that the manifests of deploy/ name. CommandError."""
    done = subprocess.run(
        [sys.executable, "-m", "deploy.image.build"], cwd=_ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise CommandError(f"closeby's image can't be built:\n{done.stderr}")
    return Path(done.stdout.splitlines()[-1])
