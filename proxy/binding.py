"""EFFECT: starts the health and metrics servers, also where their address is taken at first."""

import threading
import time
from collections.abc import Callable
from socketserver import BaseServer
from typing import NamedTuple

import structlog
from prometheus_client import Counter

from proxy.config import BindAddress, ConfigError
from proxy.notices import Notice, Tell

log = structlog.get_logger()

BIND_FAILURES = Counter(
    "closeby_bind_failures", "Tries to listen on the health or metrics address that failed.", ["server"]
)

RETRY_S = 5.0  # kube-proxy's


class ServerSpec(NamedTuple):
    """One server to be."""

    name: str  # a metric's label
    flag: str
    address: BindAddress | None  # None: it is turned off
    serve: Callable[[BindAddress], BaseServer]  # raises OSError where it can't listen
    failure: Notice  # whose note is added here


class Binder:
    """Starts servers."""

    def __init__(self, tell: Tell, *, hard_fail: bool, retry_s: float = RETRY_S) -> None:
        """With `hard_fail` an address that can't be had ends the process; else it is tried again, every `retry_s`."""
        self._tell = tell
        self._hard_fail = hard_fail
        self._retry_s = retry_s

    def start(self, spec: ServerSpec) -> None:
        """Returns at once; ConfigError names the flag if the address can't be had and must be."""
        address = spec.address
        if address is None:
            return
        try:
            spec.serve(address)
        except OSError as error:
            why = f"{spec.flag}: can't listen on {address.host or '*'}:{address.port}: {error}"
            self._tell(spec.failure._replace(note=why))
            if self._hard_fail:
                raise ConfigError(why) from error
            BIND_FAILURES.labels(spec.name).inc()
            log.warning("server_unbound", flag=spec.flag, why=why, retry_s=self._retry_s)
            args = (spec, address)
            threading.Thread(target=self._retry, args=args, name=f"bind-{spec.name}", daemon=True).start()

    def _retry(self, spec: ServerSpec, address: BindAddress) -> None:
        while True:
            time.sleep(self._retry_s)
            try:
                spec.serve(address)
            except OSError:
                BIND_FAILURES.labels(spec.name).inc()
            else:
                log.info("server_bound", flag=spec.flag)
                return
