"""EFFECT: one node's closeby that stories stop, kill, pause and ask, and closeby's other commands in its namespace."""

import os
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from e2e.closeby import CLOSEBY, Closeby
from e2e.world.hosts import CLUSTER_CIDRS
from e2e.world.netns import command_in, run_in

HEALTHZ_PORT = 10256
METRICS_PORT = 10249
_READY_S = 120.0  # between two tries to reach the API server half a minute may pass
_COMMAND_S = 60.0
_STOP_S = 30.0  # it takes milliseconds; a busy machine more
_HTTP_S = 30.0


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    output: str
    error: str


class Site(NamedTuple):
    """Where a daemon runs."""

    node: str
    netns: str
    folder: Path  # of its socket and log


def run_closeby(netns: str, *args: str, prefix: tuple[str, ...] = ()) -> Ended:
    """A closeby command in the namespace, at its end; `prefix` is what starts it, such as setpriv."""
    done = subprocess.run(
        command_in(netns, [*prefix, str(CLOSEBY), *args]),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=_COMMAND_S,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


class Daemon:
    """One node's closeby: may be started again after `stop` or `kill`."""

    def __init__(self, site: Site, *source: str) -> None:
        """`source` are the flags that name it: "--kubeconfig", F or "--manifests", D."""
        self.site = site
        self._source = source
        self._closeby: Closeby | None = None
        self._earlier = 0  # log lines of earlier starts
        site.folder.mkdir(parents=True, exist_ok=True)

    @property
    def running(self) -> Closeby:
        """The process, started and not yet stopped."""
        assert self._closeby is not None, f"{self.site.node}'s daemon isn't running"
        return self._closeby

    @property
    def socket(self) -> Path:
        """The control socket."""
        return self.site.folder / f"{self.site.node}.sock"

    @property
    def log_file(self) -> Path:
        """The log of all starts."""
        return self.site.folder / f"{self.site.node}.log"

    def start(self, *source: str, flags: Sequence[str] = ()) -> None:
        """Start it, from another source than its own if one is given, and with further flags; returns at once."""
        assert self._closeby is None, f"{self.site.node}'s daemon runs already"
        if self.log_file.exists():
            self._earlier = len(self.log_file.read_text().splitlines())
        ours = [*(source or self._source), "--cluster-cidr", ",".join(CLUSTER_CIDRS), "--log-format", "json"]
        self._closeby = Closeby(self.site.netns, self.site.node, [*ours, *flags], self.site.folder)

    def await_ready(self) -> None:
        """Returns once the first sync is done; DaemonError with the end of its log if it isn't in time."""
        self.running.wait_ready(_READY_S)

    def stop(self) -> int:
        """SIGTERM, and the exit code."""
        code = self.running.stop(_STOP_S)
        self._closeby = None
        return code

    def kill(self) -> None:
        """SIGKILL; nothing happens if it doesn't run, or has ended by itself."""
        if self._closeby is not None:
            if self._closeby.exit_code is None:
                self._signal(signal.SIGKILL)
            self.stop()

    def pause(self) -> None:
        """SIGSTOP: it stays, deaf and mute."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self._signal(signal.SIGCONT)

    def restore(self) -> None:
        """It runs, whatever was done to it."""
        if self._closeby is None:
            self.start()
        else:
            self.resume()
        self.await_ready()

    def events(self, name: str = "") -> list[dict[str, Any]]:
        """The log lines since the last start, or those of one event."""
        earlier = self.log_file.read_text().splitlines()[: self._earlier]
        skipped = sum(line.startswith("{") for line in earlier)
        lines = [*self.running.log_events()][skipped:]
        return [line for line in lines if not name or line.get("event") == name]

    def http(self, port: int, path: str) -> tuple[int, str]:
        """Code and body of a page, asked from inside the node; 0 if nobody answers."""

        def get() -> tuple[int, str]:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=_HTTP_S) as answer:
                    return answer.status, answer.read().decode()
            except urllib.error.HTTPError as error:
                with error:
                    return error.code, error.read().decode()
            except OSError:
                return 0, ""

        return run_in(self.site.netns, get)

    def metric(self, name: str, **labels: str) -> float:
        """The sum of the samples of that name that have these labels; 0 if there is none."""
        code, text = self.http(METRICS_PORT, "/metrics")
        assert code == 200
        return sum(
            sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )

    def run(self, *args: str) -> Ended:
        """A closeby command on the node, at its end."""
        return run_closeby(self.site.netns, *args)

    def command(self, *args: str) -> Ended:
        """A command that asks this daemon where no other source is named: dump, plan, explain."""
        return self.run(*args, "--control-socket", str(self.socket))

    def _signal(self, number: signal.Signals) -> None:
        os.kill(self.running.pid, number)
