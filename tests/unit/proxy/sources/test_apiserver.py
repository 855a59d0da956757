from pathlib import Path

import pytest

from endpointslice.decode import Changed, Listed
from endpointslice.types import Kind, NodeName, PodName
from proxy.sources import KindStatus
from proxy.sources.apiserver import ApiServerSource, list_resources
from proxy.sources.credentials import load_kubeconfig
from proxy.sources.transport import ApiServer
from tests.unit.proxy.sources.api_double import Answer, ApiDouble, Posted, Request, answer_list, answer_status

RESOURCES = {resource.kind: resource for resource in list_resources(NodeName("n1"))}
OUR_SERVICES, OUR_SLICES = "!service.kubernetes.io/service-proxy-name", "!service.kubernetes.io/headless"


@pytest.mark.parametrize(
    ("kind", "label_selector", "field_selector", "is_optional"),
    [
        pytest.param(Kind.SERVICE, OUR_SERVICES, "spec.clusterIP!=None", False, id="Services that are ours"),
        pytest.param(Kind.ENDPOINT_SLICE, OUR_SLICES, "", False, id="slices that are ours"),
        pytest.param(Kind.NODE, "", "metadata.name=n1", True, id="our own Node only"),
        pytest.param(Kind.DAEMON_SET, "", "", True, id="all DaemonSets"),
        pytest.param(Kind.SERVICE_CIDR, "", "", True, id="all ServiceCIDRs"),
    ],
)
def test_what_is_followed(kind: Kind, label_selector: str, field_selector: str, is_optional: bool) -> None:  # noqa: FBT001  # a column of the table
    resource = RESOURCES[kind]

    assert (resource.label_selector, resource.field_selector) == (label_selector, field_selector)
    assert bool(resource.permission) is is_optional


@pytest.mark.parametrize("kind", [Kind.SERVICE, Kind.ENDPOINT_SLICE])
def test_before_1_36_either_label_hides_either_kind(kind: Kind) -> None:
    before = RESOURCES[kind].before

    assert before is not None
    assert before.version == (1, 36)
    assert set(before.label_selector.split(",")) == {OUR_SERVICES, OUR_SLICES}


def test_a_source_starts_every_kind_and_stops(double: ApiDouble, posted: Posted, tmp_path: Path) -> None:
    def answer(request: Request) -> Answer:
        if request.is_watch:
            return Answer(double.feed())
        kinds = [kind for kind, resource in RESOURCES.items() if resource.path == request.path]
        return answer_list(kinds[0], []) if kinds else answer_status(404, "no such pod")

    double.answer = answer
    kubeconfig = double.kubeconfig(tmp_path / "config")
    source = ApiServerSource(ApiServer(lambda: load_kubeconfig(kubeconfig)), NodeName("n1"))
    assert set(source.status().values()) == {KindStatus()}
    source.start(posted)

    assert {posted.next() for _ in source.kinds} == {(Listed(kind, ()),) for kind in source.kinds}
    source.request_pod(PodName("shop/web-1"), "")
    assert posted.next() == (Changed(Kind.POD, "shop/web-1", None),)
    assert all(status.complete for status in source.status().values())
    source.stop()
    assert posted.is_quiet(0.1)


def test_a_source_can_be_stopped_and_asked_before_it_started(double: ApiDouble, tmp_path: Path) -> None:
    kubeconfig = double.kubeconfig(tmp_path / "config")
    source = ApiServerSource(ApiServer(lambda: load_kubeconfig(kubeconfig)), NodeName("n1"))

    source.request_pod(PodName("shop/web-1"), "")
    source.stop()

    assert double.requests == []
