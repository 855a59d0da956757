from typing import Any

import msgspec
import pytest
from hypothesis import given

from endpointslice.types import IP, ServiceName
from proxy.addresses.accept import Read
from proxy.addresses.allocate import Answer, Grant, World, allocate
from proxy.addresses.decode import Change, PoolObject
from proxy.addresses.plan import Write, describe_grant, plan_conflicts, plan_pools, plan_problem_notices, plan_services
from proxy.addresses.requests import Refusal, Rule
from proxy.addresses.services import CONFLICT, GRANTED
from proxy.addresses.sharing import refuse_sharing
from proxy.addresses.state import State, apply_list
from proxy.addresses.types import Condition, Conflicts, Kind, PoolStatus, Problem, Service
from tests.unit.proxy.addresses.builders import dual, pool, service
from tests.unit.proxy.addresses.test_allocate_laws import worlds

NOW = "2026-01-02T03:04:05Z"
GIVEN = Grant((IP("192.0.2.1"),), "first")
SAID = Condition("True", "Granted", "192.0.2.1 from pool first", "2026-01-01T00:00:00Z")
NO = Refusal(Rule.POOL_EXHAUSTED, "every address that it may use is taken: first")


def plan(one: Service, grant: Grant | None) -> list[Write]:
    return [*plan_services({one.name: one}, Answer({one.name: grant} if grant else {}, {}), NOW).writes]


def told(writes: list[Write]) -> list[tuple[str, bool, str]]:
    return [(notice.reason, notice.warning, notice.note) for write in writes for notice in write.notices]


def test_a_new_address_is_one_patch_of_its_version_with_ip_mode_vip() -> None:
    (write,) = plan(service("web", version="7"), GIVEN)

    assert (write.kind, write.name) == (Kind.SERVICE, "shop/web")
    assert write.patch == {
        "metadata": {"resourceVersion": "7"},
        "status": {
            "loadBalancer": {"ingress": [{"ip": "192.0.2.1", "ipMode": "VIP"}]},
            "conditions": [
                {
                    "type": GRANTED,
                    "status": "True",
                    "reason": "Granted",
                    "message": "192.0.2.1 from pool first",
                    "lastTransitionTime": NOW,
                }
            ],
        },
    }
    assert told([write]) == [("IPAllocated", False, "192.0.2.1 from pool first")]


def test_what_stands_there_is_not_written_again() -> None:
    assert plan(service("web", "192.0.2.1", granted=SAID), GIVEN) == []


def test_an_address_from_another_program_is_kept_as_it_stands_and_gets_our_condition() -> None:
    (write,) = plan(service("web", "192.0.2.1"), GIVEN)

    assert write.patch["status"].keys() == {"conditions"}
    assert told([write]) == []


def test_a_refusal_is_a_condition_and_an_event_with_the_rule() -> None:
    (write,) = plan(service("web"), Grant(refusal=NO))

    (condition,) = write.patch["status"]["conditions"]
    assert (condition["status"], condition["reason"], condition["message"]) == ("False", "PoolExhausted", NO.what)
    assert told([write]) == [("AllocationFailed", True, f"PoolExhausted: {NO.what}")]


def test_a_refusal_that_was_told_is_not_told_again() -> None:
    assert plan(service("web", granted=Condition("False", NO.rule, NO.what)), Grant(refusal=NO)) == []


def test_a_lost_address_is_cleared_and_told_with_the_rule() -> None:
    gone = Refusal(Rule.NOT_IN_A_POOL, "no pool holds 192.0.2.1")

    (write,) = plan(service("web", "192.0.2.1", granted=SAID), Grant(refusal=NO, released=gone))

    assert write.patch["status"]["loadBalancer"] == {"ingress": None}
    assert [reason for reason, _, _ in told([write])] == ["ClearAssignment", "AllocationFailed"]
    assert told([write])[0][2] == "NotInAPool: no pool holds 192.0.2.1"


def test_a_condition_keeps_its_time_while_its_status_is_the_same() -> None:
    (write,) = plan(service("web", "192.0.2.2", granted=SAID), Grant((IP("192.0.2.2"),), "first"))

    assert write.patch["status"]["conditions"][0]["lastTransitionTime"] == SAID.since


@pytest.mark.parametrize(
    ("one", "patch"),
    [
        pytest.param(service("web", wants=False), None, id="nothing of ours"),
        pytest.param(service("web", "192.0.2.1", load_balancer_class="theirs", granted=SAID), None, id="another class"),
        pytest.param(
            service("web", wants=False, granted=SAID),
            {"conditions": [{"type": GRANTED, "$patch": "delete"}]},
            id="our condition",
        ),
        pytest.param(
            service("web", "192.0.2.1", wants=False, granted=SAID),
            {"conditions": [{"type": GRANTED, "$patch": "delete"}], "loadBalancer": {"ingress": None}},
            id="our condition and an address",
        ),
    ],
)
def test_of_a_service_that_is_not_ours_what_was_ours_is_taken_away(one: Service, patch: dict[str, Any] | None) -> None:
    writes = plan(one, None)

    assert [write.patch["status"] for write in writes] == ([patch] if patch else [])


def test_a_condition_says_what_is_kept_and_what_is_short() -> None:
    kept = describe_grant(service("web", "192.0.2.1"), GIVEN._replace(refusal=NO))

    assert kept.message == f"{NO.what}; it keeps 192.0.2.1"
    assert describe_grant(dual("web"), GIVEN).message == "192.0.2.1 from pool first; no IPv6 address is free there"


def state_of(status: PoolStatus | None = None, usable: Condition | None = None, *problems: Problem) -> State:
    found = PoolObject(Read(pool("p", "192.0.2.0/30"), problems), status, usable)
    return apply_list(State(), Kind.POOL, [Change(Kind.POOL, "p", found)])


VALID = Condition("True", "Valid", "addresses are given out of it")
USAGE = PoolStatus(1, 0, 3, 0)
ANSWER = Answer({}, {"p": USAGE})


def test_a_pools_status_is_written_where_it_differs() -> None:
    (write,) = plan_pools(state_of(), ANSWER, {}, NOW)

    status = write.patch["status"]
    assert [status[f"{what}IPv{n}"] for what in ("assigned", "available") for n in (4, 6)] == [1, 0, 3, 0]
    assert (status["conditions"][0]["status"], status["conditions"][0]["reason"]) == ("True", "Valid")
    assert [*plan_pools(state_of(USAGE, VALID), ANSWER, {}, NOW)] == []
    assert [*plan_pools(state_of(PoolStatus(), VALID), ANSWER, {}, NOW)] != []


def test_a_schema_that_drops_conditions_is_not_written_for_ever() -> None:
    assert [*plan_pools(state_of(USAGE), ANSWER, {"p": VALID}, NOW)] == []
    assert [*plan_pools(state_of(PoolStatus()), ANSWER, {"p": VALID}, NOW)] != []


def test_a_pool_that_is_not_used_says_why() -> None:
    (write,) = plan_pools(state_of(None, None, Problem("spec.addresses", "none given")), ANSWER, {}, NOW)

    (condition,) = write.patch["status"]["conditions"]
    assert condition["message"] == "spec.addresses: none given; the pool isn't used"


def test_what_is_wrong_is_told_once_and_again_when_it_is_wrong_in_another_way() -> None:
    now = {(Kind.POOL, "p"): "x", (Kind.ADVERTISEMENT, "a"): "y"}

    notices = [*plan_problem_notices({(Kind.POOL, "p"): "x"}, now, "metallb-system")]

    assert [(n.kind, n.name, n.namespace, n.note, n.api_version) for n in notices] == [
        ("L2Advertisement", "a", "metallb-system", "y", "metallb.io/v1beta1")
    ]


def apply_write(one: Service, write: Write) -> Service:
    """As the API server would store it."""
    status = write.patch["status"]
    changes: dict[str, Any] = {}
    if "loadBalancer" in status:
        changes["held"] = tuple(IP(part["ip"]) for part in status["loadBalancer"]["ingress"] or ())
    for part in status.get("conditions", ()):
        changes["granted"] = Condition(part["status"], part["reason"], part["message"], part["lastTransitionTime"])
    return msgspec.structs.replace(one, **changes)


@given(worlds())
def test_once_everything_is_written_there_is_nothing_to_write(world: World) -> None:
    services: dict[ServiceName, Service] = dict(world.services)
    for _round in range(20):
        planned = plan_services(services, allocate(msgspec.structs.replace(world, services=services)), NOW)
        if not planned.writes:
            break
        for write in planned.writes:
            name = ServiceName(write.name)
            services[name] = apply_write(services[name], write)

    assert planned == ((), False)


@given(worlds())
def test_at_no_moment_an_address_is_given_to_one_while_it_stands_with_another(world: World) -> None:
    """Of those that agree at the beginning; write by write."""
    services: dict[ServiceName, Service] = dict(world.services)
    apart: set[IP] = set()
    for name, one in services.items():
        services[name] = msgspec.structs.replace(one, held=tuple(ip for ip in one.held if ip not in apart))
        apart.update(one.held)
    for _round in range(20):
        planned = plan_services(services, allocate(msgspec.structs.replace(world, services=services)), NOW)
        for write in planned.writes:
            name = ServiceName(write.name)
            services[name] = apply_write(services[name], write)
            for ip in services[name].held:
                others = [one for other, one in services.items() if other != name and ip in one.held]
                assert all(refuse_sharing(ip, one, services[name]) is None for one in others)


def test_two_that_must_change_places_give_up_first() -> None:
    a, b = service("a", "192.0.2.1"), service("b", "192.0.2.2")
    answer = Answer({a.name: Grant((IP("192.0.2.2"),), "p"), b.name: Grant((IP("192.0.2.1"),), "p")}, {})

    planned = plan_services({a.name: a, b.name: b}, answer, NOW)

    assert [write.patch["status"]["loadBalancer"] for write in planned.writes] == [{"ingress": None}] * 2
    assert planned.postponed


def test_who_takes_an_address_waits_until_the_other_has_given_it_up() -> None:
    a, b = service("a"), service("b", "192.0.2.1")
    answer = Answer({a.name: Grant((IP("192.0.2.1"),), "p"), b.name: Grant((IP("192.0.2.2"),), "p")}, {})

    planned = plan_services({a.name: a, b.name: b}, answer, NOW)

    assert [write.name for write in planned.writes] == ["shop/b"]
    assert planned.postponed


MAC = "02:00:00:00:00:09"
MET = Condition("True", "ForeignHost", f"192.0.2.1: {MAC}, which is no node's, answers for it", "2026-01-01T00:00:00Z")


def with_conflicts(one: Service, *strangers: tuple[tuple[str, str], ...]) -> State:
    """Each of so many nodes tells of these."""
    state = apply_list(State(), Kind.SERVICE, [Change(Kind.SERVICE, one.name, one)])
    told = [Change(Kind.L2_STATUS, f"shop/{at}", Conflicts(one.name, found)) for at, found in enumerate(strangers, 1)]
    return apply_list(state, Kind.L2_STATUS, told)


def test_a_foreign_host_at_an_address_is_a_condition_of_its_service_once() -> None:
    state = with_conflicts(service("web", version="7"), (("192.0.2.1", MAC),), (("192.0.2.1", MAC),), ())

    (write,) = plan_conflicts(state, NOW)

    assert (write.kind, write.name, write.notices) == (Kind.SERVICE, "shop/web", ())
    said = {"status": "True", "reason": "ForeignHost", "message": MET.message, "lastTransitionTime": NOW}
    assert write.patch == {
        "metadata": {"resourceVersion": "7"},
        "status": {"conditions": [{"type": CONFLICT, **said}]},
    }
    assert [*plan_conflicts(with_conflicts(service("web", conflict=MET), (("192.0.2.1", MAC),)), NOW)] == []


def test_the_condition_goes_when_the_host_has_gone() -> None:
    state = with_conflicts(service("web", conflict=MET), ())

    (write,) = plan_conflicts(state, NOW)

    assert write.patch["status"] == {"conditions": [{"type": CONFLICT, "$patch": "delete"}]}


def test_a_service_that_no_node_tells_of_is_left_alone() -> None:
    assert [*plan_conflicts(with_conflicts(service("web")), NOW)] == []
