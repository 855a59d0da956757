import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from endpointslice.snapshot import EMPTY, Changed, Listed, Snapshot, Touched, apply_events
from endpointslice.types import (
    IP,
    Kind,
    Node,
    NodeName,
    PodName,
    ServiceCIDR,
    ServiceName,
    Skipped,
    Slice,
    SliceName,
    Zone,
)
from tests.builders import a_slice, daemon_set, pod, service, slice_endpoint
from tests.strategies import changes, worlds

WEB = ServiceName("default/web")
DNS = ServiceName("default/dns")
NOTHING = Touched(
    services=frozenset(), nodes=frozenset(), daemon_sets=frozenset(), pods=frozenset(), service_cidrs=False
)
BROKEN = (Skipped("Service default/web", "bad-object", "x"),)


def touched(**fields: object) -> Touched:
    return msgspec.structs.replace(NOTHING, **fields)


def service_changed(**fields: object) -> Changed:
    return Changed(Kind.SERVICE, "default/web", service(**fields))


def slice_changed(piece: Slice) -> Changed:
    return Changed(Kind.ENDPOINT_SLICE, piece.name, piece)


def gone(changed: Changed) -> Changed:
    return Changed(changed.kind, changed.name, None)


def after(*events: Changed | Listed, start: Snapshot = EMPTY) -> Snapshot:
    return apply_events(start, events)[0]


ADD_WEB = service_changed()
ADD_SLICE = slice_changed(a_slice([slice_endpoint()]))
START = after(ADD_WEB, ADD_SLICE)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([], NOTHING, id="no event"),
        pytest.param([ADD_WEB], NOTHING, id="the same Service again"),
        pytest.param([service_changed(type="NodePort")], touched(services={WEB}), id="a Service differs"),
        pytest.param([service_changed(type="NodePort"), ADD_WEB], NOTHING, id="a Service differs and is as before"),
        pytest.param([gone(ADD_WEB)], touched(services={WEB}), id="a Service is gone"),
        pytest.param([gone(ADD_WEB), ADD_WEB], NOTHING, id="a Service is gone and comes back"),
        pytest.param(
            [Changed(Kind.SERVICE, "default/web", None, BROKEN)], touched(services={WEB}), id="a Service is broken"
        ),
        pytest.param([Changed(Kind.SERVICE, "default/dns", None)], NOTHING, id="a Service that nobody knew is gone"),
        pytest.param([ADD_SLICE], NOTHING, id="the same slice again"),
        pytest.param([slice_changed(a_slice())], touched(services={WEB}), id="a slice differs"),
        pytest.param(
            [slice_changed(a_slice([slice_endpoint()], triggered="later"))], NOTHING, id="only a slice's trigger (m20)"
        ),
        pytest.param(
            [slice_changed(a_slice(triggered="later"))], touched(services={WEB}), id="a slice and its trigger"
        ),
        pytest.param([slice_changed(a_slice([], "default/web-2"))], touched(services={WEB}), id="a second slice (m3)"),
        pytest.param(
            [slice_changed(a_slice([], "default/dns-1", service=DNS))],
            touched(services={DNS}),
            id="a slice of an unknown Service (m17)",
        ),
        pytest.param([gone(ADD_SLICE)], touched(services={WEB}), id="a slice is gone"),
        pytest.param([gone(ADD_SLICE), ADD_SLICE], NOTHING, id="a slice is gone and comes back"),
        pytest.param(
            [slice_changed(a_slice([slice_endpoint()], service=DNS))],
            touched(services={WEB, DNS}),
            id="a slice becomes another Service's (m19)",
        ),
        pytest.param(
            [slice_changed(a_slice([slice_endpoint()], service=DNS)), ADD_SLICE],
            NOTHING,
            id="a slice becomes another Service's and goes back",
        ),
        pytest.param(
            [Changed(Kind.NODE, "n1", Node(NodeName("n1")))], touched(nodes={NodeName("n1")}), id="a new Node"
        ),
        pytest.param(
            [Changed(Kind.DAEMON_SET, "default/agent", daemon_set())],
            touched(daemon_sets={daemon_set().name}),
            id="a new DaemonSet",
        ),
        pytest.param(
            [Changed(Kind.POD, "default/x", pod("default/x"))], touched(pods={PodName("default/x")}), id="a new Pod"
        ),
        pytest.param(
            [Changed(Kind.SERVICE_CIDR, "more", ServiceCIDR("more", ()))],
            touched(service_cidrs=True),
            id="a new ServiceCIDR",
        ),
        pytest.param([Listed(Kind.SERVICE, (ADD_WEB,))], NOTHING, id="a list of the same Services"),
        pytest.param([Listed(Kind.SERVICE, ())], touched(services={WEB}), id="a list without the Service"),
        pytest.param([Listed(Kind.ENDPOINT_SLICE, (ADD_SLICE,))], NOTHING, id="a list of the same slices"),
        pytest.param([Listed(Kind.ENDPOINT_SLICE, ())], touched(services={WEB}), id="a list without the slice"),
        pytest.param([Listed(Kind.NODE, ())], NOTHING, id="a list of no Nodes, as before"),
    ],
)
def test_touched_is_what_really_differs(events: list[Changed | Listed], expected: Touched) -> None:
    assert expected == apply_events(START, events)[1]


def test_a_slice_stays_with_its_service_and_nowhere_else() -> None:
    piece = a_slice(service=DNS)

    moved = after(slice_changed(piece), start=START)

    assert moved.slices == {DNS: {piece.name: piece}}
    assert moved.slice_services == {piece.name: DNS}


def test_a_sibling_stays_when_a_slice_moves() -> None:
    sibling = a_slice([], "default/web-2")
    start = after(slice_changed(sibling), start=START)

    moved = after(slice_changed(a_slice(service=DNS)), slice_changed(a_slice([slice_endpoint()])), start=start)

    assert start == moved


def test_the_trigger_of_a_slice_is_kept_though_it_touches_nothing() -> None:
    piece = a_slice([slice_endpoint()], triggered="later")

    assert after(slice_changed(piece), start=START).slices[WEB] == {piece.name: piece}


def test_nothing_is_left_of_what_is_gone() -> None:
    assert after(gone(ADD_SLICE), gone(ADD_WEB), start=START) == EMPTY


def test_why_an_object_is_skipped_is_kept_until_it_is_not() -> None:
    broken = Changed(Kind.SERVICE, "default/web", None, BROKEN)

    assert after(broken).skipped == {(Kind.SERVICE, "default/web"): BROKEN}
    assert after(broken, ADD_WEB).skipped == {}
    assert after(broken, gone(ADD_WEB)).skipped == {}
    assert after(broken, Listed(Kind.SERVICE, ())).skipped == {}
    assert after(broken, Listed(Kind.NODE, ())).skipped == {(Kind.SERVICE, "default/web"): BROKEN}


def test_what_no_event_touched_is_shared_with_the_snapshot_before() -> None:
    changed = after(service_changed(type="NodePort"), start=START)

    assert changed.slices is START.slices
    assert changed.nodes is START.nodes
    assert changed.services is not START.services


def test_the_snapshot_before_stays_as_it_was() -> None:
    before = msgspec.json.encode(msgspec.to_builtins(START.slices)), dict(START.services), dict(START.slice_services)

    after(slice_changed(a_slice()), slice_changed(a_slice([], "default/web-2")), gone(ADD_WEB), start=START)

    assert before == (
        msgspec.json.encode(msgspec.to_builtins(START.slices)),
        dict(START.services),
        dict(START.slice_services),
    )


@given(world=worlds(), data=st.data())
def test_the_order_of_events_of_different_objects_does_not_matter(world: list[Changed], data: st.DataObject) -> None:
    assert after(*world) == after(*data.draw(st.permutations(world)))


@given(world=worlds(), data=st.data())
def test_duplicates_do_not_matter(world: list[Changed], data: st.DataObject) -> None:
    repeated = data.draw(st.lists(st.sampled_from(world), max_size=6)) if world else []

    snapshot, differs = apply_events(after(*world), repeated)

    assert after(*world) == snapshot
    assert differs == NOTHING


@given(st.lists(changes, max_size=15))
def test_a_complete_list_gives_the_same_snapshot_as_the_events_that_led_to_it(events: list[Changed]) -> None:
    last = {(changed.kind, changed.name): changed for changed in events}
    lists = [
        Listed(kind, tuple(each for each in last.values() if each.kind is kind and (each.object or each.skipped)))
        for kind in Kind
    ]
    by_events = after(*events)

    assert after(*lists) == by_events
    assert apply_events(by_events, lists) == (by_events, NOTHING)


@given(before=worlds(), listed=worlds())
def test_a_complete_list_leaves_nothing_of_before(before: list[Changed], listed: list[Changed]) -> None:
    lists = [Listed(kind, tuple(each for each in listed if each.kind is kind)) for kind in Kind]

    assert after(*lists) == after(*before, *lists)


@given(before=worlds(), events=st.lists(changes, max_size=8))
def test_events_at_once_or_one_by_one_give_the_same(before: list[Changed], events: list[Changed]) -> None:
    start = after(*before)
    one_by_one = start
    for event in events:
        one_by_one = after(event, start=one_by_one)

    assert after(*events, start=start) == one_by_one


@given(before=worlds(), events=st.lists(changes, max_size=8))
def test_what_is_not_touched_is_equal(before: list[Changed], events: list[Changed]) -> None:
    start = after(*before)

    end, differs = apply_events(start, events)

    def differing(kind: str) -> set[object]:
        old, new = getattr(start, kind), getattr(end, kind)
        return {name for name in {*old, *new} if old.get(name) != new.get(name)}

    assert differing("nodes") == differs.nodes
    assert differing("daemon_sets") == differs.daemon_sets
    assert differing("pods") == differs.pods
    assert bool(differing("service_cidrs")) == differs.service_cidrs
    assert differing("services") <= differs.services <= differing("services") | differing("slices")


@given(worlds())
def test_every_slice_is_kept_once_and_where_it_belongs(world: list[Changed]) -> None:
    snapshot = after(*world)

    kept = {name: service for service, pieces in snapshot.slices.items() for name in pieces}
    assert kept == snapshot.slice_services
    assert all(pieces for pieces in snapshot.slices.values())
    assert all(piece.service == service for service, pieces in snapshot.slices.items() for piece in pieces.values())


def test_seventy_thousand_endpoints_of_one_service_are_kept() -> None:
    pieces = [
        a_slice([slice_endpoint(f"10.{high}.{low}.{last}") for last in range(100)], f"default/web-{high}-{low}")
        for high in range(7)
        for low in range(100)
    ]

    snapshot = after(*map(slice_changed, pieces))

    assert sum(len(piece.endpoints) for piece in snapshot.slices[WEB].values()) == 70_000
    assert len(snapshot.slices[WEB]) == 700


def test_ip_and_zone_are_values_of_a_node() -> None:
    plain = Changed(Kind.NODE, "n1", Node(NodeName("n1")))
    labelled = Changed(Kind.NODE, "n1", Node(NodeName("n1"), Zone("za"), (IP("10.0.0.1"),)))

    assert apply_events(after(plain), [labelled])[1] == touched(nodes={NodeName("n1")})
    assert SliceName("default/web-1") in START.slice_services
