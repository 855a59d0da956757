"""Requests to etcd through its JSON gateway, over its Unix socket."""

import base64
import http.client
import json
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

_TIMEOUT_S = 10.0
_TXN_OPERATIONS = 128  # --max-txn-ops
_TXN_BYTES = 1_000_000  # below --max-request-bytes, 1.5 MiB


class _UnixConnection(http.client.HTTPConnection):
    """HTTP to a socket file."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=_TIMEOUT_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(_TIMEOUT_S)
        self.sock.connect(str(self._path))


class EtcdError(Exception):
    """etcd refused a request."""


def advance_and_compact(socket_file: Path) -> int:
    """The revision below which etcd now remembers nothing; above every one that was handed out before the call."""
    put = _post(socket_file, "/v3/kv/put", {"key": "L2Nsb3NlYnktZTJl", "value": ""})  # base64 of /closeby-e2e
    revision = int(put["header"]["revision"])
    _post(socket_file, "/v3/kv/compaction", {"revision": revision, "physical": True})
    return revision


def put_all(socket_file: Path, entries: Iterable[tuple[str, bytes]]) -> Iterator[int]:
    """Stores the values under the keys, many a transaction; after each of these, how many it stored."""
    for part in _cut(entries):
        puts = [{"requestPut": {"key": _encode(key.encode()), "value": _encode(value)}} for key, value in part]
        _post(socket_file, "/v3/kv/txn", {"success": puts})
        yield len(part)


def _cut(entries: Iterable[tuple[str, bytes]]) -> Iterator[list[tuple[str, bytes]]]:
    part: list[tuple[str, bytes]] = []
    size = 0
    for key, value in entries:
        if part and (len(part) == _TXN_OPERATIONS or size + len(value) > _TXN_BYTES):
            yield part
            part, size = [], 0
        part.append((key, value))
        size += len(value)
    if part:
        yield part


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _post(socket_file: Path, path: str, body: dict[str, Any]) -> dict[str, Any]:
    connection = _UnixConnection(socket_file)
    try:
        connection.request("POST", path, json.dumps(body))
        answer = connection.getresponse()
        text = answer.read()
    finally:
        connection.close()
    if answer.status != http.HTTPStatus.OK:
        raise EtcdError(f"{path}: {answer.status} {text.decode(errors='replace')[:256]}")
    decoded: dict[str, Any] = json.loads(text)
    return decoded
