from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from endpointslice.reasons import Reason
from endpointslice.types import Service
from proxy.sources.documents import Manifest, Wrong, keep_good, parse_manifest

WEB = """
apiVersion: v1
kind: Service
metadata: {name: web, creationTimestamp: 2026-01-02T03:04:05Z}
spec: {clusterIP: 10.96.0.7, ports: [{port: 80}]}
"""
API = WEB.replace("web", "api")
BAD_PORT = WEB.replace("port: 80", "port: many")
OTHER_KIND = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n"


def names_in(manifest: Manifest) -> list[str]:
    return [change.name for change in manifest.changes if change.object is not None]


def problems_of(manifest: Manifest) -> list[tuple[str, str]]:
    return [(problem.object, problem.reason) for problem in manifest.problems]


@pytest.mark.parametrize(
    ("path", "content", "names", "problems"),
    [
        pytest.param("a.yaml", WEB, ["default/web"], [], id="one document"),
        pytest.param("a.yaml", f"{WEB}---{API}", ["default/web", "default/api"], [], id="several documents"),
        pytest.param("a.yaml", f"---\n---{WEB}---\n# none\n", ["default/web"], [], id="empty documents are none"),
        pytest.param("a.yaml", OTHER_KIND, [], [], id="a kind that we don't read"),
        pytest.param("a.yaml", "# nothing yet\n", [], [], id="only a comment"),
        pytest.param("a.yaml", "", [], [("a.yaml", Wrong.EMPTY_FILE)], id="an empty file"),
        pytest.param("a.json", " \n", [], [("a.json", Wrong.EMPTY_FILE)], id="a blank file"),
        pytest.param("a.yaml", "kind: List\nitems: []", [], [], id="an empty List"),
        pytest.param(
            "a.yaml",
            f"{WEB}---\nweb: [\n---{API}",
            ["default/web"],
            [("a.yaml document 2", Wrong.BAD_SYNTAX)],
            id="a syntax error ends the file",
        ),
        pytest.param(
            "a.yaml",
            f"{BAD_PORT}---{API}",
            ["default/api"],
            [("a.yaml document 1: Service default/web", Reason.BAD_OBJECT)],
            id="a field of the wrong type",
        ),
        pytest.param(
            "a.yaml", f"hello\n---{WEB}", ["default/web"], [("a.yaml document 1", Wrong.NOT_AN_OBJECT)], id="a word"
        ),
        pytest.param("a.yaml", "a: 1", [], [("a.yaml document 1", Wrong.NOT_AN_OBJECT)], id="a mapping without kind"),
        pytest.param("a.yaml", "[1, 2]", [], [("a.yaml document 1", Wrong.NOT_AN_OBJECT)], id="a sequence"),
        pytest.param(
            "a.yaml", "a: !!int x", [], [("a.yaml document 1", Wrong.BAD_SYNTAX)], id="a tag that doesn't fit"
        ),
        pytest.param("a.yaml", "{[1]: 2}", [], [("a.yaml document 1", Wrong.BAD_SYNTAX)], id="a key that can't be one"),
        pytest.param(
            "a.yaml",
            "a: !!python/object:os.system x",
            [],
            [("a.yaml document 1", Wrong.BAD_SYNTAX)],
            id="a tag of Python's",
        ),
        pytest.param("a.yaml", b"a: \xff", [], [("a.yaml document 1", Wrong.BAD_SYNTAX)], id="bytes that are no UTF-8"),
        pytest.param("a.json", b'"\xff"', [], [("a.json document 1", Wrong.BAD_SYNTAX)], id="JSON that is no UTF-8"),
        pytest.param("a.json", "{", [], [("a.json document 1", Wrong.BAD_SYNTAX)], id="half a JSON file"),
        pytest.param("a.json", b"[" * 100_000, [], [("a.json document 1", Wrong.BAD_SYNTAX)], id="JSON too deep"),
        pytest.param("a.json", WEB, [], [("a.json document 1", Wrong.BAD_SYNTAX)], id="YAML named JSON"),
    ],
)
def test_what_a_file_holds(path: str, content: str | bytes, names: list[str], problems: list[tuple[str, str]]) -> None:
    manifest = parse_manifest(path, content.encode() if isinstance(content, str) else content)

    assert (names_in(manifest), problems_of(manifest)) == (names, problems)
    assert manifest.whole is not bool(problems)


def test_the_field_is_named() -> None:
    (problem,) = parse_manifest("a.yaml", BAD_PORT.encode()).problems

    assert "$.spec.ports[0].port" in problem.detail


def test_the_line_is_named() -> None:
    (problem,) = parse_manifest("a.yaml", f"{WEB}---\na: 1\n b: 2\n".encode()).problems

    assert problem.detail.startswith("line 8 column 3: ")


def test_a_list_is_taken_apart_and_a_typed_one_too() -> None:
    one = {"metadata": {"name": "one"}, "spec": {"clusterIP": "10.96.0.1", "ports": [{"port": 1}]}}
    listed = parse_manifest("a.json", msgspec.json.encode({"kind": "List", "items": [one | {"kind": "Service"}]}))
    typed = parse_manifest("a.json", msgspec.json.encode({"kind": "ServiceList", "items": [one]}))

    assert names_in(listed) == names_in(typed) == ["default/one"]
    assert listed.ingredients == typed.ingredients
    assert listed.ingredients


def test_an_unquoted_timestamp_is_text() -> None:
    (change,) = parse_manifest("a.yaml", WEB.encode()).changes

    assert isinstance(change.object, Service)
    assert change.object.created == "2026-01-02T03:04:05Z"


GOOD = parse_manifest("a.yaml", WEB.encode())
BROKEN = parse_manifest("a.yaml", f"{API}---{BAD_PORT}".encode())
WORSE = parse_manifest("a.yaml", b"")


@pytest.mark.parametrize(
    ("versions", "names", "problems"),
    [
        pytest.param([GOOD], ["default/web"], GOOD.problems, id="a whole file"),
        pytest.param([BROKEN], ["default/api"], BROKEN.problems, id="broken from the start: its good documents"),
        pytest.param([GOOD, BROKEN], ["default/web"], BROKEN.problems, id="broken later: the last whole version"),
        pytest.param(
            [GOOD, BROKEN, WORSE], ["default/web"], WORSE.problems, id="broken twice: the problems are the newest"
        ),
        pytest.param([GOOD, BROKEN, GOOD], ["default/web"], (), id="mended"),
        pytest.param([BROKEN, WORSE], [], WORSE.problems, id="never whole: the newest"),
    ],
)
def test_the_last_whole_version_stands(versions: list[Manifest], names: list[str], problems: object) -> None:
    kept: Manifest | None = None
    for version in versions:
        kept = keep_good(kept, version)

    assert kept is not None
    assert (names_in(kept), kept.problems) == (names, problems)


objects = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["Service", "ConfigMap", "EndpointSlice", "Node"]),
        "metadata": st.fixed_dictionaries(
            {"name": st.text(min_size=1), "labels": st.dictionaries(st.text(), st.text())}
        ),
        "spec": st.fixed_dictionaries(
            {
                "clusterIP": st.sampled_from(["10.96.0.1", "fd00::1", "None", ""]),
                "ports": st.lists(st.fixed_dictionaries({"port": st.integers(1, 65535), "name": st.text()})),
            }
        ),
    }
)


@given(st.lists(objects, min_size=1))
def test_yaml_and_json_say_the_same(documents: list[dict[str, Any]]) -> None:
    as_yaml = parse_manifest("a.yaml", yaml.dump_all(documents, Dumper=yaml.CSafeDumper).encode())
    as_json = parse_manifest("a.json", msgspec.json.encode({"kind": "List", "items": documents}))

    assert as_yaml.changes == as_json.changes
    assert as_yaml.ingredients == as_json.ingredients


@given(st.binary())
def test_any_bytes_give_a_manifest(content: bytes) -> None:
    for path in ("a.yaml", "a.json"):
        manifest = parse_manifest(path, content)

        assert manifest.whole is not bool(manifest.problems)
