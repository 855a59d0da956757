"""Keys from a mounted Secret."""

from pathlib import Path

import pytest

from proxy.announcer.keyring import KeyFileError, Keys, KeyWatch, read_keys

OLD, NEW = b"the old key of sixteen", b"the new key of sixteen"


def test_the_two_highest_numbers_are_read_and_other_files_left_alone(tmp_path: Path) -> None:
    for name, key in {"1": b"older than both, unused", "2": OLD, "10": NEW + b"\n", "..data": b"", "x": b""}.items():
        (tmp_path / name).write_bytes(key)

    assert read_keys(tmp_path) == {2: OLD, 10: NEW}


@pytest.mark.parametrize(
    ("files", "why"),
    [
        pytest.param({}, "no key; its files are named 1, 2, ..", id="an empty folder"),
        pytest.param({"1": b"short"}, "/1: shorter than 16 bytes", id="a short key"),
        pytest.param({"256": OLD}, "no key", id="a number that no byte holds"),
    ],
)
def test_what_is_refused(tmp_path: Path, files: dict[str, bytes], why: str) -> None:
    for name, key in files.items():
        (tmp_path / name).write_bytes(key)

    with pytest.raises(KeyFileError, match=why):
        read_keys(tmp_path)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(KeyFileError, match="missing: No such file"):
        read_keys(tmp_path / "missing")


def test_a_change_is_posted_and_a_broken_folder_keeps_what_was_known(tmp_path: Path) -> None:
    (tmp_path / "1").write_bytes(OLD)
    posted: list[Keys] = []
    watch = KeyWatch(tmp_path, read_keys(tmp_path), posted.append)
    watch.look()
    (tmp_path / "2").write_bytes(b"short")
    watch.look()
    assert not posted

    (tmp_path / "2").write_bytes(NEW)
    watch.look()

    assert posted == [{1: OLD, 2: NEW}]
