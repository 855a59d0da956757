"""The control socket and its lock."""

import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from proxy.control import AlreadyRunningError, LockError, hold_lock, read_dump, serve_control
from tests.waiting import until

PATIENCE_S = 60.0


class Served:
    """A control socket; its dumps are what the test puts there, and an error where nothing is left."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.dumps: list[bytes] = []
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(path))  # what a daemon leaves that was killed
        with socket.socket(socket.AF_UNIX) as client:
            self.refused_before = client.connect_ex(str(path))
        self.mask_before = os.umask(0o022)
        self.server = serve_control(path, lambda: self.dumps.pop(0))
        self.mask_after = os.umask(self.mask_before)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    made = Served(tmp_path_factory.mktemp("control") / "closeby.sock")
    yield made
    made.server.shutdown()
    made.server.server_close()


def test_a_client_gets_the_whole_dump_as_it_is_now(served: Served) -> None:
    served.dumps = [b"x" * 5_000_000, b"second"]

    assert read_dump(served.path) == b"x" * 5_000_000
    assert read_dump(served.path) == b"second"


def test_the_socket_is_for_its_owner_only_and_the_processs_mask_stays(served: Served) -> None:
    assert stat.S_IMODE(served.path.stat().st_mode) == 0o600
    assert served.mask_after == 0o022


def test_a_socket_file_that_a_dead_daemon_left_is_replaced(served: Served) -> None:
    served.dumps = [b"alive"]

    assert served.refused_before != 0
    assert read_dump(served.path) == b"alive"


def test_a_client_that_leaves_early_harms_nobody(served: Served) -> None:
    served.dumps = [b"x" * 5_000_000] * 2
    with capture_logs() as logs:
        with socket.socket(socket.AF_UNIX) as hasty:
            hasty.connect(str(served.path))
            hasty.recv(1)

        assert len(read_dump(served.path)) == 5_000_000
        until(lambda: [line["event"] for line in logs] == ["dump_cut"])


def test_a_dump_that_fails_ends_its_connection_and_not_the_server(served: Served) -> None:
    served.dumps = []

    with capture_logs() as logs:
        assert read_dump(served.path) == b""
    served.dumps = [b"fine"]

    assert read_dump(served.path) == b"fine"
    assert [(line["event"], line["log_level"]) for line in logs] == [("dump_failed", "error")]
    assert isinstance(logs[0]["exc_info"], IndexError)


def test_a_second_daemon_is_refused_until_the_first_ends(tmp_path: Path) -> None:
    path = tmp_path / "run" / "closeby.sock"
    first = hold_lock(path)

    with pytest.raises(AlreadyRunningError, match=r"another closeby runs here: it holds .*closeby\.sock\.lock"):
        hold_lock(path)

    first.close()
    hold_lock(path).close()


def test_a_place_that_cannot_hold_a_lock_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(LockError, match=r"--control-socket: can't write .*file/closeby\.sock\.lock: "):
        hold_lock(tmp_path / "file" / "closeby.sock")
