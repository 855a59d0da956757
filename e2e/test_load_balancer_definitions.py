"""As an administrator I make a mistake in a pool, and the API server refuses it where a schema can tell."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.addresses import NAMESPACE, ROOT, install
from e2e.controlplane.cluster import ControlPlane
from e2e.deploy.rendering import dump, kustomize

pytestmark = pytest.mark.e2e

SELECTOR = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}


@pytest.fixture(scope="module")
def installed(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> ControlPlane:
    install(control_plane, tmp_path_factory.mktemp("definitions"))
    return control_plane


def apply(plane: ControlPlane, kind: str, spec: dict[str, Any]) -> str:
    """What the server says of it, "" if it takes it; nothing is stored."""
    metadata = {"name": "tried", "namespace": NAMESPACE}
    document = {"apiVersion": "metallb.io/v1beta1", "kind": kind, "metadata": metadata, "spec": spec}
    try:
        plane.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", text=yaml.safe_dump(document))
    except subprocess.CalledProcessError as error:
        return str(error.stderr)
    return ""


GOOD_POOLS = [
    {"addresses": ["192.0.2.0/28", "192.0.2.20-192.0.2.30", " 192.0.2.40 - 192.0.2.41 ", "2001:db8::/64"]},
    {"addresses": ["2001:db8::1-2001:db8::ff"], "autoAssign": False, "avoidBuggyIPs": True},
    {
        "addresses": ["192.0.2.1/32"],
        "serviceAllocation": {
            "priority": 10,
            "namespaces": ["a", "b"],
            "namespaceSelectors": [{"matchLabels": {"a": "b"}}, {}],
            "serviceSelectors": [SELECTOR],
        },
    },
]


@pytest.mark.parametrize("spec", GOOD_POOLS)
def test_a_good_pool_is_taken(installed: ControlPlane, spec: dict[str, Any]) -> None:
    assert apply(installed, "IPAddressPool", spec) == ""


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({}, "spec.addresses"),
        ({"addresses": []}, "spec.addresses"),
        ({"addresses": ["192.0.2.0/33"]}, "is neither a network"),
        ({"addresses": ["192.0.2.1"]}, "is neither a network"),
        ({"addresses": ["192.0.2.1-x"]}, "is no range of two addresses"),
        ({"addresses": ["192.0.2.1-192.0.2.2-192.0.2.3"]}, "is no range of two addresses"),
        ({"serviceAllocation": {"priority": -1}}, "priority"),
        ({"serviceAllocation": {"namespaces": ["a", "a"]}}, "Duplicate value"),
        (
            {"serviceAllocation": {"serviceSelectors": [{"matchExpressions": [{"key": "a", "operator": "In"}]}]}},
            "In and",
        ),
        (
            {"serviceAllocation": {"serviceSelectors": [{"matchExpressions": [{"key": "a", "operator": "X"}]}]}},
            "operator",
        ),
        ({"autoAsign": True}, "unknown field"),
    ],
)
def test_a_mistaken_pool_is_refused_by_field(installed: ControlPlane, spec: dict[str, Any], said: str) -> None:
    assert said in apply(installed, "IPAddressPool", {"addresses": ["192.0.2.0/28"]} | spec if spec else {})


def test_a_good_advertisement_is_taken(installed: ControlPlane) -> None:
    every_field = {
        "ipAddressPools": ["a"],
        "ipAddressPoolSelectors": [SELECTOR],
        "nodeSelectors": [{"matchLabels": {"a": "b"}}],
        "preferredNodeSelectors": [{"weight": 100, "preference": SELECTOR}],
        "interfaces": ["eth0"],
        "serviceSelectors": [SELECTOR],
    }

    assert apply(installed, "L2Advertisement", every_field) == ""
    assert apply(installed, "L2Advertisement", {}) == ""


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"interfaces": ["a", "a"]}, "Duplicate value"),
        ({"interfaces": ["a-name-of-many-letters"]}, "interfaces"),
        ({"ipAddressPools": ["a", "a"]}, "Duplicate value"),
        ({"preferredNodeSelectors": [{"weight": 0, "preference": {}}]}, "weight"),
        ({"preferredNodeSelectors": [{"weight": 1}]}, "preference"),
    ],
)
def test_a_mistaken_advertisement_is_refused_by_field(installed: ControlPlane, spec: dict[str, Any], said: str) -> None:
    assert said in apply(installed, "L2Advertisement", spec)


@pytest.mark.parametrize("folder", ["crds", "controller"])
def test_the_manifests_are_taken(installed: ControlPlane, kube_binary: Path, folder: str) -> None:
    objects = kustomize(kube_binary, ROOT / "deploy" / folder)

    told = installed.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", text=dump(objects))

    assert told.count("(server dry run)") == len(objects)
