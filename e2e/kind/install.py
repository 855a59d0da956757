"""EFFECT: closeby put onto a cluster as its users do it: the image that deploy/ builds, and its overlay for kind."""

import os
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

from e2e.kind.cluster import Cluster
from e2e.kind.docker import CommandError
from e2e.kind.steps import Steps

_ROOT = Path(__file__).parents[2]
_DEPLOY = _ROOT / "deploy"
_SYSTEM = "--namespace=kube-system"
_LIMIT = "--timeout=300s"


def install_closeby(cluster: Cluster, steps: Steps) -> None:
    """Returns once closeby is ready on every node. CommandError."""
    with steps("closeby's image"):
        image = build_image()
    with steps("import of it into the nodes"):
        cluster.load(image)
    with steps("closeby on every node"):
        _apply_overlay(cluster, "kind")
        cluster.kubectl(_SYSTEM, "rollout", "status", "daemonset/closeby", _LIMIT)


def install_addresses(cluster: Cluster, steps: Steps) -> None:
    """Load-balancer addresses, where closeby is: returns once its controller and announcers are ready. CommandError."""
    with steps("definitions, and closeby's controller"):
        cluster.apply(_DEPLOY / "crds")
        cluster.apply(_DEPLOY / "controller")
        cluster.kubectl("--namespace=metallb-system", "rollout", "status", "deployment/closeby-controller", _LIMIT)
    with steps("closeby's announcer on every node"):
        key = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "closeby-announcer"}}
        text = yaml.safe_dump({**key, "stringData": {"1": secrets.token_hex(32)}})
        cluster.kubectl(_SYSTEM, "apply", "-f", "-", text=text)
        _apply_overlay(cluster, "kind-announcer")
        for name in ("closeby", "closeby-announcer"):
            cluster.kubectl(_SYSTEM, "rollout", "status", f"daemonset/{name}", _LIMIT)


def remove_addresses(cluster: Cluster) -> None:
    """Both are gone, and the pools with them; closeby itself stays, and goes on telling announcers. CommandError."""
    cluster.kubectl(_SYSTEM, "delete", "--ignore-not-found", "daemonset/closeby-announcer", "secret/closeby-announcer")
    cluster.kubectl("delete", "--ignore-not-found", "namespace/metallb-system")


def _apply_overlay(cluster: Cluster, name: str) -> None:
    with tempfile.TemporaryDirectory(prefix="closeby-overlay-") as scratch:
        overlay = Path(scratch).resolve()
        base = os.path.relpath(_DEPLOY / "overlays" / name, overlay)
        (overlay / "kustomization.yaml").write_text(render_overlay(base, cluster.control_plane))
        cluster.apply(overlay)


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
