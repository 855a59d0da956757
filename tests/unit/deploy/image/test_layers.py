"""A layer: what is in it, by which digests it is known, and that it is the same each time."""

import gzip
import hashlib
import io
import tarfile
from pathlib import Path

import pytest

from deploy.image.layers import Layer, pack_folder, pack_programs, pack_tar, read_layer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "folder"
    (made / "usr/bin").mkdir(parents=True)
    (made / "usr/bin/program").write_text("#!")
    (made / "usr/bin/program").chmod(0o755)
    (made / "bin").symlink_to("usr/bin")
    return made


def pack_kube(tmp_path: Path, name: str) -> Layer:
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF")
    users = {"/etc/passwd": b"root:x:0:0::/:/bin/sh\n"}
    return pack_programs(tmp_path / name, {"/bin/kube": program}, {"/bin/kubelet": "kube"}, users)


def test_a_folder_is_roots_and_has_folders_before_what_is_in_them(folder: Path, tmp_path: Path) -> None:
    layer = pack_folder(tmp_path / "layer", folder, 1000)

    with tarfile.open(layer.path) as tar:
        entries = tar.getmembers()
    assert [(e.name, e.mtime, e.uid, e.uname) for e in entries] == [
        (name, 1000, 0, "") for name in ("bin", "usr", "usr/bin", "usr/bin/program")
    ]
    assert entries[0].linkname == "usr/bin"
    assert entries[-1].mode == 0o755


def test_a_folder_is_the_same_layer_whenever_it_was_written(folder: Path, tmp_path: Path) -> None:
    first = pack_folder(tmp_path / "first", folder, 1000)
    (folder / "usr/bin/program").touch()
    second = pack_folder(tmp_path / "second", folder, 1000)

    assert first._replace(path=second.path) == second
    assert first.path.read_bytes() == second.path.read_bytes()


def test_programs_links_and_files_have_their_places_and_modes(tmp_path: Path) -> None:
    with tarfile.open(pack_kube(tmp_path, "layer").path) as tar:
        members = {member.name: member for member in tar}
    assert (members["bin/kube"].mode, members["bin/kube"].size) == (0o755, 4)
    assert members["bin/kubelet"].linkname == "kube"
    assert members["etc/passwd"].mode == 0o644


def test_equal_programs_make_equal_layers(tmp_path: Path) -> None:
    first, second = pack_kube(tmp_path, "first"), pack_kube(tmp_path, "second")
    assert first.path.read_bytes() == second.path.read_bytes()


def test_a_tar_stays_as_it_is(tmp_path: Path) -> None:
    layer = pack_tar(tmp_path / "layer", io.BytesIO(b"tar" * 1000))
    assert gzip.decompress(layer.path.read_bytes()) == b"tar" * 1000


def test_a_layer_is_known_by_the_digests_of_its_tar_and_of_its_file(folder: Path, tmp_path: Path) -> None:
    for layer in (pack_kube(tmp_path, "programs"), pack_folder(tmp_path / "packed", folder, 0)):
        content = layer.path.read_bytes()
        assert layer.diff_id == f"sha256:{hashlib.sha256(gzip.decompress(content)).hexdigest()}"
        assert layer.digest == f"sha256:{hashlib.sha256(content).hexdigest()}"
        assert layer.size_bytes == len(content)
        assert read_layer(layer.path, layer.diff_id) == layer
