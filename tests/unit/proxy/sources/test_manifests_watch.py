"""What is posted when a folder changes."""

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from endpointslice.decode import Changed, Listed
from endpointslice.types import Kind, PodName
from proxy.sources.documents import Wrong
from proxy.sources.manifests import ManifestSource
from tests.unit.proxy.sources.api_double import PATIENCE_S, Posted
from tests.unit.proxy.sources.manifest_files import ports_of, replace, service_text

Start = Callable[[], ManifestSource]


@pytest.fixture
def start(folder: Path, posted: Posted) -> Iterator[Start]:
    """Starts a source and takes its first lists; it ends with the test."""
    started: list[ManifestSource] = []

    def start() -> ManifestSource:
        source = ManifestSource(folder)
        source.start(posted)
        started.append(source)
        assert {event.kind for event in posted.next() if isinstance(event, Listed)} == source.kinds
        time.sleep(0.05)  # the watch begins after the first look; what changes between is found a second later
        return source

    yield start
    for source in started:
        source.stop()
        assert source._thread is not None  # noqa: SLF001
        assert not source._thread.is_alive()  # noqa: SLF001  # it must end when told


def test_a_change_is_posted_by_the_watch_and_not_by_the_clock(folder: Path, posted: Posted) -> None:
    source = ManifestSource(folder, look_ms=600_000)
    source.start(posted)
    posted.next()

    for port in range(81, 81 + int(PATIENCE_S)):  # the watch begins a moment after the first look
        replace(folder / "web.yaml", service_text("web", port))
        if not posted.is_quiet(1.0):
            break
    else:
        pytest.fail("no change was posted")
    source.stop()


def test_only_what_changed_is_posted(start: Start, folder: Path, posted: Posted) -> None:
    replace(folder / "api.yaml", service_text("api"))
    start()

    replace(folder / "new.yaml", service_text("new"))
    assert ports_of(posted.next()) == {"default/new": 80}
    (folder / "api.yaml").unlink()
    assert posted.next() == (Changed(Kind.SERVICE, "default/api", None),)


def test_a_file_that_moves_in_or_out_counts(start: Start, folder: Path, posted: Posted, tmp_path: Path) -> None:
    start()
    (tmp_path / "api.yaml").write_text(service_text("api", 82))

    (tmp_path / "api.yaml").rename(folder / "web.yaml")
    assert ports_of(posted.next()) == {"default/web": None, "default/api": 82}


def test_a_new_subfolder_is_watched_too(start: Start, folder: Path, posted: Posted) -> None:
    start()
    (folder / "sub").mkdir()
    replace(folder / "sub" / "api.yaml", service_text("api", 1))
    assert ports_of(posted.next()) == {"default/api": 1}

    replace(folder / "sub" / "api.yaml", service_text("api", 2))
    assert ports_of(posted.next()) == {"default/api": 2}


def test_a_broken_file_keeps_its_last_good_state(start: Start, folder: Path, posted: Posted) -> None:
    with capture_logs() as logs:
        start()
        replace(folder / "web.yaml", service_text("api") + "---\n" + service_text("web").replace("port: 80", "port: x"))

        (report,) = posted.next()
        assert isinstance(report, Changed)
        assert (report.name, report.object) == ("file:web.yaml", None)
        (problem,) = report.skipped
        assert problem.object == "web.yaml document 2: Service default/web"
        assert "$.spec.ports[0].port" in problem.detail

        replace(folder / "web.yaml", service_text("web", 81))
        assert ports_of(posted.next()) == {"file:web.yaml": None, "default/web": 81}

    assert [log["event"] for log in logs if log["event"].startswith("manifest_")] == [
        "manifest_broken",
        "manifest_mended",
    ]


def test_a_file_that_is_emptied_keeps_its_objects_and_one_that_is_removed_does_not(
    start: Start, folder: Path, posted: Posted
) -> None:
    start()
    (folder / "web.yaml").write_text("")
    assert ports_of(posted.next()) == {"file:web.yaml": None}

    (folder / "web.yaml").unlink()
    assert ports_of(posted.next()) == {"file:web.yaml": None, "default/web": None}


def test_a_folder_that_is_gone_keeps_its_last_state(start: Start, folder: Path, posted: Posted) -> None:
    source = start()
    folder.rename(folder.with_name("elsewhere"))

    (report,) = posted.next()
    assert isinstance(report, Changed)
    assert [skip.reason for skip in report.skipped] == [Wrong.NO_FOLDER]
    assert not source.status()[Kind.SERVICE].connected

    folder.mkdir()
    replace(folder / "web.yaml", service_text("web", 81))
    batches = [posted.next()]
    if "default/web" not in ports_of(batches[-1]):  # the empty folder was seen first
        batches.append(posted.next())
    assert ports_of(batches[-1])["default/web"] == 81
    assert source.status()[Kind.SERVICE].connected

    replace(folder / "web.yaml", service_text("web", 82))  # the new folder is watched
    assert ports_of(posted.next()) == {"default/web": 82}


def test_a_folder_that_takes_the_others_place_is_watched(
    start: Start, folder: Path, posted: Posted, tmp_path: Path
) -> None:
    start()
    other = tmp_path / "other"
    other.mkdir()
    (other / "api.yaml").write_text(service_text("api"))
    folder.rename(tmp_path / "before")
    other.rename(folder)

    seen: dict[str, int | None] = {}
    while "default/api" not in seen:  # the moment without a folder may have been seen, too
        seen |= ports_of(posted.next())
    assert seen["default/web"] is None

    replace(folder / "api.yaml", service_text("api", 81))
    assert ports_of(posted.next()) == {"default/api": 81}


def test_a_mounted_config_map_is_followed_through_its_links(tmp_path: Path, posted: Posted) -> None:
    """The kubelet writes a hidden folder, and swaps the one link that leads to it."""
    for name, port in (("..2026_1", 81), ("..2026_2", 82)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "web.yaml").write_text(service_text("web", port))
    (tmp_path / "..data").symlink_to("..2026_1")
    (tmp_path / "web.yaml").symlink_to("..data/web.yaml")
    source = ManifestSource(tmp_path)
    source.start(posted)
    posted.next()
    time.sleep(0.05)

    (tmp_path / "..data_tmp").symlink_to("..2026_2")
    (tmp_path / "..data_tmp").rename(tmp_path / "..data")

    assert ports_of(posted.next()) == {"default/web": 82}
    source.stop()


def test_what_does_not_concern_us_is_not_posted(start: Start, folder: Path, posted: Posted) -> None:
    start()
    replace(folder / "notes.txt", "nothing")
    replace(folder / "web.yaml", service_text("web") + "# a comment\n")

    assert posted.is_quiet(0.3)


def test_the_status_is_the_folders(start: Start) -> None:
    source = start()

    assert source.status().keys() == set(Kind)
    for status in source.status().values():
        assert status.complete
        assert status.connected
    source.request_pod(PodName("sys/agent-1"), "")


def test_a_source_can_be_stopped_before_it_started(folder: Path) -> None:
    before_s = time.monotonic()
    ManifestSource(folder).stop()

    assert time.monotonic() - before_s < PATIENCE_S


def test_a_folder_that_is_removed_with_all_its_files_is_gone_too(start: Start, folder: Path, posted: Posted) -> None:
    start()
    shutil.rmtree(folder)

    last = ports_of(posted.next())
    if last == {"default/web": None}:  # it was seen when it was empty
        last = ports_of(posted.next())
    assert last == {"file:": None}
