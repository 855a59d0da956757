"""Writes an image file of folders: one tar that docker, containerd, podman and kind load.

The same input gives the same bytes.

The OCI image layout, with docker's manifest.json beside it; layers as gzip.
"""

import gzip
import hashlib
import io
import json
import os
import stat
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

_MEDIA = "application/vnd.oci.image."
_LEVEL = 6  # of gzip: 9 takes three times as long for a hundredth less
_CAPABILITY = "security.capability"


class Blob(NamedTuple):
    """A part of the image, found by its digest."""

    media_type: str
    content: bytes

    @property
    def digest(self) -> str:
        """sha256 in hex."""
        return hashlib.sha256(self.content).hexdigest()

    def describe(self) -> dict[str, object]:
        """An OCI descriptor."""
        return {"mediaType": self.media_type, "digest": f"sha256:{self.digest}", "size": len(self.content)}


class Layer(NamedTuple):
    """A layer, and the digest of its content before compression."""

    blob: Blob
    diff_id: str


class Image(NamedTuple):
    """What `write_image` is told."""

    tag: str  # closeby:0.1.0
    architecture: str  # as Go and Debian name it: amd64
    created: str  # RFC 3339
    labels: Mapping[str, str]


def pack_layer(folder: Path, mtime_s: int) -> Layer:
    """The folder as a layer: everything root's, in order, of one time, with the file capabilities that it has."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in _walk(folder):
            entry = tar.gettarinfo(str(path), arcname=str(path.relative_to(folder)))
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mtime = mtime_s
            if entry.isreg():
                if _CAPABILITY in os.listxattr(path):
                    value = os.getxattr(path, _CAPABILITY)
                    entry.pax_headers = {f"SCHILY.xattr.{_CAPABILITY}": value.decode("utf-8", "surrogateescape")}
                with path.open("rb") as file:
                    tar.addfile(entry, file)
            else:
                tar.addfile(entry)
    content = raw.getvalue()
    packed = gzip.compress(content, compresslevel=_LEVEL, mtime=0)
    return Layer(Blob(f"{_MEDIA}layer.v1.tar+gzip", packed), hashlib.sha256(content).hexdigest())


def _walk(folder: Path) -> Iterator[Path]:
    """Everything below, folders before what is in them."""
    for path in sorted(folder.iterdir()):
        yield path
        if stat.S_ISDIR(path.lstat().st_mode):
            yield from _walk(path)


def image_config(image: Image, layers: Sequence[Layer]) -> Blob:
    """How the image runs."""
    run = {
        "User": "65532:65532",
        "Entrypoint": ["/usr/local/bin/closeby"],
        "Cmd": ["--help"],
        "Env": ["PATH=/usr/local/bin:/usr/bin"],
        "WorkingDir": "/",
        "Labels": dict(sorted(image.labels.items())),
    }
    config = {
        "architecture": image.architecture,
        "os": "linux",
        "created": image.created,
        "config": run,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer.diff_id}" for layer in layers]},
    }
    return Blob(f"{_MEDIA}config.v1+json", _json(config))


def write_image(path: Path, image: Image, layers: Sequence[Layer]) -> str:
    """Write the file, whole or not at all; its image id, sha256 in hex."""
    config = image_config(image, layers)
    parts = [layer.blob.describe() for layer in layers]
    whole = {"schemaVersion": 2, "mediaType": f"{_MEDIA}manifest.v1+json", "config": config.describe(), "layers": parts}
    manifest = Blob(f"{_MEDIA}manifest.v1+json", _json(whole))
    name, _, version = image.tag.rpartition(":")
    named = {"io.containerd.image.name": full_name(image.tag), "org.opencontainers.image.ref.name": version}
    index = {"schemaVersion": 2, "manifests": [manifest.describe() | {"annotations": named}]}
    blobs = [config, manifest, *(layer.blob for layer in layers)]
    docker = {
        "Config": f"blobs/sha256/{config.digest}",
        "RepoTags": [f"{name}:{version}"],
        "Layers": [f"blobs/sha256/{layer.blob.digest}" for layer in layers],
    }
    files = {f"blobs/sha256/{blob.digest}": blob.content for blob in blobs}
    files |= {"index.json": _json(index), "manifest.json": _json([docker])}
    files["oci-layout"] = _json({"imageLayoutVersion": "1.0.0"})
    partial = path.with_name(f"{path.name}.partial")
    with tarfile.open(partial, "w", format=tarfile.PAX_FORMAT) as tar:
        for file, content in files.items():
            entry = tarfile.TarInfo(file)
            entry.size, entry.mode = len(content), 0o644
            tar.addfile(entry, io.BytesIO(content))
    partial.replace(path)
    return config.digest


def full_name(tag: str) -> str:
    """The name as containerd has it: a short one is docker.io's."""
    first, slash, _ = tag.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return tag
    return f"docker.io/{tag}" if slash else f"docker.io/library/{tag}"


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
