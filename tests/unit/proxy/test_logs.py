"""Log lines: JSON for collectors, columns for people, and how much of them."""

import json
from collections.abc import Iterator

import pytest
import structlog

from proxy.logs import QUIET, set_up_logs


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    yield
    structlog.reset_defaults()


def test_json_has_one_object_a_line_with_time_level_and_facts(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logs(0, "json")

    structlog.get_logger().info("sync_done", added=2, full=False)

    (line,) = capsys.readouterr().err.splitlines()
    facts = json.loads(line)
    assert facts.pop("timestamp").endswith("Z")
    assert facts == {"event": "sync_done", "level": "info", "added": 2, "full": False}


def test_an_errors_trace_is_in_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logs(0, "auto")  # no terminal here

    try:
        raise ValueError("no address")  # noqa: TRY301  # its trace is what this is about
    except ValueError:
        structlog.get_logger().exception("loop_failed")

    (line,) = capsys.readouterr().err.splitlines()
    (trace,) = json.loads(line)["exception"]
    assert (trace["exc_type"], trace["exc_value"]) == ("ValueError", "no address")


def test_the_console_form_is_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logs(0, "console")

    structlog.get_logger().info("sync_done", added=2)

    written = capsys.readouterr()
    assert "sync_done" in written.err
    assert not written.err.startswith("{")
    assert written.out == ""  # that is for answers


@pytest.mark.parametrize(
    ("verbosity", "levels"),
    [
        pytest.param(QUIET, ["error"], id="a command whose output is an answer"),
        pytest.param(0, ["info", "error"], id="the daemon"),
        pytest.param(3, ["info", "error"], id="a little more"),
        pytest.param(4, ["debug", "info", "error"], id="each decision"),
    ],
)
def test_how_much_is_logged(capsys: pytest.CaptureFixture[str], verbosity: int, levels: list[str]) -> None:
    set_up_logs(verbosity, "json")

    log = structlog.get_logger()
    log.debug("decided")
    log.info("written")
    log.error("refused")

    assert [json.loads(line)["level"] for line in capsys.readouterr().err.splitlines()] == levels
