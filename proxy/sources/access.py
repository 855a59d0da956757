"""How to reach one API server: its URL, connections to it, and a token that somebody else rotates."""

import socket
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import urllib3
from urllib3.connection import HTTPConnection

from proxy.config import ConfigError

TOKEN_PERIOD_S = 60.0  # a kubelet renews a token after 80% of its hour; client-go reads the file once a minute too
_CONNECTIONS = 12  # that are kept: one for each kind, also of an announcer's, for pods and for Events
# client-go's: a connection that went silently is noticed after 30 s and 9 probes, 15 s apart.
_KEEP_ALIVE = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 9),
)


class Access(NamedTuple):
    """All that a request needs."""

    host: str  # the server's URL, without a slash at its end
    pool: urllib3.PoolManager
    authorization: Callable[[], str]  # the header of that name, as of this moment; "": none. ConfigError


class Tls(NamedTuple):
    """How the two ends prove who they are. Files are read for each connection, so they may be rotated."""

    verify: bool = True
    ca_file: str | None = None  # neither this nor data: whom the host trusts
    ca_data: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    server_name: str | None = None  # None: as in the URL


class TokenFile:
    """A bearer token in a file that somebody else rotates."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._header = ""
        self._read_at_s: float | None = None
        self.authorization()  # as it is now

    def authorization(self) -> str:
        """The header, from the file if a minute has passed. An unreadable file changes nothing."""
        now_s = self._clock()
        if self._read_at_s is not None and now_s - self._read_at_s < TOKEN_PERIOD_S:
            return self._header
        try:
            token = self._path.read_text().strip()
        except (OSError, UnicodeDecodeError):
            return self._header  # in the middle of a rotation, or gone: the token that we have may still be good
        if token:
            self._header = f"Bearer {token}"
            self._read_at_s = now_s
        return self._header


def open_access(host: str, tls: Tls, authorization: Callable[[], str]) -> Access:
    """Connections are made when they are needed."""
    pool = urllib3.PoolManager(
        cert_reqs=ssl.CERT_REQUIRED if tls.verify else ssl.CERT_NONE,
        ca_certs=tls.ca_file,
        ca_cert_data=tls.ca_data,
        cert_file=tls.cert_file,
        key_file=tls.key_file,
        server_hostname=tls.server_name,
        socket_options=[*HTTPConnection.default_socket_options, *_KEEP_ALIVE],
        maxsize=_CONNECTIONS,
    )
    return Access(host, pool, authorization)


def check_tls(host: str, tls: Tls, where: str) -> None:
    """ConfigError for certificates that can't be loaded; else it would look like a server that can't be reached."""
    if not host.startswith("https"):
        return
    field = "certificate-authority"
    try:
        context = ssl.create_default_context(cafile=tls.ca_file, cadata=tls.ca_data)
        if tls.cert_file:
            field = "client-certificate, client-key"
            context.load_cert_chain(tls.cert_file, tls.key_file)
    except OSError as error:  # ssl.SSLError is one
        raise ConfigError(f"{where}: {field}: {error}") from error
