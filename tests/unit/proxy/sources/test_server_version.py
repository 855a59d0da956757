"""Which minor an API server is of, from what it says of itself."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.sources.credentials import load_kubeconfig
from proxy.sources.server_version import NEWEST, Version, ask_version, decode_version
from proxy.sources.transport import ApiError, ApiServer
from tests.unit.proxy.sources.api_double import Answer, ApiDouble, answer_json, answer_status


@pytest.mark.parametrize(
    ("body", "version"),
    [
        pytest.param({"major": "1", "minor": "36", "gitVersion": "v1.36.3"}, Version(1, 36), id="Kubernetes' own"),
        pytest.param({"major": "1", "minor": "35+"}, Version(1, 35), id="a vendor's"),
        pytest.param({"major": "", "minor": ""}, NEWEST, id="built without a version"),
        pytest.param({"major": "1", "minor": "x"}, NEWEST, id="no number"),
        pytest.param({"major": 1, "minor": 36}, NEWEST, id="numbers where texts belong"),
        pytest.param([], NEWEST, id="another document"),
    ],
)
def test_what_a_server_says(body: object, version: Version) -> None:
    assert decode_version(json.dumps(body).encode()) == version


def test_minors_compare_as_numbers_and_no_answer_is_newer_than_all() -> None:
    assert Version(1, 9) < Version(1, 35) < Version(1, 36) < Version(2, 0) < NEWEST


@given(st.binary() | st.text().map(str.encode))
def test_any_bytes_are_a_version(body: bytes) -> None:
    assert Version(0, 0) <= decode_version(body) <= NEWEST


@pytest.mark.parametrize(
    ("answer", "version"),
    [
        pytest.param(answer_json({"major": "1", "minor": "34"}), Version(1, 34), id="it says"),
        pytest.param(answer_status(403, "not you"), NEWEST, id="it is forbidden to ask"),
        pytest.param(answer_status(404, "no such path"), NEWEST, id="something before it knows no such path"),
    ],
)
def test_a_server_that_does_not_tell_counts_as_the_newest(
    double: ApiDouble, tmp_path: Path, answer: Answer, version: Version
) -> None:
    double.answer = lambda _: answer
    kubeconfig = double.kubeconfig(tmp_path / "config")

    assert ask_version(ApiServer(lambda: load_kubeconfig(kubeconfig))) == version
    assert [request.path for request in double.requests] == ["/version"]


def test_a_server_that_fails_is_no_version(double: ApiDouble, tmp_path: Path) -> None:
    kubeconfig = double.kubeconfig(tmp_path / "config")

    with pytest.raises(ApiError, match="500"):
        ask_version(ApiServer(lambda: load_kubeconfig(kubeconfig)))
