"""The announcer's commands: mistakes answered in one plain sentence that names the flag."""

from pathlib import Path

import pytest

from tests.unit.proxy.cli.conftest import RunCloseby


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["--keys", "{folder}"], "--keys: {folder}: no key; its files are named 1, 2, ..", id="no key"),
        pytest.param(["--keys", "{folder}/none"], "--keys: {folder}/none: No such file", id="no folder"),
        pytest.param(["--keys", "{keys}", "--gateway", "router"], '--gateway: "router" is not an address', id="a name"),
        pytest.param(["--keys", "{keys}", "--peer", "1.2.3"], '--peer: "1.2.3" is not an address', id="half of one"),
        pytest.param(["--keys", "{keys}", "--grace", "30"], '--grace: "30" is not a duration', id="no unit"),
        pytest.param(["--profile", "faster"], "Invalid value for '--profile'", id="no such profile"),
        pytest.param(["--port", "70000"], "Invalid value for '--port'", id="no such port"),
    ],
)
def test_a_wrong_flag_of_announce_ends_with_two(
    run_closeby: RunCloseby, tmp_path: Path, arguments: list[str], words: str
) -> None:
    keys = tmp_path / "folder" / "keys"
    keys.mkdir(parents=True)
    (keys / "1").write_bytes(b"a key of the tests, long enough")
    places = {"folder": str(tmp_path / "folder"), "keys": str(keys)}

    code, _, err = run_closeby("announce", *(argument.format(**places) for argument in arguments))

    assert code == 2
    assert words.format(**places) in err


@pytest.mark.parametrize("command", [["who-announces"], ["drain"]], ids=["who-announces", "drain"])
def test_where_no_announcer_runs_that_is_said(run_closeby: RunCloseby, tmp_path: Path, command: list[str]) -> None:
    code, _, err = run_closeby(*command, "--announcer-control", str(tmp_path / "none.sock"))

    assert code == 1
    assert "no announcer answers at" in err


def test_who_announces_wants_an_address(run_closeby: RunCloseby) -> None:
    code, _, err = run_closeby("who-announces", "web")

    assert code == 2
    assert 'VIP: "web" is not an address' in err
