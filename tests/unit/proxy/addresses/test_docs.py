"""The page of load-balancer addresses: its example is valid, its table of reasons whole, its tests there."""

import re
from pathlib import Path

from proxy.addresses.requests import Rule
from proxy.addresses.validate import Document, judge, read_documents
from proxy.l2.candidates import Why

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs" / "load-balancer.md").read_text()
PLACES = (
    *("tests/unit/proxy/addresses/test_*.py", "tests/unit/proxy/announcer/test_*.py", "tests/unit/proxy/l2/test_*.py"),
    *("tests/netns/announcer/test_*.py", "e2e/test_load_balancer_*.py", "e2e/test_announcer_*.py"),
    *("tests/unit/proxy/l2status/test_*.py", "e2e/test_l2_status.py", "e2e/test_address_conflict.py"),
)
METALLB = (ROOT / "docs" / "metallb.md").read_text()


def test_the_example_is_valid() -> None:
    example = PAGE.partition("```yaml\n")[2].partition("```")[0]
    documents = [part for part in read_documents("example.yaml", example.encode()) if isinstance(part, Document)]

    assert judge(documents, "metallb-system") == ((), {"IPAddressPool": 1, "L2Advertisement": 1, "Service": 1})


def test_every_example_of_an_advertisement_is_valid() -> None:
    examples = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[1:]
    for example in examples:
        documents = [part for part in read_documents("example.yaml", example.encode()) if isinstance(part, Document)]
        assert judge(documents, "metallb-system").findings == ()
    assert examples


def test_every_reason_code_of_a_candidate_is_explained() -> None:
    table = PAGE.partition("### Reason codes")[2].partition("### ")[0]
    listed = re.findall(r"`([a-z-]+)`", "\n".join(line.split(" | ")[0] for line in table.splitlines()))

    assert sorted(listed) == sorted(Why)


def test_every_reason_is_explained() -> None:
    table = PAGE.partition("| reason | meaning |")[2].partition("## Pools")[0]
    listed = re.findall(r"^\| (\w+) \|", table, re.MULTILINE)

    assert listed == ["Granted", *Rule]


def test_every_test_that_the_table_names_is_there() -> None:
    for path in set(re.findall(r"`((?:e2e|tests)/[\w/]+\.py)`", METALLB)):
        assert (ROOT / path).exists(), path
    code = "\n".join(path.read_text() for place in PLACES for path in ROOT.glob(place))
    names = {name.replace("_", " ") for name in re.findall(r"def test_(\w+)", code)}
    names |= set(re.findall(r'id="([^"]*)"', code))
    for sentences in re.findall(r"(?:\.py`|the same): ([^|]+) \|", METALLB):
        for sentence in re.split(r"; (?!and)", sentences.partition("; and the rows")[0]):
            assert sentence.strip(" `").removeprefix("test_").replace("_", " ") in names, sentence
