"""As an administrator I render deploy/ by kustomize or by Helm, and a real API server takes every object of it."""

import base64
import copy
import os
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from e2e.addresses import METRICS_PORT as CONTROLLER_PORT
from e2e.addresses import NAMESPACE, ControllerProcess, install
from e2e.announcers import METRICS_PORT as ANNOUNCER_PORT
from e2e.announcers import AnnouncerProcess
from e2e.cluster.cluster import Cluster
from e2e.cluster.daemon import METRICS_PORT
from e2e.controlplane.cluster import ControlPlane
from e2e.controlplane.objects import add_namespace
from e2e.controlplane.waiting import wait_for
from e2e.deploy.rendering import (
    CHART,
    DEPLOY,
    OVERLAYS,
    dump,
    find_helm,
    helm_template,
    in_substance,
    kustomize,
    values_of,
)
from proxy.announcer.keyring import SHORTEST_BYTES
from tests.unit.deploy.monitoring import list_metrics

pytestmark = pytest.mark.e2e

_EXAMPLES = sorted(path.parent for path in (DEPLOY / "examples").glob("*/kustomization.yaml"))
FOLDERS = [
    *(DEPLOY / name for name in ("base", "cleanup", "crds", "controller")),
    *(DEPLOY / "overlays" / name for name in OVERLAYS),
    *_EXAMPLES,
]


@pytest.fixture(scope="session")
def helm() -> str:
    found = find_helm()
    if found is None:
        pytest.skip("no helm: `python -m e2e.deploy.helm_build` makes one")
    return found


@pytest.mark.parametrize("folder", FOLDERS, ids=[folder.name for folder in FOLDERS])
def test_a_kustomization_is_taken_by_the_api_server(
    control_plane: ControlPlane, kube_binary: Path, folder: Path
) -> None:
    objects = kustomize(kube_binary, folder)
    add_namespace(control_plane.api, NAMESPACE)

    told = control_plane.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", text=dump(objects))

    assert len(told.splitlines()) == len(objects)
    assert told.count("(server dry run)") == len(objects)


def test_the_chart_says_of_the_controller_what_the_kustomizations_say(
    control_plane: ControlPlane, kube_binary: Path, helm: str, tmp_path: Path
) -> None:
    add_namespace(control_plane.api, NAMESPACE)
    wanted = [one for part in ("crds", "controller") for one in kustomize(kube_binary, DEPLOY / part)]
    without = in_substance(helm_template(helm, {}, tmp_path))

    rendered = helm_template(helm, {"controller": {"enabled": True}}, tmp_path)

    found = in_substance(rendered)
    assert {key: one for key, one in found.items() if key not in without} == in_substance(wanted)
    told = control_plane.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", text=dump(rendered))
    assert told.count("(server dry run)") == len(rendered)


def test_a_misspelt_field_would_have_been_refused(control_plane: ControlPlane, kube_binary: Path) -> None:
    objects = copy.deepcopy(kustomize(kube_binary, DEPLOY / "base"))
    (daemon_set,) = (one for one in objects if one["kind"] == "DaemonSet")
    daemon_set["spec"]["template"]["spec"]["hostNetwrok"] = True

    with pytest.raises(Exception, match="returned non-zero exit status"):
        control_plane.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", text=dump([daemon_set]))


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_chart_says_in_substance_what_an_overlay_says(
    control_plane: ControlPlane, kube_binary: Path, helm: str, tmp_path: Path, overlay: str
) -> None:
    wanted = kustomize(kube_binary, DEPLOY / "overlays" / overlay)

    rendered = helm_template(helm, values_of(wanted), tmp_path)

    assert in_substance(rendered) == in_substance(wanted)
    told = control_plane.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", text=dump(rendered))
    assert told.count("(server dry run)") == len(rendered)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        pytest.param({"apiSrever": "https://a:6443"}, "apiSrever", id="a misspelt value"),
        pytest.param({"apiServer": "192.0.2.1:6443"}, "apiServer", id="an address that is no URL"),
        pytest.param({"maxUnavailable": 0}, "maxUnavailable", id="an update that can't begin"),
        pytest.param({"announcer": {"key": "secret"}}, "announcer", id="a key where there is none"),
        pytest.param({"controller": {"replicas": 0}}, "replicas", id="nobody to give addresses"),
        pytest.param({"ports": {"healthz": 0, "metrics": 1}}, "healthz", id="a port that is none"),
    ],
)
def test_the_chart_refuses_values_that_can_not_be_meant(
    helm: str, tmp_path: Path, values: dict[str, object], words: str
) -> None:
    with pytest.raises(RuntimeError, match=words):
        helm_template(helm, values, tmp_path)


def test_the_charts_options_reach_the_pod(helm: str, tmp_path: Path) -> None:
    values = {
        "netSettings": False,
        "extraArgs": ["--same-node-for-daemon-sets=Never"],
        "image": {"repository": "registry.example.org/closeby", "tag": "9"},
        "config": {"healthzBindAddress": "0.0.0.0:10300"},
        "ports": {"healthz": 10300, "metrics": 10249},
    }

    objects = in_substance(helm_template(helm, values, tmp_path))

    text = yaml.safe_dump(objects["DaemonSet", "closeby"])
    assert "/proc/sys" not in text
    assert "--same-node-for-daemon-sets=Never" in text
    assert "registry.example.org/closeby:9" in text
    assert "hostPort: 10300" in text


def test_announcers_in_real_time_are_the_same_by_the_chart_and_by_kustomize(
    kube_binary: Path, helm: str, tmp_path: Path
) -> None:
    parts = ["overlays/kind", "components/announcer", "components/announcer-realtime"]
    base, *components = [os.path.relpath(DEPLOY / part, tmp_path.resolve()) for part in parts]
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump({"resources": [base], "components": components}))
    values = {"announcer": {"enabled": True, "realtimePriority": 10}}

    wanted = in_substance(kustomize(kube_binary, tmp_path))["DaemonSet", "closeby-announcer"]

    assert in_substance(helm_template(helm, values, tmp_path))["DaemonSet", "closeby-announcer"] == wanted
    assert "--realtime-priority=10" in yaml.safe_dump(wanted)
    assert "SYS_NICE" in yaml.safe_dump(wanted)


def test_the_chart_makes_a_key_of_its_own_where_no_secret_is_named(helm: str, tmp_path: Path) -> None:
    made = in_substance(helm_template(helm, {"announcer": {"enabled": True}}, tmp_path))["Secret", "closeby-announcer"]

    assert isinstance(made, dict)
    assert list(made["data"]) == ["1"]
    assert len(base64.b64decode(made["data"]["1"])) >= SHORTEST_BYTES


def test_the_chart_keeps_the_key_that_the_cluster_has(control_plane: ControlPlane, helm: str, tmp_path: Path) -> None:
    text = {"1": "the key of the cluster's announcers", "2": "and the next one"}
    meta = {"name": "closeby-announcer", "namespace": "kube-system"}
    control_plane.api.apply({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": text})
    cluster = ("--dry-run=server", "--kubeconfig", str(control_plane.admin_kubeconfig))

    rendered = helm_template(helm, {"announcer": {"enabled": True}}, tmp_path, *cluster)

    made = in_substance(rendered)["Secret", "closeby-announcer"]
    assert isinstance(made, dict)
    assert {name: base64.b64decode(one).decode() for name, one in made["data"].items()} == text
    control_plane.api.delete("Secret", "kube-system/closeby-announcer")


def test_the_chart_is_no_riddle_to_helms_own_look(helm: str, tmp_path: Path) -> None:
    import subprocess  # noqa: PLC0415  # here alone

    done = subprocess.run(
        [helm, "lint", "--strict", str(CHART)], capture_output=True, text=True, check=False, cwd=tmp_path
    )

    assert done.returncode == 0, done.stdout


@pytest.fixture
def pages(cluster: Cluster, tmp_path: Path) -> Iterator[list[int]]:
    """Ports of metrics on north-1: of its proxy, of an announcer, and of a controller."""
    netns = cluster.daemons["north-1"].site.netns
    kubeconfig = install(cluster.plane, tmp_path)
    with ExitStack() as running:
        address = ("--metrics-bind-address", f"127.0.0.1:{CONTROLLER_PORT}")
        controller = ControllerProcess("metrics", kubeconfig, tmp_path, *address, netns=netns)
        running.callback(controller.kill)
        announcer = AnnouncerProcess("north-1", netns, tmp_path / "announcer")
        running.callback(announcer.kill)
        yield [METRICS_PORT, CONTROLLER_PORT, ANNOUNCER_PORT]


def test_daemons_have_every_metric_that_rules_and_dashboard_ask_for(cluster: Cluster, pages: list[int]) -> None:
    """Some only once the daemon has something to say, as a controller that leads."""
    proxy = cluster.daemons["north-1"]
    missing = list_metrics()

    def all_seen() -> bool:
        for port in pages:
            code, page = proxy.http(port, "/metrics")
            missing.difference_update(_names(page) if code == 200 else ())
        return not missing

    with suppress(TimeoutError):
        wait_for(all_seen, "every metric is on one of the pages", timeout_s=120)
    assert missing == set()


def _names(page: str) -> set[str]:
    endings = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "info": ("_info",)}
    return {
        family.name + ending
        for family in text_string_to_metric_families(page)
        for ending in endings.get(family.type, ("",))
    }
