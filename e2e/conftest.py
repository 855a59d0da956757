"""What every story shares: the binary of Kubernetes, one running control plane, and one whole cluster."""

import itertools
import os
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from e2e.addresses import ControllerProcess, Shop, install
from e2e.binaries.build import BuildError, build
from e2e.cluster.cluster import Cluster
from e2e.cluster.space import Space
from e2e.console import open_console
from e2e.controlplane.api import Api
from e2e.controlplane.cluster import ControlPlane, free_port
from e2e.controlplane.objects import add_namespace
from e2e.controlplane.settings import Settings
from e2e.controlplane.waiting import wait_for
from e2e.kind.cluster import Cluster as KindCluster
from e2e.kind.config import Proxy
from e2e.kind.daemon import folder, list_leftovers
from e2e.kind.life import Ask, bring_down, bring_up, find_cluster, list_running
from e2e.listener import NAMESPACE, Listener, StartSource
from endpointslice.types import NodeName
from proxy.sources import Source
from proxy.sources.apiserver import ApiServerSource
from proxy.sources.credentials import load_kubeconfig
from proxy.sources.transport import ApiServer
from proxy.sources.watch import PATIENT, Patience


@pytest.fixture(scope="session")
def uncaptured(pytestconfig: pytest.Config) -> Callable[[], AbstractContextManager[None]]:
    """Makes a block whose output goes past pytest's capture: the progress of what takes minutes."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    assert capture is not None
    return capture.global_and_fixture_disabled  # type: ignore[no-any-return]  # a plugin by its name has no type


@pytest.fixture(scope="session")
def kube_binary(uncaptured: Callable[[], AbstractContextManager[None]]) -> Path:
    """The binary, built first if need be."""
    with uncaptured():
        try:
            return build("kube", open_console())
        except BuildError as error:
            pytest.exit(f"no control plane: {error}", returncode=2)


@pytest.fixture(scope="session")
def control_plane(kube_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """One control plane with all controllers and the scheduler, shared: stories keep to namespaces of their own."""
    settings = Settings(scheduler=True)
    with ControlPlane(kube_binary, tmp_path_factory.mktemp("control-plane"), settings) as running:
        yield running


@pytest.fixture
def outage(control_plane: ControlPlane) -> Iterator[None]:
    """For a test that stops the shared API server: after it, controllers don't wait to try again."""
    yield
    control_plane.restart_controllers()


@pytest.fixture(scope="session")
def built_cluster(kube_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Four nodes with their daemons, and a control plane of their own: stories stop it, and compact its history."""
    with Cluster(kube_binary, tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture
def cluster(built_cluster: Cluster) -> Iterator[Cluster]:
    """The cluster, whole at the beginning and at the end of each story."""
    yield built_cluster
    built_cluster.restore()
    for daemon in built_cluster.daemons.values():
        assert daemon.events("loop_failed") == []


@pytest.fixture
def space(cluster: Cluster) -> Iterator[Space]:
    """A Kubernetes namespace of the story's own."""
    made = Space(cluster, f"story-{next(_STORIES)}")
    yield made
    cluster.restore()
    made.close()


@pytest.fixture(scope="session")
def kind_cluster(
    request: pytest.FixtureRequest, uncaptured: Callable[[], AbstractContextManager[None]]
) -> Iterator[KindCluster]:
    """A real cluster whose only service proxy is closeby, from deploy/, shared by all tests marked `kind`.

    With CLOSEBY_CLUSTER=NAME it is that one, which runs already and stays. After a failure its logs are in a folder.
    """
    console = open_console()
    given = os.environ.get("CLOSEBY_CLUSTER")
    if given:
        yield find_cluster(given, console)
        return
    logs = folder() / "logs" / _KIND_NAME
    with uncaptured():
        if _KIND_NAME in [cluster.name for cluster in list_running(console)]:
            bring_down(_KIND_NAME, console)  # of a run that crashed
        try:
            made = bring_up(Ask(_KIND_NAME, _KIND_WORKERS, Proxy.CLOSEBY), console)
        except BaseException:
            bring_down(_KIND_NAME, console)
            raise
    yield made
    with uncaptured():
        if request.session.testsfailed:
            made.write_logs(logs)
            console.print(f"logs of all components: {logs}", soft_wrap=True)
        bring_down(_KIND_NAME, console)
        others = list_running(console)
    assert _KIND_NAME not in [cluster.name for cluster in others]
    assert others or not made.docker.netns or list_leftovers() == []


@pytest.fixture(scope="module")
def controller_metrics() -> str:
    """Where `address_controller` has its metrics page: HOST:PORT. The port is a free one: others run tests too."""
    return f"127.0.0.1:{free_port('127.0.0.1')}"


@pytest.fixture(scope="module")
def address_controller(
    control_plane: ControlPlane, controller_metrics: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControllerProcess]:
    """`closeby controller` on the shared control plane, leading."""
    kubeconfig = install(control_plane, tmp_path_factory.mktemp("controller"))
    metrics = ("--metrics-bind-address", controller_metrics)
    running = ControllerProcess("controller", kubeconfig, kubeconfig.parent, *metrics)
    wait_for(running.leads, "the controller leads")
    yield running
    running.terminate()


@pytest.fixture
def shop(control_plane: ControlPlane, address_controller: ControllerProcess) -> Iterator[Shop]:
    """A Kubernetes namespace with pools of the story's own; the controller had nothing to complain of in the end."""
    made = Shop(control_plane.api, f"lb-{next(_STORIES)}")
    yield made
    made.close()
    assert "Traceback" not in address_controller.log()
    assert not address_controller.events("write_failed")


@pytest.fixture(scope="module")
def source_api(control_plane: ControlPlane) -> Api:
    """The shared control plane's, with a namespace for the tests of sources."""
    add_namespace(control_plane.api, NAMESPACE)
    return control_plane.api


@pytest.fixture
def start_source() -> Iterator[StartSource]:
    """Starts a source with a kubeconfig, as node source-1; it ends with the test."""
    started: list[Source] = []

    def start(kubeconfig: Path, patience: Patience = PATIENT) -> tuple[Source, Listener]:
        listener = Listener()
        source = ApiServerSource(ApiServer(lambda: load_kubeconfig(kubeconfig)), NodeName("source-1"), patience)
        source.start(listener)
        started.append(source)
        return source, listener

    yield start
    for source in started:
        source.stop()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A story that failed on the cluster leaves evidence in a folder, and says where."""
    report = yield
    failed_on = getattr(item, "funcargs", {}).get("cluster")
    if report.when == "call" and report.failed and isinstance(failed_on, Cluster):
        report.sections.append(("evidence", str(failed_on.write_evidence(item.name))))
    return report


_STORIES = itertools.count(1)
_KIND_NAME = "tests"
_KIND_WORKERS = 2
