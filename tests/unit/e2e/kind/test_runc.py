from pathlib import Path

import pytest

from e2e.kind.runc import specs_in, without_missing

GIVEN = ["CAP_SYS_ADMIN", "CAP_SYS_RESOURCE", "CAP_NET_RAW"]
LEFT = ["CAP_SYS_ADMIN", "CAP_NET_RAW"]


@pytest.mark.parametrize(
    ("arguments", "specs"),
    [
        pytest.param("--root /run create --bundle /b --pid-file /p id", ["/b/config.json"], id="create"),
        pytest.param("run -b /b id", ["/b/config.json"], id="the short flag"),
        pytest.param("--log /l exec --process /p.json --detach id", ["/p.json"], id="exec"),
        pytest.param("kill --all id 9", [], id="nothing is granted"),
    ],
)
def test_specs_in(arguments: str, specs: list[str]) -> None:
    assert list(specs_in(arguments.split())) == [Path(spec) for spec in specs]


def test_the_capability_is_taken_out_of_every_set_of_a_container() -> None:
    spec = {"process": {"capabilities": {"bounding": GIVEN, "effective": GIVEN, "ambient": None}}, "hostname": "n"}
    capabilities = {"bounding": LEFT, "effective": LEFT, "ambient": []}
    assert without_missing(spec) == {"process": {"capabilities": capabilities}, "hostname": "n"}


def test_the_capability_is_taken_out_of_a_process() -> None:
    assert without_missing({"capabilities": {"bounding": GIVEN}}) == {"capabilities": {"bounding": LEFT}}


def test_a_process_without_capabilities_stays_as_it_is() -> None:
    assert without_missing({"args": ["sh"]}) == {"args": ["sh"]}
