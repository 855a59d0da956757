"""What a watch asks for, and what it posts."""

from endpointslice.decode import Listed
from proxy.sources.server_version import Version
from proxy.sources.watch import Before
from tests.unit.proxy.sources.api_double import (
    CUT,
    END,
    ApiDouble,
    Posted,
    answer_json,
    answer_list,
    answer_status,
    event,
    service,
)
from tests.unit.proxy.sources.watching import EXPIRED, SERVICES, StartWatch, names_in, ports_of, serve
from tests.waiting import until

BOOKMARK = event("BOOKMARK", {"kind": "Service", "metadata": {"resourceVersion": "50"}})


def test_a_list_is_posted_whole_however_many_pages_it_takes(
    double: ApiDouble, posted: Posted, start_watch: StartWatch
) -> None:
    pages = [
        answer_list("Service", [service("a")], "7", "more"),
        answer_list("Service", [service("b")], "7", "last"),
        answer_list("Service", [service("c")], "7"),
    ]
    double.answer = serve(pages, [double.feed()])
    start_watch()

    (listed,) = posted.next()

    assert names_in(listed) == ["shop/a", "shop/b", "shop/c"]
    until(lambda: len(double.watches()) == 1)
    assert [request.query.get("continue") for request in double.lists()] == [None, "more", "last"]
    assert double.watches()[0].query["resourceVersion"] == "7"


def test_every_request_has_the_selectors(double: ApiDouble, posted: Posted, start_watch: StartWatch) -> None:
    double.answer = serve([answer_list("Service", [])], [double.feed()])
    start_watch()
    posted.next()
    until(lambda: len(double.watches()) == 1)

    for request in double.requests:
        assert request.path == "/api/v1/services"
        assert request.query["labelSelector"] == "!hidden"
        assert request.query["fieldSelector"] == "spec.clusterIP!=None"
    assert double.watches()[0].query["allowWatchBookmarks"] == "true"
    assert 300 <= int(double.watches()[0].query["timeoutSeconds"]) <= 600
    assert "resourceVersion" not in double.lists()[0].query


def test_an_older_server_is_asked_with_its_own_selector_from_one_list_to_the_next(
    double: ApiDouble, posted: Posted, start_watch: StartWatch
) -> None:
    versions = [answer_json({"major": "1", "minor": minor}) for minor in ("35", "36")]
    feeds = [double.feed(), double.feed()]
    serve_lists = serve([answer_list("Service", [])], list(feeds))
    double.answer = lambda request: versions.pop(0) if request.path == "/version" else serve_lists(request)
    start_watch(SERVICES._replace(before=Before(Version(1, 36), "!hidden,!older")))
    posted.next()

    feeds[0].give(EXPIRED, END)
    posted.next()
    until(lambda: len(double.watches()) == 2)

    asked = [request.query["labelSelector"] for request in double.requests if request.path != "/version"]
    assert asked == ["!hidden,!older", "!hidden,!older", "!hidden", "!hidden"]


def test_an_expired_continue_token_starts_the_list_again(
    double: ApiDouble, posted: Posted, start_watch: StartWatch
) -> None:
    pages = [
        answer_list("Service", [service("a")], "7", "more"),
        answer_status(410, "The provided continue parameter is too old"),
        answer_list("Service", [service("b")], "8"),
    ]
    double.answer = serve(pages, [double.feed()])
    start_watch()

    (listed,) = posted.next()

    assert names_in(listed) == ["shop/b"]
    assert [request.query.get("continue") for request in double.lists()] == [None, "more", None]


def test_lines_that_come_together_are_one_batch(double: ApiDouble, posted: Posted, start_watch: StartWatch) -> None:
    feed = double.feed()
    double.answer = serve([answer_list("Service", [])], [feed])
    start_watch()
    posted.next()

    feed.give(event("ADDED", service("a", port=1)) + event("MODIFIED", service("a", port=2)))

    assert ports_of(posted.next()) == [1, 2]


def test_a_line_is_posted_when_it_is_complete(double: ApiDouble, posted: Posted, start_watch: StartWatch) -> None:
    feed = double.feed()
    double.answer = serve([answer_list("Service", [])], [feed])
    start_watch()
    posted.next()
    first, second = event("ADDED", service("a", port=1)), event("ADDED", service("b", port=2))

    feed.give(first + second[:20])
    assert ports_of(posted.next()) == [1]
    feed.give(second[20:-1])
    assert posted.is_quiet(0.1)
    feed.give(b"\n")
    assert ports_of(posted.next()) == [2]


def test_a_stream_that_ends_is_resumed_where_it_was(double: ApiDouble, posted: Posted, start_watch: StartWatch) -> None:
    first, second = double.feed(), double.feed()
    double.answer = serve([answer_list("Service", [], "7")], [first, second])
    start_watch()
    posted.next()

    first.give(event("ADDED", service("a", version="12", port=1)), BOOKMARK, END)
    assert ports_of(posted.next()) == [1]
    second.give(event("MODIFIED", service("a", version="51", port=2)))
    assert ports_of(posted.next()) == [2]

    assert [request.query["resourceVersion"] for request in double.watches()] == ["7", "50"]
    assert len(double.lists()) == 1


def test_a_line_cut_in_its_middle_is_no_event(double: ApiDouble, posted: Posted, start_watch: StartWatch) -> None:
    first, second = double.feed(), double.feed()
    double.answer = serve([answer_list("Service", [], "7")], [first, second])
    start_watch()
    posted.next()

    first.give(event("ADDED", service("a", version="12", port=1))[:-30], CUT)
    second.give(event("ADDED", service("a", version="12", port=1)))

    assert ports_of(posted.next()) == [1]
    assert [request.query["resourceVersion"] for request in double.watches()] == ["7", "7"]


def test_a_broken_object_is_posted_as_absent_with_its_reason(
    double: ApiDouble, posted: Posted, start_watch: StartWatch
) -> None:
    broken = service("a") | {"spec": {"ports": "none"}}
    double.answer = serve([answer_list("Service", [broken, service("b")])], [double.feed()])
    start_watch()

    (listed,) = posted.next()

    assert isinstance(listed, Listed)
    first, second = listed.objects
    assert (first.name, first.object) == ("shop/a", None)
    assert first.skipped
    assert second.object is not None
