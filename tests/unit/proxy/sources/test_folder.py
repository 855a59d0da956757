from collections.abc import Mapping

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from endpointslice.decode import Changed, Listed
from endpointslice.snapshot import EMPTY, apply_events
from endpointslice.types import Kind, ServiceName, Skipped
from proxy.sources.documents import Manifest, Wrong, parse_manifest
from proxy.sources.folder import diff_objects, list_objects, merge_manifests


def manifest(path: str, *names: str, port: int = 80) -> Manifest:
    """A file with Services of those names."""
    items = [
        {"kind": "Service", "metadata": {"name": name}, "spec": {"clusterIP": "10.96.0.7", "ports": [{"port": port}]}}
        for name in names
    ]
    return parse_manifest(path, msgspec.json.encode({"kind": "List", "items": items}))


def test_the_first_file_by_path_wins_and_the_other_is_reported() -> None:
    first, second = manifest("a.json", "web", port=1), manifest("b.json", "web", "api", port=2)

    objects = merge_manifests([second, first])

    assert objects[Kind.SERVICE, "default/web"] == first.changes[0]
    assert objects[Kind.SERVICE, "default/api"] == second.changes[1]
    assert objects[Kind.SERVICE, "file:b.json"].skipped == (
        Skipped("Service default/web", Wrong.REPEATED_OBJECT, "b.json: already in a.json"),
    )


def test_the_first_document_of_a_file_wins() -> None:
    objects = merge_manifests([manifest("a.json", "web", "web")])

    assert set(objects) == {(Kind.SERVICE, "default/web"), (Kind.SERVICE, "file:a.json")}


def test_what_is_wrong_with_a_file_is_an_entry_without_object() -> None:
    broken = parse_manifest("sub/a.json", b"{")
    objects = merge_manifests([broken])

    assert objects == {
        (Kind.SERVICE, "file:sub/a.json"): Changed(Kind.SERVICE, "file:sub/a.json", None, broken.problems)
    }
    snapshot, touched = apply_events(EMPTY, objects.values())
    assert not snapshot.services
    assert snapshot.skipped[Kind.SERVICE, "file:sub/a.json"] == broken.problems
    assert touched.services <= {ServiceName("file:sub/a.json")}


def test_every_kind_is_listed_even_if_there_is_none() -> None:
    lists = list_objects(merge_manifests([manifest("a.json", "web")]))

    assert {listed.kind for listed in lists} == set(Kind)
    assert [len(listed.objects) for listed in lists if listed.kind is Kind.SERVICE] == [1]
    assert sum(len(listed.objects) for listed in lists) == 1


def test_slices_are_derived_across_files() -> None:
    service = (
        b'{"kind": "Service", "metadata": {"name": "web"}, "spec": {"clusterIP": "10.96.0.7", "selector": {"a": "b"}}}'
    )
    pod = b'{"kind": "Pod", "metadata": {"name": "p", "labels": {"a": "b"}}, "status": {"podIP": "10.0.0.1"}}'
    own = b"""{"kind": "EndpointSlice", "metadata": {"name": "own", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4", "endpoints": []}"""
    files = [parse_manifest("a.json", service), parse_manifest("b.json", pod)]

    assert (Kind.ENDPOINT_SLICE, "default/web-derived-ipv4") in merge_manifests(files)
    with_own = merge_manifests([*files, parse_manifest("c.json", own)])
    assert [name for kind, name in with_own if kind is Kind.ENDPOINT_SLICE] == ["default/own"]


folders = st.dictionaries(
    st.sampled_from(["a.json", "b.json", "c/d.json"]),
    st.tuples(st.lists(st.sampled_from(["web", "api", "db"]), max_size=3), st.integers(1, 3)),
)
Files = Mapping[str, tuple[list[str], int]]


def objects_of(files: Files) -> Mapping[tuple[Kind, str], Changed]:
    return merge_manifests(manifest(path, *names, port=port) for path, (names, port) in files.items())


@given(folders, folders)
def test_the_changes_lead_from_one_state_to_the_other(before: Files, after: Files) -> None:
    old, new = objects_of(before), objects_of(after)
    from_list, _ = apply_events(EMPTY, list_objects(new))
    by_changes, _ = apply_events(EMPTY, [*list_objects(old), *diff_objects(old, new)])

    assert by_changes == from_list
    assert diff_objects(new, new) == ()


@given(folders, st.randoms())
def test_the_order_of_files_does_not_matter(files: Files, random: object) -> None:
    shuffled = list(files.items())
    random.shuffle(shuffled)  # type: ignore[attr-defined]

    assert objects_of(dict(shuffled)) == objects_of(files)


def test_a_list_replaces_what_was_there() -> None:
    old, _ = apply_events(EMPTY, list_objects(objects_of({"a.json": (["web"], 1)})))
    new, _ = apply_events(old, list_objects(objects_of({"a.json": (["api"], 1)})))

    assert set(new.services) == {ServiceName("default/api")}
    assert all(isinstance(listed, Listed) for listed in list_objects({}))
