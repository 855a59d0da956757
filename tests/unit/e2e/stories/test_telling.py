from datetime import date

import msgspec

from e2e.stories.noticed import Lasted, Noticed, Told
from e2e.stories.telling import Result, render_results
from e2e.world.clients import Outcome

NEW = {"ClusterIPs": Noticed(9, {Outcome.REFUSED: 1}, 0, 2.0)}
TOLD = Told("closeby", "restart", NEW, {"all": Lasted(4, 0, 0, 0)}, {"it took": 3.0}, ("all",))


def test_a_result_comes_back_as_it_was_kept() -> None:
    result = Result(date(2026, 11, 30), (TOLD,))

    assert msgspec.json.decode(msgspec.json.encode(result), type=Result) == result


def test_both_proxies_stand_side_by_side_at_each_event_under_the_newer_day() -> None:
    results = [
        Result(date(2026, 11, 30), tuple(TOLD._replace(proxy="kube-proxy", event=event) for event in "ab")),
        Result(date(2026, 11, 29), tuple(TOLD._replace(event=event) for event in "ab")),
    ]

    page = render_results(results, "v1.36.3", 2)

    assert page.startswith("2026-11-30; Kubernetes v1.36.3, 2 shared cores.\n\n| event ")
    new = [line.split(" | ")[:2] for line in page.split("\n\n")[1].splitlines()[2:]]
    assert new == [["| a", "kube-proxy"], ["| a", "closeby"], ["| b", "kube-proxy"], ["| b", "closeby"]]
