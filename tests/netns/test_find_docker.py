"""Which dockerd a real cluster is made on: the one that is named, else ours, else the one the docker command finds."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.kind.daemon import find_docker, folder, own_name
from e2e.kind.docker import Docker
from e2e.world.netns import create_namespaces, remove_namespaces

pytestmark = pytest.mark.netns

MACHINES = "unix:///run/elsewhere/docker.sock"
DEFAULT = ""  # no DOCKER_HOST: the docker command knows where

# A docker command: `docker version` succeeds where a dockerd is said to answer.
COMMAND = """#!/bin/sh
[ "$1" = version ] && grep -qxF "at ${DOCKER_HOST:-}" "$ANSWERING"
"""


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A machine with a docker command, and a cache of its own, where no dockerd of ours was ever started."""
    command = tmp_path / "bin" / "docker"
    command.parent.mkdir()
    command.write_text(COMMAND)
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}:/usr/sbin:/usr/bin:/sbin:/bin")
    monkeypatch.setenv("ANSWERING", str(tmp_path / "answering"))
    monkeypatch.setenv("CLOSEBY_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    answer_at(tmp_path)
    yield tmp_path
    remove_namespaces([own_name()])


def answer_at(machine: Path, *hosts: str) -> None:
    """There, and nowhere else, a dockerd answers."""
    (machine / "answering").write_text("".join(f"at {host}\n" for host in hosts))


def start_ours() -> Docker:
    """What there is of a dockerd of ours: its namespace and its socket."""
    create_namespaces([own_name()])
    socket = folder() / "run" / "docker.sock"
    socket.parent.mkdir(parents=True)
    socket.touch()
    return Docker(socket, own_name())


def test_there_may_be_none() -> None:
    assert find_docker() is None


def test_there_may_be_no_docker_command(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (machine / "bin" / "docker").unlink()
    monkeypatch.setenv("PATH", str(machine / "bin"))

    assert find_docker() is None


def test_the_machines_is_taken_and_reached_from_where_we_are(machine: Path) -> None:
    answer_at(machine, DEFAULT)

    docker = find_docker()

    assert docker == Docker(socket=None, netns=None)
    assert docker.inside(["kubectl"]) == ["kubectl"]


def test_docker_host_comes_first(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer_at(machine, MACHINES)
    assert find_docker() is None

    monkeypatch.setenv("DOCKER_HOST", MACHINES)

    ours = start_ours()
    answer_at(machine, MACHINES, f"unix://{ours.socket}")

    docker = find_docker()
    assert docker == Docker(socket=None, netns=None)
    assert docker.environment()["DOCKER_HOST"] == MACHINES


def test_ours_comes_first_since_its_clusters_are_there(machine: Path) -> None:
    ours = start_ours()
    answer_at(machine, DEFAULT, f"unix://{ours.socket}")

    assert find_docker() == ours


def test_what_a_crash_left_of_ours_hides_no_other(machine: Path) -> None:
    start_ours()
    answer_at(machine, DEFAULT)

    assert find_docker() == Docker(socket=None, netns=None)
