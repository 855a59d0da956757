"""What the manifests ask for, and that closeby takes the configuration and the flags that they give."""

import json
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from proxy.cli.announce import FEED_SOCKET, announce
from proxy.cli.controller import controller
from proxy.cli.run import run
from proxy.kubeproxy.configure import Own, build_config, name_in_file
from proxy.kubeproxy.file import parse_config

DEPLOY = Path(__file__).parents[3] / "deploy"
CONFIGS = sorted(DEPLOY.glob("**/config.conf"))
ANNOUNCER = DEPLOY / "components" / "announcer" / "daemonset.yaml"
RIGHTS = {  # by the file; an initContainer of the announcer's is root without any
    DEPLOY / "base" / "daemonset.yaml": "NET_ADMIN",
    DEPLOY / "cleanup" / "daemonset.yaml": "NET_ADMIN",
    ANNOUNCER: "NET_RAW",
}
DAEMON_SETS = [*RIGHTS]
VERSION = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())["project"]["version"]


def load(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(path.read_text())
    return document


def pod_of(path: Path) -> dict[str, Any]:
    spec: dict[str, Any] = load(path)["spec"]["template"]["spec"]
    return spec


def containers_of(path: Path) -> list[dict[str, Any]]:
    pod = pod_of(path)
    return [*pod.get("initContainers", ()), *pod["containers"]]


@pytest.mark.parametrize("path", CONFIGS, ids=[path.parent.name for path in CONFIGS])
def test_a_configuration_is_taken(path: Path) -> None:
    config = build_config(parse_config(str(path), path.read_bytes()), Own(), name_in_file(path))

    assert config.oom_score_adj == -997


@pytest.mark.parametrize("path", DAEMON_SETS, ids=["the proxy", "its cleanup", "the announcer"])
def test_a_pod_has_the_least_rights(path: Path) -> None:
    pod = pod_of(path)

    assert pod["securityContext"]["runAsNonRoot"] is True
    assert not {"hostPID", "hostIPC"} & set(pod)
    for container in containers_of(path):
        rights = container["securityContext"]
        assert rights["readOnlyRootFilesystem"] is True
        assert rights["allowPrivilegeEscalation"] is False
        assert "privileged" not in rights
        assert rights["capabilities"]["drop"] == ["ALL"]
        assert set(rights["capabilities"].get("add", ())) <= {RIGHTS[path]}
        assert rights.get("runAsUser") != 0 or "add" not in rights["capabilities"]


def test_of_the_host_it_mounts_its_network_settings_alone() -> None:
    volumes = pod_of(DAEMON_SETS[0])["volumes"]

    assert [v["hostPath"]["path"] for v in volumes if "hostPath" in v] == ["/proc/sys/net"]


def test_every_flag_that_is_given_is_one_of_closebys() -> None:
    (proxy,) = containers_of(DAEMON_SETS[0])
    patches = yaml.safe_load((ANNOUNCER.parent / "proxy.yaml").read_text())
    added = [patch["value"] for patch in patches if patch["path"].endswith("/args/-")]

    assert flags_in([*proxy["args"], *added]) <= flags_of(run)
    assert flags_in(pod_of(ANNOUNCER)["containers"][0]["args"]) <= flags_of(announce)


def flags_of(command: click.Command) -> set[str]:
    return {name for option in command.params if isinstance(option, click.Option) for name in option.opts}


def flags_in(args: list[str]) -> set[str]:
    return {arg.partition("=")[0] for arg in args if arg.startswith("-")}


def test_the_probes_ask_pages_of_the_health_server() -> None:
    (container,) = containers_of(DAEMON_SETS[0])
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}

    assert ports == {"healthz": 10256, "metrics": 10249}
    assert container["livenessProbe"]["httpGet"] == {"path": "/livez", "port": "healthz"}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "healthz"}


def test_one_version_stands_everywhere() -> None:
    chart = load(DEPLOY / "helm/closeby/Chart.yaml")
    tags = [
        load(DEPLOY / part / "kustomization.yaml")["images"][0]["newTag"]
        for part in ("base", "cleanup", "controller", "components/announcer")
    ]

    assert {chart["version"], chart["appVersion"], *tags} == {VERSION}


def test_the_schema_describes_each_value_of_the_chart_and_no_other() -> None:
    schema = json.loads((DEPLOY / "helm/closeby/values.schema.json").read_text())

    assert schema["additionalProperties"] is False
    assert set(schema["properties"]) - {"global"} == set(load(DEPLOY / "helm/closeby/values.yaml"))


def test_both_ends_of_the_announcers_folder_are_one() -> None:
    patches = yaml.safe_load((ANNOUNCER.parent / "proxy.yaml").read_text())
    of_proxy = {patch["path"].rpartition("/")[0].rpartition("/")[2]: patch["value"] for patch in patches}
    (of_announcer,) = [volume for volume in pod_of(ANNOUNCER)["volumes"] if "hostPath" in volume]

    assert of_proxy["volumes"]["hostPath"] == of_announcer["hostPath"]
    folder = of_proxy["volumeMounts"]["mountPath"]
    mounts = {mount["name"]: mount["mountPath"] for mount in pod_of(ANNOUNCER)["containers"][0]["volumeMounts"]}
    assert of_proxy["args"] == f"--announcer-socket={folder}/{FEED_SOCKET.name}"
    assert mounts["sockets"] == str(FEED_SOCKET.parent)


def test_an_announcer_can_be_followed_before_it_ends() -> None:
    spec = load(ANNOUNCER)["spec"]
    container = pod_of(ANNOUNCER)["containers"][0]

    assert spec["updateStrategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    assert "ports" not in container  # in the host's network each is a hostPort, of which a node has one
    assert "readinessProbe" not in container
    assert "httpGet" not in container["startupProbe"]  # the one before might answer


CONTROLLER = DEPLOY / "controller" / "deployment.yaml"


def test_the_controller_runs_without_any_right_on_its_node() -> None:
    pod = pod_of(CONTROLLER)
    (container,) = containers_of(CONTROLLER)

    assert pod["securityContext"]["runAsNonRoot"] is True
    assert not {"hostNetwork", "hostPID", "hostIPC", "volumes"} & set(pod)
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_the_controllers_flags_and_port_are_its_own() -> None:
    (container,) = containers_of(CONTROLLER)
    flags = {name: option for option in controller.params for name in option.opts}
    command, *given = container["args"]

    assert command == "controller"
    assert {arg.partition("=")[0] for arg in given} <= flags.keys()
    assert str(flags["--metrics-bind-address"].default).endswith(f":{container['ports'][0]['containerPort']}")
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": container["ports"][0]["name"]}


def test_the_controller_writes_nothing_but_status_events_and_its_lease() -> None:
    documents = yaml.safe_load_all((DEPLOY / "controller" / "rbac.yaml").read_text())
    rules = [rule for document in documents for rule in document.get("rules", ())]
    written = {
        resource
        for rule in rules
        for resource in rule["resources"]
        if not set(rule["verbs"]) <= {"get", "list", "watch"}
    }

    assert written == {"services/status", "ipaddresspools/status", "events", "leases"}
