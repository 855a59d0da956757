import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from proxy.config import ConfigError
from proxy.sources.access import Access
from proxy.sources.credentials import load_kubeconfig
from proxy.sources.transport import MAX_REASON, ApiError, ApiServer, Body
from tests.unit.proxy.sources.api_double import (
    CUT,
    END,
    PATIENCE_S,
    Answer,
    ApiDouble,
    Request,
    answer_json,
    answer_status,
)


@pytest.fixture
def api(double: ApiDouble, tmp_path: Path) -> Iterator[ApiServer]:
    kubeconfig = double.kubeconfig(tmp_path / "config")
    api = ApiServer(lambda: load_kubeconfig(kubeconfig))
    yield api
    api.close()


def test_a_body_comes_back_as_it_is(api: ApiServer, double: ApiDouble) -> None:
    double.answer = lambda _: Answer([b'{"a"', b": 1}"])

    assert api.get("/api/v1/services", {"limit": "5", "labelSelector": "!a,b=c"}) == b'{"a": 1}'
    assert double.requests == [Request("/api/v1/services", {"limit": "5", "labelSelector": "!a,b=c"}, "")]


@pytest.mark.parametrize(
    ("answer", "status", "reason"),
    [
        pytest.param(answer_status(403, "no services for you"), 403, "no services for you", id="a Status"),
        pytest.param(answer_status(500, "x" * 900), 500, "x" * MAX_REASON, id="a long Status is cut"),
        pytest.param(answer_json({"secret": 1}, 502), 502, "Bad Gateway", id="a body that is no Status isn't quoted"),
        pytest.param(Answer([b"<html>secret"], 503), 503, "Service Unavailable", id="a page of a proxy isn't quoted"),
        pytest.param(Answer([], 302), 302, "Found", id="a redirect isn't followed"),
        pytest.param(Answer([b"{", CUT]), 0, "Connection broken", id="a body cut off"),
    ],
)
def test_failures_are_told_apart(answer: Answer, status: int, reason: str, api: ApiServer, double: ApiDouble) -> None:
    double.answer = lambda _: answer

    with pytest.raises(ApiError) as caught:
        api.get("/api", {})

    assert caught.value.status == status
    assert caught.value.reason.startswith(reason)
    assert not caught.value.silent


def test_no_server_is_status_0(tmp_path: Path, double: ApiDouble) -> None:
    kubeconfig = double.kubeconfig(tmp_path / "config")
    with socket.socket() as unused:  # bound, not listening: refused
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        api = ApiServer(lambda: load_kubeconfig(kubeconfig, f"http://127.0.0.1:{port}"))
        with pytest.raises(ApiError) as caught:
            api.get("/api", {})

    assert caught.value.status == 0
    assert "refused" in caught.value.reason


def test_a_stream_gives_each_piece_when_it_comes(api: ApiServer, double: ApiDouble) -> None:
    feed = double.feed()
    double.answer = lambda _: Answer(feed)
    with api.open_stream("/api", {}, PATIENCE_S) as stream:
        pieces = iter(stream)
        for piece in (b"one", b"two"):
            feed.give(piece)
            assert next(pieces) == piece
        feed.give(END)
        assert list(pieces) == []


@pytest.mark.parametrize(
    ("piece", "patience_s", "silent"),
    [
        pytest.param(b"half a line", 3.0, True, id="nothing more comes"),  # the server, too, must begin within so long
        pytest.param(CUT, PATIENCE_S, False, id="the connection breaks"),
    ],
)
def test_a_silent_stream_is_told_from_a_broken_one(
    piece: bytes | None,
    patience_s: float,
    silent: bool,  # noqa: FBT001  # a column of the table
    api: ApiServer,
    double: ApiDouble,
) -> None:
    feed = double.feed()
    double.answer = lambda _: Answer(feed)
    feed.give(piece)

    with api.open_stream("/api", {}, patience_s) as stream, pytest.raises(ApiError) as caught:
        list(stream)

    assert (caught.value.status, caught.value.silent) == (0, silent)


def test_a_server_too_busy_to_begin_is_no_silent_stream(tmp_path: Path, double: ApiDouble) -> None:
    """Nothing is known of our version then, so there is no reason to list anew."""
    kubeconfig = double.kubeconfig(tmp_path / "config")
    with socket.create_server(("127.0.0.1", 0)) as busy:
        api = ApiServer(lambda: load_kubeconfig(kubeconfig, f"http://127.0.0.1:{busy.getsockname()[1]}"))
        with pytest.raises(ApiError) as caught:
            api.open_stream("/api", {}, 0.1)

    assert (caught.value.status, caught.value.silent) == (0, False)


def test_a_stream_can_be_shut_while_its_reader_waits(api: ApiServer, double: ApiDouble) -> None:
    double.answer = lambda _: Answer(double.feed())
    ended = threading.Event()

    with api.open_stream("/api", {}, PATIENCE_S) as stream:

        def read() -> None:
            try:
                list(stream)
            except ApiError:
                pass
            finally:
                ended.set()

        reader = threading.Thread(target=read)
        reader.start()
        time.sleep(0.05)  # it waits for a piece by now, most likely
        stream.shut()

        assert ended.wait(PATIENCE_S / 2)
        reader.join()


def test_a_stream_that_has_ended_can_be_shut_again(api: ApiServer, double: ApiDouble) -> None:
    double.answer = lambda _: Answer([b"all"])
    with api.open_stream("/api", {}, PATIENCE_S) as stream:
        assert list(stream) == [b"all"]
        stream.shut()


def test_a_token_file_that_was_rotated_is_read_after_a_401(double: ApiDouble, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("first\n")
    kubeconfig = double.kubeconfig(tmp_path / "config", tokenFile="token")
    api = ApiServer(lambda: load_kubeconfig(kubeconfig))
    double.answer = lambda request: (
        answer_status(401, "no") if request.authorization != "Bearer second" else answer_json({})
    )

    (tmp_path / "token").write_text("second\n")
    with pytest.raises(ApiError) as caught:
        api.get("/api", {})
    body = api.get("/api", {})

    assert caught.value.status == 401
    assert body == b"{}"
    assert [request.authorization for request in double.requests] == ["Bearer first", "Bearer second"]
    api.close()


def test_threads_that_are_refused_at_once_load_the_credentials_once(double: ApiDouble, tmp_path: Path) -> None:
    kubeconfig = double.kubeconfig(tmp_path / "config")
    loads: list[float] = []

    def load() -> Access:
        loads.append(time.monotonic())
        return load_kubeconfig(kubeconfig)

    api = ApiServer(load)
    together = threading.Barrier(3)

    def refuse(_: Request) -> Answer:
        together.wait(PATIENCE_S)
        return answer_status(401, "no")

    def get() -> None:
        with pytest.raises(ApiError):
            api.get("/api", {})

    double.answer = refuse
    threads = [threading.Thread(target=get) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)

    assert len(loads) == 2  # the first one, and one for all three
    api.close()


def test_an_exec_plugin_runs_again_after_a_401(double: ApiDouble, tmp_path: Path) -> None:
    (tmp_path / "credential").write_text("first")
    plugin = tmp_path / "plugin"
    plugin.write_text(
        "#!/bin/sh\n"
        'echo \'{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1",'
        ' "status": {"token": "\'$(cat ' + str(tmp_path / "credential") + ")'\"}}'\n"
    )
    plugin.chmod(0o755)
    exec_ = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin), "interactiveMode": "Never"}
    kubeconfig = double.kubeconfig(tmp_path / "config", exec=exec_)
    api = ApiServer(lambda: load_kubeconfig(kubeconfig))
    double.answer = lambda request: (
        answer_status(401, "no") if request.authorization != "Bearer second" else answer_json({})
    )

    (tmp_path / "credential").write_text("second")
    with pytest.raises(ApiError):
        api.get("/api", {})

    assert api.get("/api", {}) == b"{}"
    api.close()


def test_credentials_that_can_not_be_loaded_again_leave_the_old_ones(double: ApiDouble, tmp_path: Path) -> None:
    kubeconfig = double.kubeconfig(tmp_path / "config", token="old")  # noqa: S106  # of the double
    api = ApiServer(lambda: load_kubeconfig(kubeconfig))
    double.answer = lambda _: answer_status(401, "no")
    kubeconfig.write_text("")

    with pytest.raises(ApiError, match="there are no new credentials") as caught:
        api.get("/api", {})

    assert caught.value.status == 401
    double.answer = lambda _: answer_json({})
    assert api.get("/api", {}) == b"{}"
    assert double.requests[-1].authorization == "Bearer old"
    api.close()


def test_a_configuration_that_fails_at_the_start_is_the_operators_to_mend(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--kubeconfig .*/none: No such file"):
        ApiServer(lambda: load_kubeconfig(tmp_path / "none"))


@pytest.mark.parametrize("method", ["PUT", "PATCH", "POST"])
def test_what_is_sent_comes_back_as_it_is_stored(api: ApiServer, double: ApiDouble, method: str) -> None:
    double.answer = lambda _: answer_json({"stored": True})

    stored = api.send("/path", Body(method, b"{}", "application/merge-patch+json"))

    assert stored == b'{"stored": true}'
    (request,) = double.requests
    assert (request.method, request.content_type, request.body) == (method, "application/merge-patch+json", b"{}")
