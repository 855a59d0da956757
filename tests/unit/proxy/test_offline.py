"""Reading a Snapshot once, from an API server."""

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from endpointslice.types import Kind, NodeName
from proxy import offline
from proxy.offline import Wanted, load
from proxy.planner.settings import Settings
from proxy.report import report_plan
from proxy.sources.apiserver import list_resources
from tests.builders import object_json, service_json, slice_json
from tests.unit.proxy.sources.api_double import (
    PATIENCE_S,
    Answer,
    ApiDouble,
    Request,
    answer_json,
    answer_list,
    answer_status,
)

NODE = NodeName("n1")
PATHS = {resource.path: Kind(resource.kind) for resource in list_resources(NODE)}
POD_PATH = "/api/v1/namespaces/default/pods/agent-abcde"


def endpoint_json(number: int, pod: str) -> dict[str, Any]:
    target = {"kind": "Pod", "namespace": "default", "name": pod}
    return {"addresses": [f"10.244.{number}.1"], "nodeName": f"n{number}", "targetRef": target}


WORLD: Mapping[Kind, list[Any]] = {
    Kind.SERVICE: [service_json(trafficDistribution="PreferClose")],
    Kind.ENDPOINT_SLICE: [slice_json(endpoints=[endpoint_json(1, "agent-abcde"), endpoint_json(2, "agent-bcdef")])],
    Kind.DAEMON_SET: [
        object_json(
            Kind.DAEMON_SET,
            "default/agent",
            spec={"template": {"metadata": {"labels": {"app": "web"}}}},
            status={"desiredNumberScheduled": 2},
        )
    ],
}
OWNED = object_json(
    Kind.POD,
    "default/agent-abcde",
    ownerReferences=[{"kind": "DaemonSet", "apiVersion": "apps/v1", "name": "agent", "controller": True}],
)
Serve = Callable[[Answer], Path]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts an API server that answers with WORLD, and so to the GET of our pod; the kubeconfig that names it."""
    doubles: list[ApiDouble] = []

    def start(of_pod: Answer) -> Path:
        def answer(request: Request) -> Answer:
            if request.path == POD_PATH:
                return of_pod
            if request.is_watch:
                return Answer(doubles[0].feed())
            kind = PATHS.get(request.path)
            return answer_list(kind, WORLD.get(kind, [])) if kind else answer_status(404, request.path)

        doubles.append(ApiDouble(answer))
        return doubles[0].kubeconfig(tmp_path / "config")

    yield start
    for double in doubles:
        double.close()


@pytest.mark.parametrize(
    ("of_pod", "tier"),
    [
        pytest.param(answer_json(OWNED), "same-node", id="the owner of our pod is asked for, too"),
        pytest.param(answer_status(404, "no such pod"), "cluster", id="a pod that isn't there is not waited for"),
    ],
)
def test_an_api_server_is_read_once(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of_pod: Answer, tier: str
) -> None:
    monkeypatch.setattr(offline, "LIST_S", PATIENCE_S)
    monkeypatch.setattr(offline, "POD_S", 3 * PATIENCE_S)
    kubeconfig = serve(of_pod)

    begun_s = time.monotonic()
    loaded = load(Wanted(None, None, kubeconfig, tmp_path / "none"), NODE)

    (port,) = report_plan(loaded.snapshot, Settings(NODE)).services
    assert port.frontends[0].tier == tier
    assert loaded.settings is None
    assert time.monotonic() - begun_s < 3 * PATIENCE_S, "it waited for a pod in vain"
