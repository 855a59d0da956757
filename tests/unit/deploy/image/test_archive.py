"""The image file: what is in it, that it is the same each time, and how a tag is written in full."""

import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest

from deploy.image.archive import Image, full_name, pack_layer, write_image

IMAGE = Image("closeby:1.2.3", "amd64", "2026-01-01T00:00:00Z", {"b": "2", "a": "1"})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    layer = tmp_path / "layer"
    (layer / "usr/bin").mkdir(parents=True)
    (layer / "usr/bin/program").write_text("#!")
    (layer / "usr/bin/program").chmod(0o755)
    (layer / "bin").symlink_to("usr/bin")
    return layer


def read(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as tar:
        return {entry.name: tar.extractfile(entry).read() for entry in tar if entry.isfile()}  # type: ignore[union-attr]


def test_a_layer_is_roots_and_has_folders_before_what_is_in_them(folder: Path) -> None:
    layer = pack_layer(folder, 1000)

    with tarfile.open(fileobj=io.BytesIO(layer.blob.content)) as tar:
        entries = tar.getmembers()
    assert [(e.name, e.mtime, e.uid, e.uname) for e in entries] == [
        (name, 1000, 0, "") for name in ("bin", "usr", "usr/bin", "usr/bin/program")
    ]
    assert entries[0].linkname == "usr/bin"
    assert entries[-1].mode == 0o755


def test_the_same_input_is_the_same_image_whenever_it_was_written(folder: Path, tmp_path: Path) -> None:
    first = write_image(tmp_path / "first.tar", IMAGE, [pack_layer(folder, 1000)])
    (folder / "usr/bin/program").touch()
    second = write_image(tmp_path / "second.tar", IMAGE, [pack_layer(folder, 1000)])

    assert first == second
    assert (tmp_path / "first.tar").read_bytes() == (tmp_path / "second.tar").read_bytes()
    assert not [*tmp_path.glob("*.partial")]


def test_docker_and_containerd_find_the_same_parts_under_their_own_names(folder: Path, tmp_path: Path) -> None:
    layer = pack_layer(folder, 1000)
    image_id = write_image(tmp_path / "image.tar", IMAGE, [layer])
    files = read(tmp_path / "image.tar")

    (docker,) = json.loads(files["manifest.json"])
    (entry,) = json.loads(files["index.json"])["manifests"]
    manifest = json.loads(files["blobs/sha256/" + entry["digest"].removeprefix("sha256:")])
    config = json.loads(files[docker["Config"]])
    assert docker["RepoTags"] == ["closeby:1.2.3"]
    assert entry["annotations"]["io.containerd.image.name"] == "docker.io/library/closeby:1.2.3"
    assert manifest["config"]["digest"] == f"sha256:{image_id}"
    assert [part["digest"] for part in manifest["layers"]] == [f"sha256:{layer.blob.digest}"]
    assert config["rootfs"]["diff_ids"] == [f"sha256:{layer.diff_id}"]
    assert config["config"]["Labels"] == {"a": "1", "b": "2"}
    for name, content in files.items():
        if name.startswith("blobs/"):
            assert name.rpartition("/")[2] == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize(
    ("tag", "name"),
    [
        pytest.param("closeby:1", "docker.io/library/closeby:1", id="a name alone"),
        pytest.param("me/closeby:1", "docker.io/me/closeby:1", id="a name and an owner"),
        pytest.param("registry.example.org/closeby:1", "registry.example.org/closeby:1", id="a registry"),
        pytest.param("localhost/closeby:1", "localhost/closeby:1", id="this host"),
        pytest.param("registry:5000/closeby:1", "registry:5000/closeby:1", id="a registry's port"),
    ],
)
def test_the_full_name(tag: str, name: str) -> None:
    assert full_name(tag) == name
