"""A small client for tests: objects are plain JSON, kinds are found by discovery, errors are the server's Status.

Objects are named as kubectl's users say them: "web" for a cluster-wide object, "shop/web" for one in a namespace.
"""

import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import urllib3
from urllib3.connection import HTTPSConnection
from urllib3.connectionpool import HTTPSConnectionPool

from e2e.controlplane.netns import connect_in

Object: TypeAlias = dict[str, Any]

MERGE_PATCH = "application/merge-patch+json"
_APPLY_PATCH = "application/apply-patch+yaml"  # JSON is YAML
_OWNER = "closeby-e2e"
_DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"  # KEP-3352
_CONNECT_TIMEOUT_S = 5.0
_READ_TIMEOUT_S = 60.0
_POOL_SIZE = 16  # threads that may load objects side by side


class ApiError(Exception):
    """The server's Status: `code` is HTTP's (404, 409, 410, 403), `reason` is Kubernetes' word for it."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(f"{code} {reason}: {message}")
        self.code = code
        self.reason = reason


class UnreachableError(Exception):
    """No whole answer: nothing listens, or the connection broke. What was asked may have been done."""


class Access(NamedTuple):
    """Where the server is, and as whom to talk to it."""

    host: str
    port: int
    ca_certificate: Path
    token: str
    netns: str | None = None  # a named namespace from which the server is reached; None: this process's


class _Resource(NamedTuple):
    prefix: str  # "/api/v1", "/apis/discovery.k8s.io/v1"
    plural: str


class Api:
    """One user's requests. Threads may share it: each takes a connection of the pool."""

    def __init__(self, access: Access) -> None:
        self._headers = {"Authorization": f"Bearer {access.token}"}
        self._pool = HTTPSConnectionPool(
            access.host,
            access.port,
            maxsize=_POOL_SIZE,
            ca_certs=str(access.ca_certificate),
            cert_reqs="CERT_REQUIRED",
            timeout=urllib3.Timeout(connect=_CONNECT_TIMEOUT_S, read=_READ_TIMEOUT_S),
            retries=False,
        )
        self._pool.ConnectionCls = _connection_class(access)
        self._resources: dict[str, _Resource] = {}

    def create(self, obj: Object) -> Object:
        """The object as stored; ApiError 409 if it exists."""
        namespace = obj["metadata"].get("namespace")
        return self.request("POST", self._collection(obj["kind"], namespace), obj)

    def apply(self, obj: Object) -> Object:
        """The object after a forced server-side apply: made, or changed where it differs. A status is left out."""
        meta = obj["metadata"]
        name = f"{meta['namespace']}/{meta['name']}" if "namespace" in meta else meta["name"]
        path = self.path(obj["kind"], name) + f"?fieldManager={_OWNER}&force=true"
        return self.request("PATCH", path, obj, _APPLY_PATCH)

    def get(self, kind: str, name: str) -> Object:
        """The object; ApiError 404 if there is none."""
        return self.request("GET", self.path(kind, name))

    def items(self, kind: str, namespace: str | None = None, *, selector: str = "") -> list[Object]:
        """All objects of the kind, of one namespace or of all; `selector` is a label selector."""
        path = self._collection(kind, namespace)
        found = self.request("GET", path + (f"?labelSelector={selector}" if selector else ""))["items"]
        return list(found)

    def patch(self, kind: str, name: str, patch: Object) -> Object:
        """The object after a JSON merge patch (null removes a field, lists are replaced whole)."""
        return self.request("PATCH", self.path(kind, name), patch, MERGE_PATCH)

    def patch_status(self, kind: str, name: str, status: Object) -> Object:
        """The object after a merge patch of its status subresource: what a kubelet or a controller would write."""
        return self.request("PATCH", self.path(kind, name) + "/status", {"status": status}, MERGE_PATCH)

    def delete(self, kind: str, name: str, *, grace_s: int = 0) -> None:
        """Deletes; a Pod on a Node stays, terminating, for as long as `grace_s` is above 0: no kubelet ends it."""
        self.request("DELETE", self.path(kind, name), {"gracePeriodSeconds": grace_s})

    def watch(self, kind: str, resource_version: str, *, timeout_s: int = 10) -> Iterator[Object]:
        """Events from that version on, until the server ends the watch; ApiError 410 if the version is too old."""
        query = f"?watch=1&resourceVersion={resource_version}&timeoutSeconds={timeout_s}"
        answer = self._send("GET", self._collection(kind, None) + query, stream=True)
        try:
            for line in _lines(answer):
                event: Object = json.loads(line)
                if event["type"] == "ERROR":
                    raise _as_error(event["object"])
                yield event
        finally:
            answer.close()

    def path(self, kind: str, name: str) -> str:
        """URL path of one object."""
        namespace, _, last = name.rpartition("/")
        return f"{self._collection(kind, namespace or None)}/{last}"

    def request(self, method: str, path: str, body: Object | None = None, content_type: str = "") -> Object:
        """The decoded answer; ApiError for any refusal, UnreachableError if no answer came."""
        answer = self._send(method, path, body, content_type)
        decoded: Object = json.loads(answer.data)
        return decoded

    def text(self, path: str) -> str:
        """Answer of a path that doesn't speak JSON: /readyz, /metrics."""
        return self._send("GET", path).data.decode()

    def _send(
        self, method: str, path: str, body: Object | None = None, content_type: str = "", *, stream: bool = False
    ) -> urllib3.BaseHTTPResponse:
        headers: Mapping[str, str] = self._headers
        if path in {"/api", "/apis"}:
            headers = {**headers, "Accept": _DISCOVERY}
        if body is not None:
            headers = {**headers, "Content-Type": content_type or "application/json"}
        encoded = None if body is None else json.dumps(body).encode()
        with _unreachable():
            answer = self._pool.urlopen(method, path, encoded, headers, preload_content=not stream)
        if answer.status >= 400:
            raise _refusal(answer)
        return answer

    def _collection(self, kind: str, namespace: str | None) -> str:
        if kind not in self._resources:
            self._resources = self._discover()  # anew on a miss: a CustomResourceDefinition may have come
        if kind not in self._resources:
            raise ApiError(404, "NotFound", f"the server knows no kind {kind}")
        prefix, plural = self._resources[kind]
        return f"{prefix}/namespaces/{namespace}/{plural}" if namespace else f"{prefix}/{plural}"

    def _discover(self) -> dict[str, _Resource]:
        """Kind -> its resource, in the server's preferred version; the core group wins where two have a kind."""
        found: dict[str, _Resource] = {}
        for root in ("/api", "/apis"):
            for group in self.request("GET", root)["items"]:
                for kind, resource in _resources_of(root, group):
                    found.setdefault(kind, resource)
        return found


def _connection_class(access: Access) -> type[HTTPSConnection]:
    """urllib3's connection with its socket opened in the namespace; `_new_conn` is the seam of its SOCKS support."""

    class Connection(HTTPSConnection):
        def _new_conn(self) -> socket.socket:
            return connect_in(access.netns, (access.host, access.port), _CONNECT_TIMEOUT_S)

    return Connection


def _resources_of(root: str, group: Object) -> Iterator[tuple[str, _Resource]]:
    """Kinds of one group of an APIGroupDiscoveryList; its versions come in the server's order of preference."""
    name = group["metadata"].get("name")  # absent: the core group
    for version in group["versions"]:
        prefix = "/".join(part for part in (root, name, version["version"]) if part)
        for resource in version["resources"]:
            yield resource["responseKind"]["kind"], _Resource(prefix, resource["resource"])


def _lines(answer: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """The events of a watch, one a line, as soon as each is whole."""
    rest = b""
    chunks = answer.stream(amt=None)
    while True:
        with _unreachable():
            chunk = next(chunks, None)
        if chunk is None:
            return
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole


@contextmanager
def _unreachable() -> Iterator[None]:
    try:
        yield
    except urllib3.exceptions.HTTPError as error:
        raise UnreachableError(str(error)) from error


def _refusal(answer: urllib3.BaseHTTPResponse) -> ApiError:
    body = answer.data
    try:
        return _as_error(json.loads(body))
    except (ValueError, KeyError):  # /readyz and proxies answer in plain text
        return ApiError(answer.status, answer.reason or "", body.decode(errors="replace")[:256])


def _as_error(status: Object) -> ApiError:
    return ApiError(status["code"], status.get("reason", ""), status.get("message", ""))
