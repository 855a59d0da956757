"""EFFECT: one run of the suite against a cluster, by ginkgo."""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from e2e.conformance.chosen import Part
from e2e.conformance.report import decode_names

REPORT = "report.json"
_LIMIT = "4h"  # of the run; ginkgo's own is an hour
_KUBECTL = "kubectl"  # the suite finds it by its path, the binary its command by its name


class Binaries(NamedTuple):
    """What runs it."""

    suite: Path
    ginkgo: Path
    kube: Path


class Target(NamedTuple):
    """The cluster, and the command words that lead to where it is reached ("nsenter ..")."""

    kubeconfig: Path
    workers: int
    inside: tuple[str, ...] = ()


def run_suite(binaries: Binaries, target: Target, part: Part, procs: int, output: Path) -> int:
    """Exit code of ginkgo: 0 if all passed. `output` gets report.json, junit.xml and the log, shown as it comes."""
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="closeby-suite-") as scratch:
        kubectl = Path(scratch) / _KUBECTL
        kubectl.symlink_to(binaries.kube)
        command = [*target.inside, *ginkgo_command(binaries, target, part, procs, (output, kubectl))]
        with (
            (output / "suite.log").open("wb") as log,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process,
        ):
            assert process.stdout
            while said := process.stdout.read1():  # type: ignore[attr-defined]  # not by lines: a dot a spec is shown
                log.write(said)
                sys.stderr.buffer.write(said)
                sys.stderr.flush()
    return process.returncode


def list_specs(suite: Path) -> list[str]:
    """Whole names of all that the suite has, chosen or not."""
    with tempfile.TemporaryDirectory(prefix="closeby-suite-") as scratch:
        listed = Path(scratch) / REPORT
        dry = [str(suite), "--ginkgo.dry-run", "--ginkgo.no-color", f"--ginkgo.json-report={listed}"]
        subprocess.run(dry, check=True, capture_output=True)
        return decode_names(listed.read_bytes())


def ginkgo_command(binaries: Binaries, target: Target, part: Part, procs: int, paths: tuple[Path, Path]) -> list[str]:
    """The command; `paths` are the folder for reports, and kubectl.

    Without --num-nodes many specs skip themselves; a failing one's dump of the cluster's logs needs ssh.
    """
    output, kubectl = paths
    return [
        *(str(binaries.ginkgo), "run", f"--procs={procs}", "--no-color", "--succinct", "--keep-going"),
        *(f"--timeout={_LIMIT}", "--silence-skips"),
        f"--focus={part.focus}",
        *([f"--skip={part.skip}"] if part.skip else []),  # an empty one would match every spec
        *(f"--output-dir={output}", f"--json-report={REPORT}", "--junit-report=junit.xml"),
        *(str(binaries.suite), "--"),
        *(f"--kubeconfig={target.kubeconfig}", "--provider=skeleton", f"--kubectl-path={kubectl}"),
        *(f"--num-nodes={target.workers}", "--dump-logs-on-failure=false"),
    ]
