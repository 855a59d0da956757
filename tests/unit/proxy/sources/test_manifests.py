"""What of a folder is read, and as what."""

import os
from pathlib import Path

import pytest

from endpointslice.types import Pod
from proxy.config import ConfigError
from proxy.sources.documents import Wrong
from proxy.sources.manifests import Folder, ManifestSource, load_folder
from tests.unit.proxy.sources.manifest_files import names_in, ports_of, service_text


@pytest.mark.parametrize(
    ("path", "is_read"),
    [
        pytest.param("a.yaml", True, id="yaml"),
        pytest.param("a.yml", True, id="yml"),
        pytest.param("deep/er/a.yaml", True, id="in a subfolder"),
        pytest.param(".a.yaml", False, id="hidden"),
        pytest.param(".git/a.yaml", False, id="in a hidden folder"),
        pytest.param("a.yaml~", False, id="a backup"),
        pytest.param("#a.yaml#", False, id="an editor's autosave"),
        pytest.param(".a.yaml.swp", False, id="vim's swap file"),
        pytest.param("a.yaml.tmp", False, id="a temporary file"),
        pytest.param("a.txt", False, id="another ending"),
    ],
)
def test_which_files_are_read(path: str, is_read: bool, tmp_path: Path) -> None:  # noqa: FBT001  # a column of the table
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_text(service_text("web"))

    assert names_in(tmp_path) == ({"default/web"} if is_read else set())


def test_a_link_to_nowhere_and_a_folder_with_the_ending_are_no_files(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").symlink_to("nowhere")
    (tmp_path / "b.yaml").mkdir()

    assert load_folder(tmp_path) == ()


@pytest.mark.parametrize("make", [None, "file"])
def test_what_is_no_folder_names_the_flag(make: str | None, tmp_path: Path) -> None:
    root = tmp_path / "manifests"
    if make:
        root.write_text("")

    for use in (load_folder, ManifestSource):
        with pytest.raises(ConfigError, match=f"--manifests: {root} is not a directory"):
            use(root)


def test_pods_come_with_their_owner(tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text(
        "kind: Pod\nmetadata: {name: agent-1, namespace: sys, ownerReferences: [{kind: DaemonSet, name: agent,"
        " apiVersion: apps/v1, controller: true}]}\n"
    )

    (change,) = load_folder(tmp_path)

    assert isinstance(change.object, Pod)
    assert (change.name, change.object.daemon_set) == ("sys/agent-1", "sys/agent")


def test_an_unreadable_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").symlink_to("/proc/self/mem")  # of which the first bytes can't be read, not even by root

    (change,) = load_folder(tmp_path)

    assert [skip.reason for skip in change.skipped] == [Wrong.UNREADABLE_FILE]


def test_an_unchanged_folder_says_so(folder: Path) -> None:
    read = Folder(folder)

    assert read.read() is not None
    assert read.read() is None
    (folder / "web.yaml").touch()
    assert read.read() is None


def test_two_writes_within_a_tick_of_the_clock_are_both_seen(folder: Path) -> None:
    path = folder / "web.yaml"
    stat = path.stat()
    read = Folder(folder)
    read.read()

    path.write_text(service_text("web", 81))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert read.read() is None  # nothing to see by time, size and inode

    objects = read.read({"web.yaml"})
    assert objects is not None
    assert ports_of(tuple(objects.values())) == {"default/web": 81}


def test_the_example_of_the_docs_works(tmp_path: Path) -> None:
    text = (Path(__file__).parents[4] / "docs" / "manifests.md").read_text()
    example = text.partition("<<'YAML'\n")[2].partition("\nYAML\n")[0]
    (tmp_path / "web.yaml").write_text(example)

    assert names_in(tmp_path) == {
        "north-1",
        "south-1",
        "default/web",
        "default/web-n",
        "default/web-s",
        "default/web-derived-ipv4",
    }
