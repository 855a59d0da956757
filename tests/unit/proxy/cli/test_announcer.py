"""The announcer's commands: mistakes answered in one plain sentence that names the flag."""

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from endpointslice.types import IP, NodeName
from proxy.announcer.control import serve_control
from proxy.announcer.status import CandidateStatus, Status, VipStatus
from proxy.cli.move import why_not
from proxy.l2.types import Channel
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
        pytest.param(["--realtime-priority", "100"], "Invalid value for '--realtime-priority'", id="no such priority"),
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


COMMANDS = [["who-announces"], ["drain"], ["move", "192.0.2.1", "n1"]]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda each: each[0])
def test_where_no_announcer_runs_that_is_said(run_closeby: RunCloseby, tmp_path: Path, command: list[str]) -> None:
    code, _, err = run_closeby(*command, "--announcer-control", str(tmp_path / "none.sock"))

    assert code == 1
    assert "no announcer answers at" in err


@pytest.mark.parametrize("command", [["who-announces", "web"], ["move", "web", "n1"]], ids=lambda each: each[0])
def test_a_name_is_no_address(run_closeby: RunCloseby, command: list[str]) -> None:
    code, _, err = run_closeby(*command)

    assert code == 2
    assert 'VIP: "web" is not an address' in err


def candidate(node: str, why: str = "eligible") -> CandidateStatus:
    return CandidateStatus(NodeName(node), why, "none", 0, None)


HELD = VipStatus(
    IP("192.0.2.1"),
    Channel("192.0.2.0/24"),
    NodeName("n1"),
    "hold",
    1,
    "",
    (),
    (candidate("n1"), candidate("n2"), candidate("n3", "node-cordoned")),
)
STATUS = Status(NodeName("n1"), False, False, True, 0.0, (), (HELD,), ())  # noqa: FBT003


@pytest.mark.parametrize(
    ("status", "vip", "node", "why"),
    [
        pytest.param(STATUS, "192.0.2.1", "n2", "", id="it may"),
        pytest.param(STATUS, "192.0.2.2", "n2", "this node's announcer knows no such address", id="no such address"),
        pytest.param(STATUS, "192.0.2.1", "n1", "this node has it already", id="no move at all"),
        pytest.param(STATUS, "192.0.2.1", "n3", "n3 may not have it: node-cordoned", id="not fit"),
        pytest.param(STATUS, "192.0.2.1", "n4", "n4 runs no announcer that is heard here", id="no such node"),
        pytest.param(replace(STATUS, node=NodeName("n2")), "192.0.2.1", "n2", "n1 answers for it", id="not the owner"),
    ],
)
def test_a_move_that_can_not_be_is_told_why(status: Status, vip: str, node: str, why: str) -> None:
    found = why_not(status, IP(vip), NodeName(node))

    assert found.startswith(why)
    assert bool(found) == bool(why)


MET = "which is no node's, answers for it"


@pytest.mark.parametrize(
    ("owner", "mac", "words"),
    [
        pytest.param("n1", "02:00:00:00:00:99", f"192.0.2.1: 02:00:00:00:00:99, {MET}", id="beside an owner"),
        pytest.param("", "02:00:00:00:00:99", f"192.0.2.1: 02:00:00:00:00:99, {MET}, so nobody takes it", id="alone"),
        pytest.param("n1", "de:ab:38:cd:a5:e0", f"192.0.2.1: de:ab:38:cd:a5:e0, {MET}", id="as emoji are named"),
    ],
)
def test_a_foreign_host_is_named(run_closeby: RunCloseby, tmp_path: Path, owner: str, mac: str, words: str) -> None:
    met = replace(HELD, owner=NodeName(owner), foreign=mac)
    path = tmp_path / "announcer.sock"
    server = serve_control(path, lambda _: msgspec.json.encode(replace(STATUS, vips=(met,))))

    code, out, _ = run_closeby("who-announces", "192.0.2.1", "--announcer-control", str(path))
    server.shutdown()
    server.server_close()

    assert code == 0
    assert words in " ".join(out.split())


def test_an_address_and_a_problem_are_shown_letter_by_letter(run_closeby: RunCloseby, tmp_path: Path) -> None:
    vip = "fd00:100::1"
    problem = "L2Advertisement metallb-system/one: nodeSelectors[0].key: [red]: b:a:b"
    status = replace(STATUS, vips=(replace(HELD, vip=IP(vip)),), no_interface=(IP(vip),), problems=(problem,))
    path = tmp_path / "announcer.sock"
    server = serve_control(path, lambda _: msgspec.json.encode(status))

    _, out, _ = run_closeby("who-announces", vip, "--announcer-control", str(path))
    server.shutdown()
    server.server_close()

    rows = [" ".join(line.split()) for line in out.splitlines()]
    assert f"{vip} 192.0.2.0/24 n1 hold n1: eligible, none" in rows
    assert f"{vip}: this node has no interface in its subnet (no-interface)" in rows
    assert f"not used: {problem}" in rows
