"""Noticing that the configuration file changed."""

import queue
from pathlib import Path

import pytest

from proxy.kubeproxy.watch import ConfigFileWatch


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """As a ConfigMap is mounted: a link to a link to a folder."""
    (tmp_path / "v1").mkdir()
    (tmp_path / "v2").mkdir()
    (tmp_path / "v1" / "config.conf").write_bytes(b"old")
    (tmp_path / "v2" / "config.conf").write_bytes(b"new")
    (tmp_path / "data").symlink_to("v1")
    (tmp_path / "config.conf").symlink_to("data/config.conf")
    return tmp_path / "config.conf"


def test_a_swapped_link_is_a_change(linked: Path) -> None:
    said: queue.SimpleQueue[str] = queue.SimpleQueue()
    watch = ConfigFileWatch(linked, b"old", said.put, poll_s=0.01)
    assert not watch.changed()

    (linked.parent / "next").symlink_to("v2")
    (linked.parent / "next").rename(linked.parent / "data")
    watch.start()

    assert said.get(timeout=60) == f"--config: {linked} changed; start again to take it in"


def test_the_same_content_written_again_is_none(linked: Path) -> None:
    linked.write_bytes(b"old")

    assert not ConfigFileWatch(linked, b"old", lambda _: None).changed()


def test_a_file_that_is_gone_for_a_moment_is_none(linked: Path) -> None:
    linked.unlink()

    assert not ConfigFileWatch(linked, b"old", lambda _: None).changed()
