"""Servers whose address is taken when they start."""

import socket
import threading
from socketserver import BaseServer

import pytest

from proxy.binding import Binder, ServerSpec
from proxy.config import BindAddress, ConfigError
from proxy.metrics_server import serve_metrics
from proxy.notices import Notice
from tests.loop import PATIENCE_S, metric

FAILURE = Notice("FailedToStartMetricServer", "Start", "", kind="Node", name="n1", warning=True)


class Started:
    """What was started, and that it was."""

    def __init__(self) -> None:
        self.there = threading.Event()
        self.server: BaseServer | None = None

    def serve(self, at: BindAddress) -> BaseServer:
        self.server = serve_metrics(at)
        self.there.set()
        return self.server

    def spec(self, port: int) -> ServerSpec:
        return ServerSpec("metrics", "--metrics-bind-address", BindAddress("127.0.0.1", port), self.serve, FAILURE)


def test_an_address_that_is_taken_is_told_and_tried_again_until_it_is_free() -> None:
    started = Started()
    told: list[Notice] = []
    before = metric("closeby_bind_failures_total", server="metrics")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = int(taken.getsockname()[1])
        Binder(told.append, hard_fail=False, retry_s=0.01).start(started.spec(port))
        assert not started.there.is_set()

    assert started.there.wait(PATIENCE_S)
    assert started.server is not None
    started.server.shutdown()
    started.server.server_close()
    assert metric("closeby_bind_failures_total", server="metrics") > before
    (notice,) = told
    assert notice.reason == "FailedToStartMetricServer"
    assert f"--metrics-bind-address: can't listen on 127.0.0.1:{port}" in notice.note


def test_with_the_hard_flag_it_ends_with_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        spec = Started().spec(int(taken.getsockname()[1]))
        with pytest.raises(ConfigError, match="--metrics-bind-address: can't listen on"):
            Binder(lambda _: None, hard_fail=True).start(spec)


def test_no_address_is_no_server() -> None:
    started = Started()

    Binder(lambda _: None, hard_fail=True).start(started.spec(0)._replace(address=None))

    assert started.server is None
