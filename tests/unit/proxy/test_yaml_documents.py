"""YAML from anyone: what is refused, and that nothing else comes of any bytes."""

import contextlib

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from endpointslice.types import Kind
from proxy.sources.documents import parse_manifest
from proxy.yaml_documents import YamlError, iter_yaml
from tests.fuzz_inputs import damaged, odd_objects

SERVICE = b"""kind: Service
metadata: {name: web, labels: &labels {app: web, tier: front}}
spec: {clusterIP: 10.96.0.7, selector: {<<: *labels}, ports: [{port: 80}]}
---
kind: Pod
metadata: {name: a, labels: *labels, creationTimestamp: 2026-01-01T00:00:00Z}
"""
LAUGHS = "a0: &a0 [x]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, 12)
)
MERGES = "a0: &a0 {a: 1, b: 2}\n" + "".join(
    f"a{level}: &a{level} {{<<: [{', '.join([f'*a{level - 1}'] * 2000)}], k{level}: 1}}\n" for level in range(1, 40)
)
BASE_60 = "1" + ":1" * 100_000


@pytest.mark.parametrize(
    ("content", "value"),
    [
        pytest.param("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z", id="a timestamp is text"),
        pytest.param("1:30", "1:30", id="a number of base 60 is text"),
        pytest.param("1:30.5", "1:30.5", id="so is one with a fraction"),
        pytest.param("[1_000, 0x1F, 0b11, -7, 017]", [1000, 31, 3, -7, 15], id="numbers"),
        pytest.param("[1.5, -.inf, 2.0e+3, .5]", [1.5, float("-inf"), 2000.0, 0.5], id="fractions"),
        pytest.param("[yes, on, ~, '']", [True, True, None, ""], id="words"),
        pytest.param("{<<: {a: 1, b: 2}, b: 3}", {"a": 1, "b": 3}, id="a merge key"),
        pytest.param("[&a [1], *a, *a]", [[1], [1], [1]], id="an alias"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_what_a_document_is(content: str, value: object) -> None:
    assert ([*iter_yaml(content.encode())] or [None]) == [value]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(LAUGHS, "aliases stand for too many values", id="a billion laughs"),
        pytest.param("&a [*a]", "aliases stand for too many values", id="a list in itself"),
        pytest.param(MERGES, "merge keys stand for too many values", id="merge keys upon merge keys"),
        pytest.param("&a {<<: *a}", "nested too deep", id="a mapping merged with itself"),
        pytest.param("[" * 100_000, "nesting", id="a hundred thousand brackets"),
        pytest.param("- " * 100_000, "nesting", id="a hundred thousand dashes"),
        pytest.param(f"a: !!int {BASE_60}", "is no int", id="a huge number of base 60"),
        pytest.param(f"a: !!float {BASE_60}.0", "is no float", id="a huge fraction of base 60"),
        pytest.param("a: !!bool maybe", "line 1 column 4: 'maybe' is no bool", id="a bool that is none"),
        pytest.param("a: !!int ''", "'' is no int", id="an int that is empty"),
        pytest.param("a: !!float ''", "'' is no float", id="a float that is empty"),
        pytest.param("a: !!timestamp soon", "'soon' is no timestamp", id="a timestamp that is none"),
        pytest.param("a: " + "9" * 5000, "is no int", id="a number of 5000 digits"),
        pytest.param("a: b\0c", "character", id="a NUL"),
    ],
)
def test_what_is_refused(content: str, words: str) -> None:
    with pytest.raises(YamlError, match=words):
        list(iter_yaml(content.encode()))


@given(st.one_of(st.binary(max_size=200), damaged([SERVICE, LAUGHS.encode()[:200]])))
def test_any_bytes_are_documents_or_a_yaml_error(content: bytes) -> None:
    with contextlib.suppress(YamlError):
        list(iter_yaml(content))
    parse_manifest("a.yaml", content)
    parse_manifest("a.json", content)


@given(st.lists(st.one_of([odd_objects(kind) for kind in Kind]), max_size=4))
def test_any_odd_objects_are_a_manifest(documents: list[dict[str, object]]) -> None:
    manifest = parse_manifest("a.yaml", yaml.safe_dump_all(documents).encode())

    assert all(change.object is not None or change.skipped for change in manifest.changes)
