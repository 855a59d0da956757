"""EFFECT: HTTP to the API server, over connections that the kubernetes package's configuration makes; bodies stay raw.

After a 401 the configuration is loaded anew: that reads token files, runs exec plugins, takes new client certificates.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

import msgspec
import urllib3
from kubernetes.client import Configuration
from kubernetes.client.rest import RESTClientObject
from kubernetes.config import ConfigException
from urllib3.exceptions import HTTPError, ProtocolError, ReadTimeoutError

from proxy.config import ConfigError

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
        self.silent = silent  # nothing came within the read time-out
        super().__init__(f"{status} {self.reason}" if status else self.reason)


class _Status(msgspec.Struct, frozen=True):
    """The API's answer to what it refuses; a proxy's error page is none and is never quoted."""

    kind: str
    message: str = ""


class _Client:
    """One configuration and its connections."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self.pool: urllib3.PoolManager = RESTClientObject(configuration).pool_manager

    def headers(self) -> dict[str, str]:
        """Headers of a request, with the token of this moment."""
        settings: Mapping[str, Mapping[str, Any]] = self.configuration.auth_settings()
        token = settings.get("BearerToken", {}).get("value")
        return {"Accept": "application/json", "User-Agent": "closeby"} | ({"Authorization": token} if token else {})


class ApiServer:
    """Requests to one API server, from any thread."""

    def __init__(self, load: Callable[[], Configuration]) -> None:
        """`load` gives a fresh Configuration or raises ConfigError; it is called now and after a 401."""
        self._load = load
        self._reloading = threading.Lock()  # against several threads that meet a 401 at once
        self._client = _Client(load())

    @property
    def host(self) -> str:
        """The server's URL, for logs."""
        return str(self._client.configuration.host)

    def get(self, path: str, query: Mapping[str, str]) -> bytes:
        """The body of a 200 answer. Raises ApiError."""
        return _read_all(self._request(path, query, _READ_TIMEOUT_S))

    def create(self, path: str, body: bytes) -> None:
        """Send an object, as JSON, to where its kind is stored. Raises ApiError."""
        _read_all(self._request(path, {}, _READ_TIMEOUT_S, body))

    def open_stream(self, path: str, query: Mapping[str, str], read_timeout_s: float) -> "Stream":
        """A watch that the server began with 200. Raises ApiError."""
        return Stream(self._request(path, query, read_timeout_s))

    def close(self) -> None:
        """Close the idle connections."""
        self._client.pool.clear()

    def _request(
        self, path: str, query: Mapping[str, str], read_timeout_s: float, body: bytes | None = None
    ) -> urllib3.BaseHTTPResponse:
        client = self._client
        try:
            response = client.pool.request(
                "GET" if body is None else "POST",
                f"{client.configuration.host}{path}{'?' if query else ''}{urlencode(query)}",
                body=body,
                headers=client.headers() | ({} if body is None else {"Content-Type": "application/json"}),
                timeout=urllib3.Timeout(connect=_CONNECT_TIMEOUT_S, read=read_timeout_s),
                retries=False,
                preload_content=False,
            )
        except (HTTPError, ConfigException, OSError) as error:
            raise _broken(error) from error
        if response.status in {_OK, _CREATED}:
            return response
        reason = _read_reason(response)
        if response.status == _UNAUTHORIZED:
            self._reload(client)
        raise ApiError(response.status, reason)

    def _reload(self, refused: _Client) -> None:
        """Replace the client whose credentials were refused, unless another thread did."""
        with self._reloading:
            if self._client is not refused:
                return
            try:
                self._client = _Client(self._load())
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
                raise _broken(error) from error
            if not piece:
                return
            yield piece

    def shut(self) -> None:
        """End the stream from another thread: its reader sees the end, or an ApiError."""
        with suppress(OSError, ValueError, RuntimeError):  # it may have ended by itself just now
            self._response.shutdown()


def _read_all(response: urllib3.BaseHTTPResponse) -> bytes:
    """The whole body. Raises ApiError."""
    try:
        return response.read()
    except HTTPError as error:
        raise _broken(error) from error
    finally:
        response.release_conn()


def _broken(error: Exception) -> ApiError:
    """What there was instead of an answer."""
    # urllib3's ProtocolError has the words and the cause as two arguments
    words = str(error.args[0]) if isinstance(error, ProtocolError) and error.args else str(error)
    return ApiError(0, words, silent=isinstance(error, ReadTimeoutError))


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
