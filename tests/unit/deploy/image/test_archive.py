"""The image file: who finds what in it, that it is the same each time, and how a tag is written in full."""

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from deploy.image.archive import Image, full_name, image_config, write_archive
from deploy.image.layers import Layer, pack_tar


@pytest.fixture
def layers(tmp_path: Path) -> tuple[Layer, Layer]:
    return pack_tar(tmp_path / "below", io.BytesIO(b"below")), pack_tar(tmp_path / "above", io.BytesIO(b"above"))


def read(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as tar:
        return {entry.name: tar.extractfile(entry).read() for entry in tar if entry.isfile()}  # type: ignore[union-attr]


def read_twice(path: Path) -> list[dict[str, Any]]:
    """Each image as docker finds it, and as containerd does: name, id, configuration, layers."""
    files = read(path)

    def blob(digest: str) -> bytes:
        return files[f"blobs/{digest.replace(':', '/')}"]

    found = []
    for entry in json.loads(files["manifest.json"]):
        named = {"name": full_name(entry["RepoTags"][0]), "config": json.loads(files[entry["Config"]])}
        found.append(named | {"id": entry["Config"], "layers": [files[layer] for layer in entry["Layers"]]})
    for entry in json.loads(files["index.json"])["manifests"]:
        manifest = json.loads(blob(entry["digest"]))
        config = manifest["config"]["digest"]
        named = {"name": entry["annotations"]["io.containerd.image.name"], "config": json.loads(blob(config))}
        parts = [blob(layer["digest"]) for layer in manifest["layers"]]
        assert [layer["size"] for layer in manifest["layers"]] == [len(part) for part in parts]
        found.append(named | {"id": f"blobs/{config.replace(':', '/')}", "layers": parts})
    return found


def test_docker_and_containerd_find_the_same_images_with_their_layers_in_order(
    layers: tuple[Layer, Layer], tmp_path: Path
) -> None:
    below, above = layers
    write_archive(tmp_path / "images.tar", [Image("closeby:1", layers, ("/a",)), Image("r.test/b:1", (below,))])

    *docker, first, second = read_twice(tmp_path / "images.tar")
    assert docker == [first, second]
    assert (first["name"], second["name"]) == ("docker.io/library/closeby:1", "r.test/b:1")
    assert first["layers"] == [below.path.read_bytes(), above.path.read_bytes()]
    assert first["config"]["rootfs"]["diff_ids"] == [below.diff_id, above.diff_id]


def test_everything_is_found_by_its_digest_and_stored_once(layers: tuple[Layer, Layer], tmp_path: Path) -> None:
    twins = [Image(tag, layers) for tag in ("r.test/a:1", "r.test/b:1")]
    write_archive(tmp_path / "images.tar", twins)

    with tarfile.open(tmp_path / "images.tar") as tar:
        names = tar.getnames()
    assert len(names) == len(set(names))
    for name, content in read(tmp_path / "images.tar").items():
        if name.startswith("blobs/"):
            assert name.rpartition("/")[2] == hashlib.sha256(content).hexdigest()


def test_the_same_images_are_the_same_file(layers: tuple[Layer, Layer], tmp_path: Path) -> None:
    for name in ("first", "second"):
        write_archive(tmp_path / name, [Image("closeby:1.2.3", layers)])
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
    assert not [*tmp_path.glob("*.partial")]


def test_an_image_says_how_it_runs_and_nothing_that_it_was_not_told() -> None:
    told = Image("a:1", (), ("/a",), ("-x",), "65534", {"b": "2", "a": "1"}, "2026-01-01T00:00:00Z")
    config = json.loads(image_config(told).content)
    assert config["created"] == "2026-01-01T00:00:00Z"
    assert {name: config["config"][name] for name in ("Entrypoint", "Cmd", "User", "Labels")} == {
        "Entrypoint": ["/a"],
        "Cmd": ["-x"],
        "User": "65534",
        "Labels": {"a": "1", "b": "2"},
    }
    assert json.loads(image_config(Image("b:1", ())).content)["config"].keys() == {"Env", "WorkingDir"}


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
