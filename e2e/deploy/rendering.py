"""EFFECT: manifests out of kustomizations and out of the chart, and what of them must be alike."""

import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from e2e.deploy.helm_build import helm_path

DEPLOY = Path(__file__).parents[2] / "deploy"
CHART = DEPLOY / "helm" / "closeby"
OVERLAYS = tuple(f"{cluster}{part}" for cluster in ("kind", "kubeadm", "k3s") for part in ("", "-announcer"))
Object = dict[str, Any]
_EMPTY: tuple[tuple[str, Object], ...] = (("labels", {}), ("annotations", {}))  # once what is Helm's is gone
_KUBERNETES = "1.36"  # a helm that was built without its stamps thinks of 1.20

_HASH = re.compile(
    r"^(closeby)-[bcdfghkmt2456789]{10}$"
)  # that kustomize appends to a ConfigMap's name, in its letters
_OF_HELM = (
    *("app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "helm.sh/chart", "checksum/config"),
    "helm.sh/resource-policy",
)


def kustomize(binary: Path, folder: Path) -> list[Object]:
    """What `kubectl kustomize` makes of the folder; RuntimeError with its words if it refuses."""
    return _load([str(binary), "kubectl", "kustomize", str(folder)])


def find_helm() -> str | None:
    """The helm to ask: the one that `e2e.deploy.helm_build` made, or one on PATH."""
    built = helm_path()
    return str(built) if built.exists() else shutil.which("helm")


def helm_template(helm: str, values: Mapping[str, object], folder: Path, *flags: str) -> list[Object]:
    """What the chart makes of these values, as release `closeby` in kube-system; RuntimeError if it refuses.

    `flags` are more of helm's, such as those that let it ask a cluster.
    """
    file = folder / "values.yaml"
    file.write_text(yaml.safe_dump(dict(values)))
    place = ("--namespace", "kube-system", "--kube-version", _KUBERNETES)
    return _load([helm, "template", "closeby", str(CHART), *place, "--values", str(file), *flags])


def values_of(objects: Iterable[Object]) -> dict[str, object]:
    """The chart's values that say what an overlay says."""
    config = next(one for one in objects if one["kind"] == "ConfigMap")["data"]
    daemon_sets = {one["metadata"]["name"]: one for one in objects if one["kind"] == "DaemonSet"}
    mounted = daemon_sets["closeby"]["spec"]["template"]["spec"]["volumes"][0]["configMap"]["name"]
    return {
        "apiServer": config["apiServer"],
        "config": yaml.safe_load(config["config.conf"]),
        "existingConfigMap": "" if _HASH.match(mounted) else mounted,
        "announcer": {"enabled": "closeby-announcer" in daemon_sets, "existingSecret": "closeby-announcer"},
    }


def in_substance(objects: Iterable[Object]) -> dict[tuple[str, str], object]:
    """By kind and name, without what only tells who rendered them; configuration as values, not as text."""
    found = {}
    for one in objects:
        plain = _plain(one)
        if one["kind"] == "ConfigMap":
            plain["data"]["config.conf"] = yaml.safe_load(plain["data"]["config.conf"])
        found[one["kind"], plain["metadata"]["name"]] = plain
    return found


def dump(objects: Iterable[Object]) -> str:
    """As one YAML stream."""
    return yaml.safe_dump_all(objects)


def _plain(value: Any) -> Any:  # noqa: ANN401  # any part of an object
    match value:
        case dict():
            plain = {key: _plain(part) for key, part in value.items() if key not in _OF_HELM}
            return {key: part for key, part in plain.items() if (key, part) not in _EMPTY}
        case list():
            return [_plain(part) for part in value]
        case str() if match := _HASH.match(value):
            return match[1]
        case _:
            return value


def _load(command: list[str]) -> list[Object]:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command[:3])}: {done.stderr}")
    return [one for one in yaml.safe_load_all(done.stdout) if one]
