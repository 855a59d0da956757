"""Writes images into one file, a tar that docker, containerd, podman and kind load.

The OCI image layout (image specification 1.1), with docker's manifest.json beside it. A layer that several images share
is in it once. The same input gives the same bytes.
"""

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from deploy.image.layers import Layer

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_MEDIA = "application/vnd.oci.image."
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}  # as Go and Debian name them


class Image(NamedTuple):
    """Layers from the bottom, and how they are run."""

    tag: str  # closeby:0.1.0
    layers: tuple[Layer, ...]
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    user: str = ""
    labels: Mapping[str, str] = MappingProxyType({})
    created: str = "1970-01-01T00:00:00Z"  # RFC 3339


class Blob(NamedTuple):
    """A small part of the image, found by its digest."""

    media_type: str
    content: bytes

    @property
    def digest(self) -> str:
        """As descriptors have it: "sha256:..."."""
        return f"sha256:{hashlib.sha256(self.content).hexdigest()}"

    def describe(self) -> dict[str, object]:
        """An OCI descriptor."""
        return {"mediaType": self.media_type, "digest": self.digest, "size": len(self.content)}


def architecture() -> str:
    """This machine's."""
    machine = platform.machine()
    return _ARCHITECTURES.get(machine, machine)


def image_config(image: Image) -> Blob:
    """How the image runs; its digest is the image's id."""
    run: dict[str, object] = {"Env": [f"PATH={PATH}"], "WorkingDir": "/"}
    if image.entrypoint:
        run["Entrypoint"] = image.entrypoint
    if image.command:
        run["Cmd"] = image.command
    if image.user:
        run["User"] = image.user
    if image.labels:
        run["Labels"] = dict(sorted(image.labels.items()))
    config = {
        "architecture": architecture(),
        "os": "linux",
        "created": image.created,
        "config": run,
        "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in image.layers]},
    }
    return Blob(f"{_MEDIA}config.v1+json", _json(config))


def write_archive(path: Path, images: Iterable[Image]) -> None:
    """Write the file, whole or not at all."""
    partial = path.with_name(f"{path.name}.partial")
    index, docker = [], []
    with tarfile.open(partial, "w", format=tarfile.PAX_FORMAT) as tar:
        stored: set[str] = set()
        for image in images:
            config, manifest = image_config(image), _manifest(image)
            for blob in (config, manifest):
                if blob.digest not in stored:
                    _add_bytes(tar, _place(blob.digest), blob.content)
                    stored.add(blob.digest)
            for layer in image.layers:
                if layer.digest not in stored:
                    _add_layer(tar, layer)
                    stored.add(layer.digest)
            index.append(manifest.describe() | {"annotations": _names(image.tag)})
            layers = [_place(layer.digest) for layer in image.layers]
            docker.append({"Config": _place(config.digest), "RepoTags": [image.tag], "Layers": layers})
        _add_bytes(tar, "index.json", _json({"schemaVersion": 2, "manifests": index}))
        _add_bytes(tar, "manifest.json", _json(docker))
        _add_bytes(tar, "oci-layout", _json({"imageLayoutVersion": "1.0.0"}))
    partial.replace(path)


def full_name(tag: str) -> str:
    """The name as containerd has it: a short one is docker.io's."""
    first, slash, _ = tag.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return tag
    return f"docker.io/{tag}" if slash else f"docker.io/library/{tag}"


def _manifest(image: Image) -> Blob:
    kind = f"{_MEDIA}manifest.v1+json"
    packed = f"{_MEDIA}layer.v1.tar+gzip"
    layers = [{"mediaType": packed, "digest": layer.digest, "size": layer.size_bytes} for layer in image.layers]
    config = image_config(image).describe()
    return Blob(kind, _json({"schemaVersion": 2, "mediaType": kind, "config": config, "layers": layers}))


def _names(tag: str) -> dict[str, str]:
    version = tag.rpartition(":")[2]
    return {"io.containerd.image.name": full_name(tag), "org.opencontainers.image.ref.name": version}


def _place(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def _add_layer(tar: tarfile.TarFile, layer: Layer) -> None:
    entry = tarfile.TarInfo(_place(layer.digest))
    entry.size, entry.mode = layer.size_bytes, 0o644
    with layer.path.open("rb") as content:
        tar.addfile(entry, content)


def _add_bytes(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), 0o644
    tar.addfile(entry, io.BytesIO(content))


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
