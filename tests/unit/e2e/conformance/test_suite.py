from pathlib import Path

from e2e.conformance.chosen import Part
from e2e.conformance.suite import Binaries, Target, ginkgo_command

BINARIES = Binaries(Path("/b/network.test"), Path("/b/ginkgo"), Path("/b/kube"))


def test_ginkgos_flags_stand_before_the_suite_and_the_suites_after_it() -> None:
    part = Part("p", 2, "focus me", "skip me")
    command = ginkgo_command(BINARIES, Target(Path("/k"), 2), part, 4, (Path("/out"), Path("/t/kubectl")))
    split = command.index("--")
    assert command[split - 1] == "/b/network.test"
    assert {"--procs=4", "--focus=focus me", "--skip=skip me", "--output-dir=/out"} <= set(command[:split])
    assert {"--kubeconfig=/k", "--num-nodes=2", "--kubectl-path=/t/kubectl"} <= set(command[split:])


def test_a_part_that_skips_nothing_gives_no_pattern_that_would_match_everything() -> None:
    command = ginkgo_command(BINARIES, Target(Path("/k"), 2), Part("p", 2, "f", ""), 1, (Path("/out"), Path("/t/k")))
    assert not [word for word in command if word.startswith("--skip")]
