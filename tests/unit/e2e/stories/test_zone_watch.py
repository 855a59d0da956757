import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from e2e.stories.zone_watch import Endpoint, decode_endpoints, split_documents

DOCUMENTS = st.lists(st.dictionaries(st.text(), st.text() | st.dictionaries(st.text(), st.integers())), max_size=5)


@given(DOCUMENTS, st.sampled_from([None, 4]))
def test_documents_are_told_apart_however_they_are_indented(
    documents: list[dict[str, object]], indent: int | None
) -> None:
    text = "".join(json.dumps(document, indent=indent) + "\n" for document in documents)

    assert list(split_documents(text.splitlines(keepends=True))) == documents


@pytest.mark.parametrize(
    ("conditions", "endpoint"),
    [
        ({}, Endpoint("n1", ready=True, terminating=False)),
        ({"ready": False, "serving": True, "terminating": True}, Endpoint("n1", ready=False, terminating=True)),
    ],
)
def test_an_endpoint_is_ready_unless_said_otherwise(conditions: dict[str, bool], endpoint: Endpoint) -> None:
    assert decode_endpoints({"endpoints": [{"nodeName": "n1", "conditions": conditions}]}) == [endpoint]


@pytest.mark.parametrize("empty", [{}, {"endpoints": None}, {"endpoints": [{"conditions": {}}]}])
def test_a_slice_may_have_no_endpoint_on_a_node(empty: dict[str, object]) -> None:
    assert decode_endpoints(empty) == []
