"""`closeby dump`, and what the other commands take from it."""

import json
from pathlib import Path

import pytest

from endpointslice.snapshot import EMPTY, Changed, apply_events
from endpointslice.types import CIDR, Kind, NodeName
from proxy.control import serve_control
from proxy.dump import render_dump
from proxy.planner.settings import Settings
from tests.builders import service
from tests.unit.proxy.cli.conftest import RunCloseby


@pytest.fixture
def dump_file(run_closeby: RunCloseby, manifests: Path, tmp_path: Path) -> Path:
    flags = ("--manifests", manifests, "--node", "n1", "--cluster-cidr", "10.244.0.0/16")
    code, out, err = run_closeby("dump", *flags)
    assert (code, err) == (0, "")
    path = tmp_path / "dump.json"
    path.write_text(out)
    return path


def test_the_plan_of_a_dump_is_that_of_its_source(run_closeby: RunCloseby, manifests: Path, dump_file: Path) -> None:
    flags = ("--node", "n1", "--cluster-cidr", "10.244.0.0/16", "-o", "json")

    of_dump = json.loads(run_closeby("plan", "--dump", dump_file, "-o", "json").out)
    of_source = json.loads(run_closeby("plan", "--manifests", manifests, *flags).out)

    assert (of_dump["node"], of_dump["services"]) == (of_source["node"], of_source["services"])


def test_flags_that_are_given_win_over_the_dumps_settings(run_closeby: RunCloseby, dump_file: Path) -> None:
    report = json.loads(run_closeby("plan", "--dump", dump_file, "--node", "n2", "-o", "json").out)

    web = next(port for port in report["services"] if port["service"] == "default/web")
    assert report["node"] == "n2"
    assert [f["from"] for f in web["frontends"] if f["kind"] == "ClusterIP"] == ["outside", "this-node"]  # its CIDR


def test_a_dump_works_as_a_manifest_too(run_closeby: RunCloseby, dump_file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "again"
    folder.mkdir()
    dump_file.rename(folder / "dump.json")

    report = json.loads(run_closeby("plan", "--manifests", folder, "--node", "n1", "-o", "json").out)

    assert [port["service"] for port in report["services"]] == ["default/rival", "default/web"]


def test_without_a_source_the_running_daemon_is_asked(run_closeby: RunCloseby, tmp_path: Path) -> None:
    snapshot, _ = apply_events(EMPTY, [Changed(Kind.SERVICE, "default/web", service())])
    settings = Settings(NodeName("n7"), (CIDR("10.244.0.0/16"),))
    server = serve_control(tmp_path / "closeby.sock", lambda: render_dump(snapshot, settings))

    code, out, err = run_closeby("plan", "--control-socket", tmp_path / "closeby.sock", "-o", "json")

    server.shutdown()
    server.server_close()
    report = json.loads(out)
    assert (code, err) == (0, "")
    assert (report["node"], [port["service"] for port in report["services"]]) == ("n7", ["default/web"])
