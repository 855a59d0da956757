"""What a watch does when the server refuses what it asks for."""

import pytest
from structlog.testing import capture_logs

from endpointslice.decode import Listed
from endpointslice.types import Kind
from proxy.sources.watch import Resource
from tests.unit.proxy.sources.api_double import (
    PATIENCE_S,
    Answer,
    ApiDouble,
    Posted,
    Request,
    answer_list,
    answer_status,
    service,
)
from tests.unit.proxy.sources.watching import EXPIRED, StartWatch, names_in, serve
from tests.waiting import until

OPTIONAL = Resource(Kind.SERVICE_CIDR, "/apis/networking.k8s.io/v1/servicecidrs", permission="list and watch")


@pytest.mark.parametrize("code", [403, 404])
def test_an_optional_kind_that_is_refused_counts_as_empty(
    code: int, double: ApiDouble, posted: Posted, start_watch: StartWatch
) -> None:
    double.answer = serve([answer_status(code, "no")], [double.feed()])
    with capture_logs() as logs:
        watch = start_watch(OPTIONAL)
        assert posted.next() == (Listed(Kind.SERVICE_CIDR, ()),)
        until(lambda: len(double.lists()) > 3)
        assert posted.is_quiet(0.05)
        assert watch.status.complete

        double.answer = serve([answer_list("ServiceCIDR", [{"metadata": {"name": "a"}}])], [double.feed()])
        assert names_in(posted.next()[0]) == ["a"]

    refused = [log for log in logs if log["event"] == "kind_refused"]
    assert [log["needs"] for log in refused] == ["list and watch"]


@pytest.mark.parametrize(
    ("code", "resource"),
    [
        pytest.param(403, OPTIONAL, id="it has read no roles yet"),
        pytest.param(404, OPTIONAL._replace(is_custom=True), id="it has read no definitions yet"),
    ],
)
def test_a_server_that_refuses_while_it_starts_has_no_empty_list(
    code: int, resource: Resource, double: ApiDouble, posted: Posted, start_watch: StartWatch
) -> None:
    double.answer = lambda _: answer_status(code, "not yet")
    start_watch(resource, refusal_s=PATIENCE_S)
    until(lambda: bool(double.requests))

    double.answer = serve([answer_list("ServiceCIDR", [{"metadata": {"name": "a"}}])], [double.feed()])

    assert names_in(posted.next()[0]) == ["a"]


def test_an_optional_kind_that_is_refused_later_keeps_its_state(
    double: ApiDouble, posted: Posted, start_watch: StartWatch
) -> None:
    feed = double.feed()
    double.answer = serve([answer_list("ServiceCIDR", [{"metadata": {"name": "a"}}])], [feed])
    start_watch(OPTIONAL)
    posted.next()

    double.answer = lambda _: answer_status(403, "no")
    feed.give(EXPIRED)
    until(lambda: len(double.requests) > 5)

    assert posted.is_quiet(0.05)


def test_an_old_server_is_asked_without_the_field_selector(
    double: ApiDouble, posted: Posted, start_watch: StartWatch
) -> None:
    feed = double.feed()

    def answer(request: Request) -> Answer:
        if "fieldSelector" in request.query:
            return answer_status(400, "field label not supported: spec.clusterIP")
        return Answer(feed) if request.is_watch else answer_list("Service", [service("a")])

    double.answer = answer
    start_watch()

    assert names_in(posted.next()[0]) == ["shop/a"]
