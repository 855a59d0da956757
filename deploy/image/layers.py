"""EFFECT: layers of images: gzipped tars, known by the digests of the tar and of the file.

The same input gives the same bytes.
"""

import gzip
import hashlib
import io
import os
import shutil
import stat
import tarfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, NamedTuple

_SMALL = 6  # of gzip, for layers that are shipped: 9 takes three times as long for a hundredth less
_FAST = 1  # for layers that are read once or twice
_CAPABILITY = "security.capability"


class Layer(NamedTuple):
    """A gzipped tar."""

    path: Path
    diff_id: str  # "sha256:.." of the tar itself
    digest: str  # "sha256:.." of the file
    size_bytes: int  # of the file


def pack_folder(path: Path, folder: Path, mtime_s: int) -> Layer:
    """The folder as a layer: everything root's, in order, of one time, with the file capabilities that it has."""

    def write(layer: IO[bytes]) -> None:
        with tarfile.open(fileobj=layer, mode="w|", format=tarfile.PAX_FORMAT) as tar:
            for inside in _walk(folder):
                entry = tar.gettarinfo(str(inside), arcname=str(inside.relative_to(folder)))
                entry.uid = entry.gid = 0
                entry.uname = entry.gname = ""
                entry.mtime = mtime_s
                if entry.isreg():
                    if _CAPABILITY in os.listxattr(inside):
                        value = os.getxattr(inside, _CAPABILITY).decode("utf-8", "surrogateescape")
                        entry.pax_headers = {f"SCHILY.xattr.{_CAPABILITY}": value}
                    with inside.open("rb") as file:
                        tar.addfile(entry, file)
                else:
                    tar.addfile(entry)

    return _pack(path, _SMALL, write)


def pack_programs(
    path: Path, programs: Mapping[str, Path], links: Mapping[str, str], files: Mapping[str, bytes] | None = None
) -> Layer:
    """A layer of programs (path in the image -> file here), symbolic links (path -> target) and small files."""

    def write(layer: IO[bytes]) -> None:
        with tarfile.open(fileobj=layer, mode="w|", format=tarfile.PAX_FORMAT) as tar:
            for name, program in sorted(programs.items()):
                entry = tarfile.TarInfo(name.lstrip("/"))
                entry.size, entry.mode = program.stat().st_size, 0o755
                with program.open("rb") as content:
                    tar.addfile(entry, content)
            for name, text in sorted((files or {}).items()):
                entry = tarfile.TarInfo(name.lstrip("/"))
                entry.size, entry.mode = len(text), 0o644
                tar.addfile(entry, io.BytesIO(text))
            for name, target in sorted(links.items()):
                entry = tarfile.TarInfo(name.lstrip("/"))
                entry.type, entry.linkname = tarfile.SYMTYPE, target
                tar.addfile(entry)

    return _pack(path, _FAST, write)


def pack_tar(path: Path, tar: IO[bytes]) -> Layer:
    """A layer of a tar that is read as a stream."""
    return _pack(path, _FAST, lambda layer: shutil.copyfileobj(tar, layer, 1 << 20))


def read_layer(path: Path, diff_id: str) -> Layer:
    """A layer that was packed earlier."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Layer(path, diff_id, f"sha256:{digest}", path.stat().st_size)


def _pack(path: Path, level: int, write: Callable[[IO[bytes]], None]) -> Layer:
    with path.open("wb") as file:
        packed = _Hashed(file)
        with gzip.GzipFile("", "wb", level, packed, mtime=0) as zipped:
            plain = _Hashed(zipped)
            write(plain)  # type: ignore[arg-type]  # they only write
    return Layer(path, plain.digest(), packed.digest(), path.stat().st_size)


def _walk(folder: Path) -> Iterator[Path]:
    """Everything below, folders before what is in them."""
    for path in sorted(folder.iterdir()):
        yield path
        if stat.S_ISDIR(path.lstat().st_mode):
            yield from _walk(path)


class _Hashed(io.RawIOBase):
    """Writes through to another file, and hashes what passes."""

    def __init__(self, inner: IO[bytes] | gzip.GzipFile) -> None:
        self._inner = inner
        self._hash = hashlib.sha256()

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        view = memoryview(data)  # type: ignore[arg-type]  # any buffer
        self._hash.update(view)
        self._inner.write(view)
        return view.nbytes

    def digest(self) -> str:
        return f"sha256:{self._hash.hexdigest()}"
