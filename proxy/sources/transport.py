"""EFFECT: HTTP to the API server, over the connections that an Access has; bodies stay raw.

After a 401 the Access is loaded anew: that reads token files, runs exec plugins, takes new client certificates.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from types import TracebackType
from typing import NamedTuple, Self
from urllib.parse import urlencode

import msgspec
import urllib3
from urllib3.exceptions import HTTPError, ProtocolError, ReadTimeoutError

from proxy.config import ConfigError
from proxy.sources.access import Access

MAX_REASON = 256
_CONNECT_TIMEOUT_S = 10.0
_READ_TIMEOUT_S = 60.0  # one answer; a page of 500 objects takes well under a second
_OK = 200
_CREATED = 201
_UNAUTHORIZED = 401
_PIECE_BYTES = 65536
_STATUS_BYTES = 16384  # a Status is a few hundred bytes


class ApiError(Exception):
    """A request or stream failed. `status` is the HTTP status, 0 if there was no HTTP answer."""

    def __init__(self, status: int, reason: str, *, silent: bool = False) -> None:
        self.status = status
        self.reason = reason[:MAX_REASON]
        self.silent = silent  # a stream had begun, and nothing came within the read time-out
        super().__init__(f"{status} {self.reason}" if status else self.reason)


class Body(NamedTuple):
    """What a request sends."""

    method: str
    content: bytes
    content_type: str = "application/json"


class _Status(msgspec.Struct, frozen=True):
    """The API's answer to what it refuses; a proxy's error page is none and is never quoted."""

    kind: str
    message: str = ""


class ApiServer:
    """Requests to one API server, from any thread."""

    def __init__(self, load: Callable[[], Access], advice: str = "") -> None:
        """`load` gives a fresh Access or raises ConfigError; it is called now and after a 401.

        `advice` is what to say if the server was never reached.
        """
        self._load = load
        self._advice = advice
        self._reloading = threading.Lock()  # against several threads that meet a 401 at once
        self._access = load()

    @property
    def host(self) -> str:
        """The server's URL, for logs."""
        return self._access.host

    def take_advice(self) -> str:
        """What to do about a server that can't be reached; only once, so that not every watch says so."""
        advice, self._advice = self._advice, ""
        return advice

    def get(self, path: str, query: Mapping[str, str]) -> bytes:
        """The body of a 200 answer. Raises ApiError."""
        return _read_all(self._request(path, query, _READ_TIMEOUT_S))

    def create(self, path: str, body: bytes) -> None:
        """Send an object, as JSON, to where its kind is stored. Raises ApiError."""
        self.send(path, Body("POST", body))

    def send(self, path: str, body: Body) -> bytes:
        """The object as it is stored after a POST, PUT or PATCH. Raises ApiError."""
        return _read_all(self._request(path, {}, _READ_TIMEOUT_S, body))

    def open_stream(self, path: str, query: Mapping[str, str], read_timeout_s: float) -> "Stream":
        """A watch that the server began with 200. Raises ApiError."""
        return Stream(self._request(path, query, read_timeout_s))

    def close(self) -> None:
        """Close the idle connections."""
        self._access.pool.clear()

    def _request(
        self, path: str, query: Mapping[str, str], read_timeout_s: float, body: Body | None = None
    ) -> urllib3.BaseHTTPResponse:
        access = self._access
        try:
            response = access.pool.request(
                "GET" if body is None else body.method,
                f"{access.host}{path}{'?' if query else ''}{urlencode(query)}",
                body=body.content if body else None,
                headers=_headers(access, body),
                timeout=urllib3.Timeout(connect=_CONNECT_TIMEOUT_S, read=read_timeout_s),
                retries=False,
                preload_content=False,
            )
        except (HTTPError, ConfigError, OSError) as error:
            raise _broken(error) from error
        if response.status in {_OK, _CREATED}:
            return response
        reason = _read_reason(response)
        if response.status == _UNAUTHORIZED:
            self._reload(access)
        raise ApiError(response.status, reason)

    def _reload(self, refused: Access) -> None:
        """Replace the Access whose credentials were refused, unless another thread did."""
        with self._reloading:
            if self._access is not refused:
                return
            try:
                self._access = self._load()
            except ConfigError as error:
                raise ApiError(_UNAUTHORIZED, f"refused, and there are no new credentials: {error}") from error


class Stream:
    """The body of a watch, piece by piece as it arrives."""

    def __init__(self, response: urllib3.BaseHTTPResponse) -> None:
        self._response = response

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._response.close()

    def __iter__(self) -> Iterator[bytes]:
        """Pieces of at least one byte, each as soon as it is here, to the end of the stream. Raises ApiError."""
        while True:
            try:
                piece = self._response.read1(_PIECE_BYTES)
            except HTTPError as error:
                raise _broken(error, silent=isinstance(error, ReadTimeoutError)) from error
            if not piece:
                return
            yield piece

    def shut(self) -> None:
        """End the stream from another thread: its reader sees the end, or an ApiError."""
        with suppress(OSError, ValueError, RuntimeError):  # it may have ended by itself just now
            self._response.shutdown()


def _headers(access: Access, body: Body | None) -> dict[str, str]:
    """Of a request, with the token of this moment."""
    authorization = access.authorization()
    return {
        "Accept": "application/json",
        "User-Agent": "closeby",
        **({"Authorization": authorization} if authorization else {}),
        **({"Content-Type": body.content_type} if body is not None else {}),
    }


def _read_all(response: urllib3.BaseHTTPResponse) -> bytes:
    """The whole body. Raises ApiError."""
    try:
        return response.read()
    except HTTPError as error:
        raise _broken(error) from error
    finally:
        response.release_conn()


def _broken(error: Exception, *, silent: bool = False) -> ApiError:
    """What there was instead of an answer. A TLS handshake that takes too long is a ReadTimeoutError, too."""
    # urllib3's ProtocolError has the words and the cause as two arguments
    words = str(error.args[0]) if isinstance(error, ProtocolError) and error.args else str(error)
    return ApiError(0, words, silent=silent)


def _read_reason(response: urllib3.BaseHTTPResponse) -> str:
    """The message of a refusal: of a Status, or the HTTP reason."""
    fallback = response.reason or "no reason given"
    try:
        status = msgspec.json.decode(response.read(_STATUS_BYTES), type=_Status)
    except (HTTPError, msgspec.DecodeError):
        return fallback
    finally:
        response.close()  # what is left unread would spoil the connection for the next request
    return status.message if status.kind == "Status" and status.message else fallback
