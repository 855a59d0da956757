"""Images as `docker save` writes them, which docker, containerd and kind all load: layers, a config, a manifest.

One archive may hold many images; a layer that several share is in it once.
Format: the image specification v1.2 (github.com/moby/docker-image-spec), gzipped layers as every reader takes them.
"""

import gzip
import hashlib
import io
import json
import platform
import shutil
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, NamedTuple

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}  # as Go names them
_EPOCH = "1970-01-01T00:00:00Z"  # equal input makes equal images
_COMPRESSION = 1  # of layers that are read once or twice


class Layer(NamedTuple):
    """A gzipped tar."""

    path: Path
    diff_id: str  # "sha256:.." of the tar itself
    size_bytes: int = 0


class Image(NamedTuple):
    """Layers from the bottom, and how they are run."""

    tag: str  # with its registry
    layers: tuple[Layer, ...]
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    user: str = ""


def pack_programs(
    path: Path, programs: Mapping[str, Path], links: Mapping[str, str], files: Mapping[str, bytes] | None = None
) -> Layer:
    """Write a layer of programs (path in the image -> file here), symbolic links (path -> target) and small files."""
    with path.open("wb") as raw, gzip.GzipFile("", "wb", _COMPRESSION, raw, mtime=0) as packed:
        hashed = _Hashed(packed)
        with tarfile.open(fileobj=hashed, mode="w|", format=tarfile.PAX_FORMAT) as tar:
            for name, program in sorted(programs.items()):
                entry = tarfile.TarInfo(name.lstrip("/"))
                entry.size, entry.mode = program.stat().st_size, 0o755
                with program.open("rb") as content:
                    tar.addfile(entry, content)
            for name, content_bytes in sorted((files or {}).items()):
                entry = tarfile.TarInfo(name.lstrip("/"))
                entry.size, entry.mode = len(content_bytes), 0o644
                tar.addfile(entry, io.BytesIO(content_bytes))
            for name, target in sorted(links.items()):
                entry = tarfile.TarInfo(name.lstrip("/"))
                entry.type, entry.linkname = tarfile.SYMTYPE, target
                tar.addfile(entry)
    return Layer(path, hashed.digest(), path.stat().st_size)


def pack_tar(tar: IO[bytes], path: Path) -> Layer:
    """Write a layer from a tar that is read as a stream."""
    with path.open("wb") as raw, gzip.GzipFile("", "wb", _COMPRESSION, raw, mtime=0) as packed:
        hashed = _Hashed(packed)
        shutil.copyfileobj(tar, hashed, 1 << 20)
    return Layer(path, hashed.digest(), path.stat().st_size)


def write_archive(path: Path, images: Iterable[Image]) -> None:
    """Write the images into one archive."""
    manifest = []
    with tarfile.open(path, "w") as tar:
        stored: set[str] = set()
        for image in images:
            for layer in image.layers:
                if layer.diff_id not in stored:
                    tar.add(layer.path, _name_of(layer))
                    stored.add(layer.diff_id)
            config = render_image_config(image)
            name = hashlib.sha256(config).hexdigest() + ".json"
            if name not in stored:
                _add_bytes(tar, name, config)
                stored.add(name)
            layers = [_name_of(layer) for layer in image.layers]
            manifest.append({"Config": name, "RepoTags": [image.tag], "Layers": layers})
        _add_bytes(tar, "manifest.json", json.dumps(manifest).encode())


def render_image_config(image: Image) -> bytes:
    """The image's configuration."""
    machine = platform.machine()
    run: dict[str, object] = {"Env": [f"PATH={PATH}"], "WorkingDir": "/"}
    if image.entrypoint:
        run["Entrypoint"] = list(image.entrypoint)
    if image.command:
        run["Cmd"] = list(image.command)
    if image.user:
        run["User"] = image.user
    config = {
        "architecture": _ARCHITECTURES.get(machine, machine),
        "os": "linux",
        "created": _EPOCH,
        "config": run,
        "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in image.layers]},
        "history": [{"created": _EPOCH, "created_by": "closeby"} for _ in image.layers],
    }
    return json.dumps(config, sort_keys=True).encode()


def _name_of(layer: Layer) -> str:
    return layer.diff_id.removeprefix("sha256:") + "/layer.tar"


def _add_bytes(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    tar.addfile(entry, io.BytesIO(content))


class _Hashed(io.RawIOBase):
    """Writes through to another file, and hashes what passes."""

    def __init__(self, inner: gzip.GzipFile) -> None:
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
