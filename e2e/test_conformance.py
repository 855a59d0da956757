"""On a real cluster whose only service proxy is closeby, a chosen subset of Kubernetes' own specs passes."""

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from e2e.conformance.chosen import CHOSEN, CHOSEN_SPECS
from e2e.conformance.prepare import build_binaries, prepare
from e2e.conformance.report import Outcome, State, decode_report
from e2e.conformance.suite import REPORT, run_suite
from e2e.console import open_console
from e2e.kind.cluster import Cluster

pytestmark = [pytest.mark.kind, pytest.mark.timeout(60, func_only=True)]

PROCS = 3 * (os.cpu_count() or 1)  # specs mostly wait


@pytest.fixture(scope="session")
def outcomes(
    kind_cluster: Cluster,
    uncaptured: Callable[[], AbstractContextManager[None]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Mapping[str, Outcome]:
    """Spec -> outcome, of one run of all of them."""
    output: Path = tmp_path_factory.mktemp("conformance")
    with uncaptured():
        console = open_console()
        binaries = build_binaries(console)
        run_suite(binaries, prepare(kind_cluster, binaries, console), CHOSEN, PROCS, output)
    return decode_report((output / REPORT).read_bytes())


@pytest.mark.parametrize("spec", [pytest.param(name, id=name.removeprefix("[sig-network] ")) for name in CHOSEN_SPECS])
def test_the_spec_passes(spec: str, outcomes: Mapping[str, Outcome]) -> None:
    assert spec in outcomes, "it did not run"
    assert outcomes[spec].state is State.PASSED, outcomes[spec].message
