"""What every story shares: the control-plane binary and one running control plane."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from e2e.controlplane.build import BuildError, build
from e2e.controlplane.cluster import ControlPlane
from e2e.controlplane.settings import Settings


@pytest.fixture(scope="session")
def controlplane_binary(pytestconfig: pytest.Config) -> Path:
    """The binary, built first if need be (minutes; progress goes past pytest's capture)."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    assert capture is not None
    with capture.global_and_fixture_disabled():
        try:
            return build(Console(stderr=True))
        except BuildError as error:
            pytest.exit(f"no control plane: {error}", returncode=2)


@pytest.fixture(scope="session")
def control_plane(controlplane_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """One control plane with all controllers and the scheduler, shared: stories keep to namespaces of their own."""
    settings = Settings(scheduler=True)
    with ControlPlane(controlplane_binary, tmp_path_factory.mktemp("control-plane"), settings) as running:
        yield running
