import re
from pathlib import Path

import pytest

from e2e.binaries.targets import TARGETS, complaints, parse_versions

BINARIES = Path(__file__).parents[4] / "e2e" / "binaries"
MODULE_FILES = sorted(BINARIES.glob("*.mod"))


def test_versions_are_what_is_required_and_not_what_is_replaced() -> None:
    text = (
        "module m\n\ngo 1.26.2\n\nrequire k8s.io/kubernetes v1.36.3\n\n"
        "require (\n\tsigs.k8s.io/kind v0.33.0 // indirect\n\tgithub.com/onsi/ginkgo/v2 v2.28.1\n)\n\n"
        "replace (\n\tk8s.io/api => k8s.io/api v0.1.0\n)\n"
    )
    assert parse_versions(text) == {
        "k8s.io/kubernetes": "v1.36.3",
        "sigs.k8s.io/kind": "v0.33.0",
        "github.com/onsi/ginkgo/v2": "v2.28.1",
    }


@pytest.mark.parametrize("file", [pytest.param(file, id=file.name) for file in MODULE_FILES])
def test_a_module_file_pins_what_its_targets_are_named_by(file: Path) -> None:
    targets = [target for target in TARGETS.values() if file.name == "go.mod" or not target.any_kubernetes]
    assert {target.module for target in targets} <= parse_versions(file.read_text()).keys()


def test_a_module_file_pins_one_kubernetes_throughout() -> None:
    for file in MODULE_FILES:
        minor = parse_versions(file.read_text())["k8s.io/kubernetes"].removeprefix("v1.")
        replaced = re.findall(r"^\tk8s.io/\S+ => k8s.io/\S+ v0\.(\S+)$", file.read_text(), re.MULTILINE)
        assert set(replaced) == {minor}
        assert file.name in {"go.mod", f"kubernetes-1.{minor.partition('.')[0]}.mod"}


def test_kubernetes_is_stamped_with_its_version() -> None:
    arguments = TARGETS["kube"].arguments("v1.36.3", "out")
    flags = arguments[arguments.index("-ldflags") + 1]
    for stamp in ("gitVersion=v1.36.3", "gitMajor=1", "gitMinor=36"):
        assert f"-X k8s.io/component-base/version.{stamp}" in flags
    assert arguments[:2] == ["build", "-v"]
    assert arguments[-1] == "./kube"


def test_a_test_package_is_compiled_as_one() -> None:
    assert TARGETS["network.test"].arguments("v1.36.3", "out")[:3] == ["test", "-c", "-vet=off"]


def test_what_go_complains_of_is_found_among_the_packages_that_it_names() -> None:
    error = ["# k8s.io/kubernetes/pkg/kubelet/cm", "cm/cgroup_linux.go:307:25: cannot use x as y"]
    assert complaints(["errors", "k8s.io/kubelet/pkg/cri-api", *error, "sigs.k8s.io/yaml/v3"]) == error
    assert complaints(["errors"]) == ["errors"]
