"""What the tests of sources share: a server whose answers a test writes, and a listener to what is posted."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from endpointslice.types import Kind
from proxy.sources.credentials import load_kubeconfig
from proxy.sources.sink import EventSink
from proxy.sources.transport import ApiServer
from proxy.sources.watch import KindWatch, Patience, Resource, Reunion
from tests.unit.proxy.sources.api_double import PATIENCE_S, ApiDouble, Posted, answer_status
from tests.unit.proxy.sources.manifest_files import service_text
from tests.unit.proxy.sources.watching import SERVICES, StartWatch

_REFUSAL_S = 0.3


@pytest.fixture
def double() -> Iterator[ApiDouble]:
    double = ApiDouble(lambda _: answer_status(500, "the test says nothing"))
    yield double
    double.close()


@pytest.fixture
def posted() -> Posted:
    return Posted()


@pytest.fixture
def start_watch(double: ApiDouble, posted: Posted, tmp_path: Path) -> Iterator[StartWatch]:
    """Starts a watch on the double; it ends with the test."""
    kubeconfig = double.kubeconfig(tmp_path / "config")
    api = ApiServer(lambda: load_kubeconfig(kubeconfig))
    started: list[KindWatch] = []

    def start(
        resource: Resource = SERVICES,
        silence_s: float = PATIENCE_S,
        delay: Callable[[int], float] = lambda _: 0.01,
        reunion: Reunion | None = None,
        refusal_s: float = _REFUSAL_S,
    ) -> KindWatch:
        watch = KindWatch(
            api,
            resource,
            EventSink(Kind(resource.kind), posted),
            Patience(silence_s, delay=delay, refusal_s=refusal_s),
            reunion,
        )
        watch.start()
        started.append(watch)
        return watch

    yield start
    for watch in started:
        watch.stop()
        watch.join(PATIENCE_S)
        assert not watch._thread.is_alive()  # noqa: SLF001  # it must end when told
    api.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one Service in it."""
    folder = tmp_path / "manifests"
    folder.mkdir()
    (folder / "web.yaml").write_text(service_text("web"))
    return folder
