"""EFFECT: which minor of Kubernetes an API server is of: /version, which every authenticated client may read."""

import re
from typing import NamedTuple

import msgspec

from endpointslice.decode import UNREADABLE
from proxy.sources.transport import ApiError, ApiServer

_PATH = "/version"
_REFUSED = frozenset({403, 404})
_NUMBER = re.compile(r"[0-9]{1,9}")  # of a minor such as "35+", as some vendors write it


class Version(NamedTuple):
    """A minor release; they compare by age."""

    major: int
    minor: int


NEWEST = Version(1_000_000_000, 0)  # of a server that doesn't say


class _Said(msgspec.Struct, frozen=True):
    """version.Info of k8s.io/apimachinery, what is read of it."""

    major: str = ""
    minor: str = ""


def decode_version(body: bytes) -> Version:
    """The server's minor; NEWEST of any other bytes."""
    try:
        said = msgspec.json.decode(body, type=_Said)
    except UNREADABLE:
        return NEWEST
    major, minor = _NUMBER.match(said.major), _NUMBER.match(said.minor)
    return Version(int(major[0]), int(minor[0])) if major and minor else NEWEST


def ask_version(api: ApiServer) -> Version:
    """The server's minor now; NEWEST where it won't tell us. ApiError where it can't be reached."""
    try:
        return decode_version(api.get(_PATH, {}))
    except ApiError as error:
        if error.status in _REFUSED:
            return NEWEST
        raise
