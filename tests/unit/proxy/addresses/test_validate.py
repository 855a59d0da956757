from pathlib import Path

import click.testing
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.__main__ import closeby
from proxy.addresses.validate import Document, Finding, judge, read_documents

POOL = """
apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: %s, namespace: metallb-system}
spec: {addresses: [%s]}
"""


SPREAD = "metadata.annotations[closeby.dev/spread-clients]"
PLAIN = "\n{kind: L2Advertisement, apiVersion: metallb.io/v1beta1, metadata: {name: plain}}\n"


def spreading(name: str, asked: str = "true", spec: str = "") -> str:
    annotations = f'{{closeby.dev/spread-clients: "{asked}"}}'
    metadata = f"{{name: {name}, annotations: {annotations}}}"
    return f"\n{{kind: L2Advertisement, apiVersion: metallb.io/v1beta1, metadata: {metadata}, spec: {{{spec}}}}}\n"


def said(text: str, namespace: str = "metallb-system") -> list[str]:
    parts = [*read_documents("f.yaml", text.encode())]
    documents = [part for part in parts if isinstance(part, Document)]
    broken = [part for part in parts if isinstance(part, Finding)]
    return [*map(str, broken), *map(str, judge(documents, namespace).findings)]


def pool(name: str, *addresses: str) -> str:
    return POOL % (name, ", ".join(addresses))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        pytest.param(pool("a", "192.0.2.0/30"), [], id="a good pool"),
        pytest.param(
            pool("a", "192.0.2.0/30") + "---" + pool("b", "192.0.2.2/31"),
            [
                (
                    "f.yaml document 2: IPAddressPool b: spec.addresses[0]: 192.0.2.2-192.0.2.3 overlaps "
                    "192.0.2.0-192.0.2.3 of pool a"
                )
            ],
            id="two that overlap",
        ),
        pytest.param(
            pool("a", "192.0.2.0/30") + "---" + pool("a", "192.0.2.8/30"),
            ["f.yaml document 2: IPAddressPool a: metadata.name: f.yaml document 1 has a pool of this name, too"],
            id="two of one name",
        ),
        pytest.param(
            pool("a", "192.0.2.0/30").replace("metallb-system", "default"),
            [
                (
                    'f.yaml document 1: IPAddressPool a: metadata.namespace: "default" isn\'t where the '
                    "controller reads: metallb-system (--namespace)"
                )
            ],
            id="another namespace",
        ),
        pytest.param(
            pool("a", "192.0.2.0/30").replace("addresses:", "address:"),
            [
                'f.yaml document 1: IPAddressPool a: spec.address: there is no such field; did you mean "addresses"?',
                "f.yaml document 1: IPAddressPool a: spec.addresses: none given",
            ],
            id="a misspelt field",
        ),
        pytest.param(
            pool("a", "192.0.2.0/30").replace("[192.0.2.0/30]", "3"),
            ["f.yaml document 1: IPAddressPool a: spec.addresses: Expected `array | null`, got `int`"],
            id="a field of another type",
        ),
        pytest.param(
            pool("a", "192.0.2.0/30").replace("v1beta1", "v1beta2"),
            [
                (
                    'f.yaml document 1: IPAddressPool a: apiVersion: "metallb.io/v1beta2" isn\'t read; it must be '
                    "metallb.io/v1beta1"
                )
            ],
            id="another version",
        ),
        pytest.param(
            "{kind: BGPPeer, apiVersion: metallb.io/v1beta2, metadata: {name: p}}",
            ["f.yaml document 1: BGPPeer p: closeby doesn't read this kind"],
            id="a kind that isn't read",
        ),
        pytest.param("{kind: Pod, apiVersion: v1, metadata: {name: p}}", [], id="somebody else's object"),
        pytest.param(
            pool("office", "192.0.2.0/30") + "---\n{kind: L2Advertisement, apiVersion: metallb.io/v1beta1, "
            "metadata: {name: x}, spec: {ipAddressPools: [offce]}}",
            [
                (
                    'f.yaml document 2: L2Advertisement x: spec.ipAddressPools[0]: no pool "offce" is among these '
                    'files; did you mean "office"?'
                )
            ],
            id="a pool that isn't there",
        ),
        pytest.param("- a", ["f.yaml document 1: kind: none given: this is no object"], id="no object"),
        pytest.param("a: [", ["f.yaml document 1: not YAML: line "], id="no YAML"),
        pytest.param(
            "{apiVersion: v1, kind: List, items: [{kind: L2Advertisement, apiVersion: metallb.io/v1beta1, "
            "metadata: {name: x}, spec: {interfaces: [a, a]}}]}",
            ['f.yaml document 1 items[0]: L2Advertisement x: spec.interfaces[1]: "a" is repeated'],
            id="an item of a List",
        ),
        pytest.param(
            "{apiVersion: v1, kind: Service, metadata: {name: s, annotations: {metallb.io/address-pol: x, "
            'metallb.io/loadBalancerIPs: "192.0.2.1,192.0.2.2"}}, spec: {type: LoadBalancer}}',
            [
                (
                    "f.yaml document 1: Service s: metadata.annotations: FamilyMismatch: 192.0.2.1, 192.0.2.2: more "
                    "than one address of a family is asked for"
                ),
                (
                    "f.yaml document 1: Service s: metadata.annotations[metallb.io/address-pol]: nobody reads this; "
                    'did you mean "address-pool"?'
                ),
            ],
            id="a Service's annotations",
        ),
        pytest.param(spreading("x"), [], id="an advertisement that spreads clients"),
        pytest.param(
            spreading("x", "yes"),
            [
                (
                    f'f.yaml document 1: L2Advertisement x: {SPREAD}: "yes" is neither "true" nor "false": clients '
                    "aren't spread"
                )
            ],
            id="one that says so in another word",
        ),
        pytest.param(
            spreading("x", spec="preferredNodeSelectors: [{weight: 1, preference: {}}]"),
            [
                (
                    f"f.yaml document 1: L2Advertisement x: {SPREAD}: spec.preferredNodeSelectors prefer nodes, so "
                    "clients aren't spread"
                )
            ],
            id="one that prefers nodes",
        ),
        pytest.param(
            pool("a", "192.0.2.0/30") + "---" + spreading("x", spec="ipAddressPools: [a]") + "---" + PLAIN,
            [
                (
                    f"f.yaml document 2: L2Advertisement x: {SPREAD}: L2Advertisement plain is for pool a, too, and "
                    "doesn't ask for this: clients aren't spread"
                )
            ],
            id="one beside another that doesn't",
        ),
        pytest.param(
            spreading("x") + "---" + PLAIN,
            [
                (
                    f"f.yaml document 1: L2Advertisement x: {SPREAD}: L2Advertisement plain is for all pools, too, and "
                    "doesn't ask for this: clients aren't spread"
                )
            ],
            id="the same, of all pools, which are elsewhere",
        ),
        pytest.param(
            spreading("x", spec="ipAddressPools: [a]") + "---" + spreading("y", "false", spec="ipAddressPools: [b]"),
            [],
            id="two for other pools",
        ),
        pytest.param(
            spreading("x").replace("spread-clients", "spread-client"),
            [
                (
                    "f.yaml document 1: L2Advertisement x: metadata.annotations[closeby.dev/spread-client]: nobody "
                    'reads this; did you mean "spread-clients"?'
                )
            ],
            id="a misspelt annotation of an advertisement",
        ),
        pytest.param(
            '{apiVersion: v1, kind: Service, metadata: {name: s, annotations: {closeby.dev/spread-clients: "true"}}}',
            [f"f.yaml document 1: Service s: {SPREAD}: nobody reads this; it belongs on an L2Advertisement"],
            id="a Service that asks for clients to be spread",
        ),
        pytest.param(
            "kind: Service\napiVersion: v1", ["f.yaml document 1: Service: metadata.name: none given"], id="no name"
        ),
    ],
)
def test_what_is_said(text: str, lines: list[str]) -> None:
    found = said(text)

    assert len(found) == len(lines)
    for line, beginning in zip(found, lines, strict=True):
        assert line.startswith(beginning)


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["spec", "metadata", "addresses", "kind", "name", "annotations"]), inner, max_size=4
            )
        ),
    )
)
def test_no_document_is_an_exception(value: object) -> None:
    for kind in ("IPAddressPool", "L2Advertisement"):
        document = {"apiVersion": "metallb.io/v1beta1", "kind": kind, "metadata": value, "spec": value}
        judge([Document("d", document), Document("e", value)], "metallb-system")
    judge([Document("d", {"apiVersion": "v1", "kind": "Service", "metadata": value, "spec": value})], "metallb-system")


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        (pool("a", "192.0.2.0/30"), 0, "All is well: 1 IPAddressPool."),
        (pool("a", "x"), 1, "closeby: 1 mistake in 1 IPAddressPool"),
        ("{kind: BGPPeer, apiVersion: metallb.io/v1beta2, metadata: {name: p}}", 0, "note: "),
    ],
)
def test_the_command_ends_with_a_code(tmp_path: Path, text: str, code: int, words: str) -> None:
    (tmp_path / "p.yaml").write_text(text)
    (tmp_path / "readme.txt").write_text("no manifest")

    for source in (tmp_path, tmp_path / "p.yaml"):
        ended = click.testing.CliRunner().invoke(closeby, ["validate", "-f", str(source)])

        assert ended.exit_code == code
        assert words in ended.output


def test_standard_input_is_a_file_too() -> None:
    ended = click.testing.CliRunner().invoke(closeby, ["validate", "-f", "-"], input=pool("a", "192.0.2.0/30"))

    assert ended.output == "All is well: 1 IPAddressPool.\n"
