import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest

from e2e.kind.images.archive import Image, Layer, pack_programs, pack_tar, write_archive


@pytest.fixture
def layer(tmp_path: Path) -> Layer:
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF")
    return pack_programs(
        tmp_path / "layer",
        {"/bin/kube": program},
        {"/bin/kubelet": "kube"},
        {"/etc/passwd": b"root:x:0:0::/:/bin/sh\n"},
    )


def read_member(archive: Path, name: str) -> bytes:
    with tarfile.open(archive) as tar:
        member = tar.extractfile(name)
        assert member
        return member.read()


def test_a_layer_is_named_by_the_hash_of_its_tar(layer: Layer) -> None:
    assert layer.diff_id == f"sha256:{hashlib.sha256(gzip.decompress(layer.path.read_bytes())).hexdigest()}"


def test_a_layer_holds_programs_links_and_files(layer: Layer) -> None:
    with tarfile.open(layer.path) as tar:
        members = {member.name: member for member in tar}
    assert (members["bin/kube"].mode, members["bin/kube"].size) == (0o755, 4)
    assert members["bin/kubelet"].linkname == "kube"
    assert members["etc/passwd"].mode == 0o644


def test_equal_programs_make_equal_layers(layer: Layer, tmp_path: Path) -> None:
    again = pack_programs(
        tmp_path / "again",
        {"/bin/kube": tmp_path / "program"},
        {"/bin/kubelet": "kube"},
        {"/etc/passwd": b"root:x:0:0::/:/bin/sh\n"},
    )
    assert again.path.read_bytes() == layer.path.read_bytes()


def test_a_tar_becomes_a_layer_as_it_is(tmp_path: Path) -> None:
    layer = pack_tar(io.BytesIO(b"tar" * 1000), tmp_path / "layer")
    assert gzip.decompress(layer.path.read_bytes()) == b"tar" * 1000


def test_the_manifest_names_each_image_with_its_layers_in_order(layer: Layer, tmp_path: Path) -> None:
    base = pack_tar(io.BytesIO(b"base"), tmp_path / "base")
    archive = tmp_path / "images.tar"
    write_archive(
        archive, [Image("r.test/a:1", (base, layer), ("/a",), ("-x",), "65534"), Image("r.test/b:1", (base,))]
    )
    first, second = json.loads(read_member(archive, "manifest.json"))
    assert (first["RepoTags"], second["RepoTags"]) == (["r.test/a:1"], ["r.test/b:1"])
    assert [read_member(archive, name) for name in first["Layers"]] == [base.path.read_bytes(), layer.path.read_bytes()]
    config = json.loads(read_member(archive, first["Config"]))
    assert config["rootfs"]["diff_ids"] == [base.diff_id, layer.diff_id]
    assert config["config"]["Entrypoint"] == ["/a"]
    assert config["config"]["Cmd"] == ["-x"]
    assert config["config"]["User"] == "65534"


def test_a_shared_layer_is_stored_once(layer: Layer, tmp_path: Path) -> None:
    archive = tmp_path / "images.tar"
    write_archive(archive, [Image("r.test/a:1", (layer,)), Image("r.test/b:1", (layer,))])
    with tarfile.open(archive) as tar:
        assert sum(name.endswith("layer.tar") for name in tar.getnames()) == 1
