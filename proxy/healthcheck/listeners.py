"""EFFECT: the listening sockets of health-check ports, opened and closed by what differs."""

import selectors
import socket
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import structlog
from prometheus_client import Counter, Gauge

from endpointslice.types import IP
from proxy.healthcheck.checks import Check
from proxy.notices import Notice, Tell

log = structlog.get_logger()

OPEN_PORTS = Gauge("closeby_health_check_ports", "Health-check node ports that are open.")
LISTEN_FAILURES = Counter("closeby_health_check_listen_failures", "Tries to open a health-check node port that failed.")

_BACKLOG = 128
_IP_FREEBIND = 15  # linux/in.h; Python 3.11 has no name for it


class At(NamedTuple):
    """Where one socket listens."""

    ip: IP
    port: int


class Listeners:
    """Sockets by place, registered with a selector under their place; used by one thread."""

    def __init__(self, selector: selectors.BaseSelector, tell: Tell) -> None:
        self._selector = selector
        self._tell = tell
        self._open: dict[At, socket.socket] = {}
        self._failed: dict[At, str] = {}

    @property
    def incomplete(self) -> bool:
        """Whether a wanted socket could not be opened."""
        return bool(self._failed)

    def replace(self, checks: Mapping[int, Check], addresses: Iterable[IP]) -> None:
        """Have exactly these ports open on these addresses; what can't be opened is told once, and tried next time."""
        wanted = {At(ip, port) for port in checks for ip in addresses}
        for at in self._open.keys() - wanted:
            self._close(at)
        self._failed = {at: why for at, why in self._failed.items() if at in wanted}
        for at in sorted(wanted - self._open.keys()):
            self._try_open(at, checks[at.port])
        OPEN_PORTS.set(len({at.port for at in self._open}))

    def close(self) -> None:
        """Close all."""
        self.replace({}, ())

    def _try_open(self, at: At, check: Check) -> None:
        try:
            listener = _listen(at)
        except OSError as error:
            LISTEN_FAILURES.inc()
            why = error.strerror or str(error)
            if self._failed.get(at) != why:
                log.warning("health_check_port_unopened", service=check.service, ip=at.ip, port=at.port, why=why)
                self._tell(_failure_notice(at, check, why))
            self._failed[at] = why
            return
        self._failed.pop(at, None)
        self._open[at] = listener
        self._selector.register(listener, selectors.EVENT_READ, at)
        log.debug("health_check_port_opened", service=check.service, ip=at.ip, port=at.port)

    def _close(self, at: At) -> None:
        listener = self._open.pop(at)
        self._selector.unregister(listener)
        listener.close()
        log.debug("health_check_port_closed", ip=at.ip, port=at.port)


def _failure_notice(at: At, check: Check, why: str) -> Notice:
    namespace, _slash, name = check.service.partition("/")
    return Notice(
        reason="FailedToStartServiceHealthcheck",
        action="Listen",
        note=f"can't listen on {at.ip} port {at.port} for health checks: {why}",
        kind="Service",
        name=name,
        namespace=namespace,
        warning=True,
    )


def _listen(at: At) -> socket.socket:
    """A listening socket that doesn't block. An address that the host doesn't have yet is no error."""
    listener = socket.socket(socket.AF_INET6 if ":" in at.ip else socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setblocking(False)  # noqa: FBT003 (the standard library's signature)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.IPPROTO_IP, _IP_FREEBIND, 1)
        if listener.family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind((at.ip, at.port))
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener
