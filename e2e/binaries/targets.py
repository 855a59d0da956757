"""What can be built from the Go module, and how. No I/O."""

import re
from collections.abc import Sequence
from typing import NamedTuple

_KUBERNETES = "k8s.io/kubernetes"
_PACKAGE = re.compile(r"[\w.~-]+(/[\w.~-]+)*")
_REQUIRED = re.compile(r"^\t?(?:require )?(?P<module>[\w./~-]+) (?P<version>v\S+)", re.MULTILINE)


class Target(NamedTuple):
    """One program."""

    name: str
    package: str  # "./x" is a folder of ours; anything else a package of a module
    module: str  # whose version names the result
    is_test: bool = False  # `go test -c` makes it
    large: bool = False  # it compiles most of Kubernetes
    any_kubernetes: bool = False  # one serves every version: it is go.mod's

    def arguments(self, version: str, output: str) -> list[str]:
        """Arguments of `go` that write the program to `output`.

        The stamps are those that Kubernetes' own build sets; without them, checks between versions fail.
        """
        stamped = {
            "k8s.io/component-base/version.gitVersion": version,
            "sigs.k8s.io/cri-tools/pkg/version.Version": version,
        }
        major_minor = re.match(r"v(\d+)\.(\d+)", version)
        if major_minor:
            stamped["k8s.io/component-base/version.gitMajor"] = major_minor[1]
            stamped["k8s.io/component-base/version.gitMinor"] = major_minor[2]
        ldflags = " ".join(["-s -w", *(f"-X {name}={value}" for name, value in stamped.items())])
        # Vetting would take as long again, and says nothing about code that isn't ours.
        verb = ["test", "-c", "-vet=off"] if self.is_test else ["build", "-v"]
        return [*verb, "-trimpath", "-mod=readonly", "-ldflags", ldflags, "-o", output, self.package]


TARGETS = {
    target.name: target
    for target in (
        Target("kube", "./kube", _KUBERNETES, large=True),
        Target("kind", "sigs.k8s.io/kind", "sigs.k8s.io/kind", any_kubernetes=True),
        Target("crictl", "sigs.k8s.io/cri-tools/cmd/crictl", "sigs.k8s.io/cri-tools", any_kubernetes=True),
        Target("coredns", "./coredns", "github.com/coredns/coredns"),
        Target("pause", "./pause", _KUBERNETES),
        Target("network.test", "./network", _KUBERNETES, is_test=True, large=True),
        Target("ginkgo", "github.com/onsi/ginkgo/v2/ginkgo", "github.com/onsi/ginkgo/v2"),
        Target("agnhost", "k8s.io/kubernetes/test/images/agnhost", _KUBERNETES),
        Target("regression-issue-74839", "k8s.io/kubernetes/test/images/regression-issue-74839", _KUBERNETES),
    )
}


def complaints(said: Sequence[str]) -> list[str]:
    """What `go build -v` said but for the packages that it named, one a line; all of it if there is nothing else."""
    return [line for line in said if not _PACKAGE.fullmatch(line)] or list(said)


def parse_versions(go_mod: str) -> dict[str, str]:
    """Module -> version, of each that a go.mod requires (go.dev/ref/mod#go-mod-file)."""
    required = go_mod.partition("\nreplace")[0]
    return {match["module"]: match["version"] for match in _REQUIRED.finditer(required)}
