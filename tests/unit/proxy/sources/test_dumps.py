import json
from pathlib import Path

import pytest

from endpointslice.types import Kind
from proxy.config import ConfigError
from proxy.sources.dumps import load_dump, parse_dump

SERVICE = {"kind": "Service", "metadata": {"name": "web"}, "spec": {"clusterIP": "10.96.0.7", "ports": [{"port": 80}]}}


def test_a_dump_gives_its_objects_and_what_it_says_beside_them(tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"kind": "List", "items": [SERVICE], "closeby": {"node": "n1"}}))

    dump = load_dump(path)

    assert [(change.kind, change.name) for change in dump.changes] == [(Kind.SERVICE, "default/web")]
    assert dump.facts == {"node": "n1"}


def test_what_kubectl_wrote_is_a_dump_too() -> None:
    assert parse_dump(json.dumps({"kind": "ServiceList", "items": [SERVICE]}).encode(), "x").facts == {}


def test_a_broken_object_is_skipped_with_its_field() -> None:
    broken = SERVICE | {"spec": {"ports": "none"}}
    (change,) = parse_dump(json.dumps({"items": [broken]}).encode(), "x").changes

    assert change.object is None
    assert "$.spec.ports" in change.skipped[0].detail


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(None, "No such file or directory", id="no file"),
        pytest.param("", "not a dump: Input data was truncated", id="an empty file"),
        pytest.param("{}", "missing required field `items`", id="something else"),
        pytest.param('{"items": [], "closeby": 1}', r"- at `\$.closeby`", id="a field of the wrong type"),
    ],
)
def test_what_is_no_dump_is_told_with_its_file(content: str | None, words: str, tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    if content is not None:
        path.write_text(content)

    with pytest.raises(ConfigError, match=words) as caught:
        load_dump(path)

    assert str(caught.value).startswith(f"--dump {path}: ")
