"""EFFECT: the clients' programs, started and read."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from e2e.lan.measure import ASK_INTERVAL_S, STREAM_INTERVAL_S, Asked, Streamed
from e2e.lan.members import TCP_PORT, UDP_PORT, VIPS, Member, cold_addresses
from e2e.world.processes import ProgramError, start_client

PROGRAMS = Path(__file__).parent
CONNECTIONS = 20
_CONNECTION_INTERVAL_S = 0.1


def start_asker(cold: Member, family: str) -> subprocess.Popen[str]:
    """The cold client."""
    order = {
        "interval_s": ASK_INTERVAL_S,
        "mac": cold.mac,
        "vip": VIPS[family],
        "senders": cold_addresses(family),
    }
    return _start(cold, "asker", order)


def start_stream(warm: Member, family: str) -> subprocess.Popen[str]:
    """The warm client's datagrams."""
    return _start(warm, "stream", {"interval_s": STREAM_INTERVAL_S, "ip": VIPS[family], "port": UDP_PORT})


def start_connections(warm: Member, family: str) -> subprocess.Popen[str]:
    """The warm client's connections, each of which asks ten times a second."""
    flow = {"protocol": "tcp", "ip": VIPS[family], "port": TCP_PORT}
    order = {"interval_s": _CONNECTION_INTERVAL_S, "flows": [flow] * CONNECTIONS}
    return _start(warm, "../world/flows", order)


def stop_asking(process: subprocess.Popen[str]) -> None:
    """The program stops asking, hears what is late, and says what it saw."""
    assert process.stdin
    process.stdin.close()


def read_asked(process: subprocess.Popen[str]) -> Asked:
    """What the cold client saw."""
    said = _read(process)
    return Asked(
        tuple(said["asked"]),
        tuple((number, moment, mac) for number, moment, mac in said["answers"]),
        tuple((moment, mac) for moment, mac in said["announced"]),
    )


def read_streamed(process: subprocess.Popen[str]) -> Streamed:
    """What the warm client saw of its datagrams."""
    said = _read(process)
    return Streamed(tuple(said["sent"]), tuple((number, moment, name) for number, moment, name in said["answers"]))


def read_broken(process: subprocess.Popen[str]) -> tuple[str, ...]:
    """What broke each connection."""
    return tuple(broken for *_, broken in _read(process))


def _start(member: Member, program: str, order: Mapping[str, object]) -> subprocess.Popen[str]:
    return start_client(member.netns, str(PROGRAMS / program), order)


def _read(process: subprocess.Popen[str]) -> Any:  # noqa: ANN401  # each program's own JSON
    assert process.stdout
    line = process.stdout.readline()
    if line.strip() == "ready":  # nobody waited for it
        line = process.stdout.readline()
    if not line:
        raise ProgramError(f"a client ended with {process.wait()}")
    return json.loads(line)
