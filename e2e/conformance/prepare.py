"""EFFECT: what a run of the suite takes: its programs, and its images on the cluster's nodes."""

from rich.console import Console

from e2e.binaries.build import build, source_of
from e2e.conformance import images
from e2e.conformance.suite import Binaries, Target
from e2e.kind.cluster import Cluster
from e2e.kind.daemon import folder
from e2e.kind.steps import steps_on


def build_binaries(console: Console) -> Binaries:
    """What runs the suite, built if need be. BuildError."""
    return Binaries(build("network.test", console), build("ginkgo", console), build("kube", console))


def prepare(cluster: Cluster, binaries: Binaries, console: Console) -> Target:
    """The cluster, with the suite's images on its nodes. BuildError, CommandError, DebianError."""
    programs = images.Programs(
        build("agnhost", console),
        build("coredns", console),
        build("regression-issue-74839", console),
        source_of("k8s.io/kubernetes", console) / "test/images/agnhost/porter",
    )
    steps = steps_on(console)
    archive = images.make_archive(binaries.suite, programs, folder() / "images", steps)
    with steps("import of the suite's images"):
        cluster.load(archive)
    workers = sum(node.name != cluster.control_plane for node in cluster.nodes())
    return Target(cluster.kubeconfig, workers, tuple(cluster.docker.inside([])))
