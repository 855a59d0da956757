"""What is measured, and in which order: each proxy alone, so that neither waits for the other's work."""

import json
import subprocess
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

import msgspec

from e2e.bench.changes import Changes, Delays
from e2e.bench.flows import FlowFigures, measure_flows
from e2e.bench.kernel import KernelView
from e2e.bench.objects import OBJECTS_EACH
from e2e.bench.proxies import ProxySpec, RunningProxy, run_proxy, wait_synced
from e2e.bench.rig import PROGRAMS, Rig, client_pod, load
from e2e.bench.rows import Figure, Row, make_row, pick
from e2e.bench.scale import PORT, Scale, service_ip
from e2e.bench.usage import Memory, MemoryWatch, cpu_seconds
from e2e.world.netns import command_in

FEW_SERVICES = 10
_SETTLE_S = 0.5  # for the kernel to free what was deleted
_AFTER_S = 1.5  # for a sync that is on its way to end
_MOST_TARGETS = 1000
_SYNC_TIMEOUT_S = 60.0
_START_TIMEOUT_S = 1800.0  # kube-proxy at 44,125 x 1: a quarter of an hour and more


class Effort(msgspec.Struct, frozen=True):
    """How much of each work."""

    starts: int = 5  # of each proxy, from nothing
    start_s: float = 60.0  # no further start once they took so long
    patches: int = 200
    patch_s: float = 90.0  # no further patch once they took so long
    changes: int = 1000
    changes_per_second: float = 100.0
    flows: int = 200_000  # UDP flows whose endpoint leaves; 0: none
    rounds: int = 5  # of connections, the proxies taking turns
    round_s: float = 2.0


class Steps(Protocol):
    """Shows what is going on: a step is entered with its size, and told of progress."""

    def __call__(self, what: str, size: float) -> AbstractContextManager[Callable[[float], None]]:
        """Show the step; its context gives a function that is told how much was done."""
        ...


class Start(NamedTuple):
    """One first sync."""

    took_s: float  # from the start of the process until the kernel had every Service
    own_s: float  # what the proxy says its syncs took
    cpu_s: float  # of the process and its children
    memory: Memory


class Measured(NamedTuple):
    """All of one proxy."""

    starts: list[Start]
    delays: Delays
    cpu_s: float
    flows: FlowFigures | None


class Connects(NamedTuple):
    """All rounds through one proxy's node."""

    per_second: list[float]
    p99_us: list[float]


class Bench:
    """The works of one scale on one rig. `specs` are closeby and, if wanted, kube-proxy."""

    def __init__(self, rig: Rig, specs: tuple[ProxySpec, ...], effort: Effort, steps: Steps) -> None:
        self._rig = rig
        self._specs = specs
        self._effort = effort
        self._steps = steps

    def run(self, scale: Scale) -> list[Row]:
        """All rows; the rig must have no Services yet."""
        few = Scale(min(FEW_SERVICES, scale.services), scale.endpoints)
        self._load(few, 0)
        for spec in self._specs:
            self._start(spec, few, Effort(starts=1), lambda _proxy: None)
        rows = self._connect_rows(few)
        self._load(scale, few.services)
        changes = Changes(self._rig, scale)
        measured = [self._measure(spec, scale, changes) for spec in self._specs]
        rows = [*_rows(scale, measured, self._effort.changes), *rows]
        return [*rows, *self._connect_rows(scale)] if scale != few else rows

    def _load(self, scale: Scale, first: int) -> None:
        with self._steps(f"loading {scale}", OBJECTS_EACH * (scale.services - first)) as advance:
            load(self._rig, scale, first, advance)

    def _measure(self, spec: ProxySpec, scale: Scale, changes: Changes) -> Measured:
        effort = self._effort
        found: list[tuple[Delays, float, FlowFigures | None]] = []

        def then(proxy: RunningProxy) -> None:
            delays = self._delays(proxy, changes)
            with self._steps(f"{spec.name}: {effort.changes:,} changes, CPU", effort.changes) as advance:
                before_s = cpu_seconds(proxy.pid)
                changes.send_stream(spec.netns, effort.changes, effort.changes_per_second, advance)
                time.sleep(_AFTER_S)
                cpu_s = cpu_seconds(proxy.pid) - before_s
            found.append((delays, cpu_s, self._flows(proxy, changes)))

        starts = self._start(spec, scale, effort, then)
        return Measured(starts, *found[0])

    def _start(
        self, spec: ProxySpec, scale: Scale, effort: Effort, then: Callable[[RunningProxy], None]
    ) -> list[Start]:
        """First syncs from nothing; the last proxy is given to `then` before it is stopped. Its rules stay."""
        starts: list[Start] = []
        began = time.monotonic()
        view = KernelView(spec.netns)
        try:
            while not self._is_last(starts, effort, began):
                starts.append(self._start_once(spec, scale, view, then=None))
            starts.append(self._start_once(spec, scale, view, then))
        finally:
            view.close()
        return starts

    @staticmethod
    def _is_last(starts: list[Start], effort: Effort, began: float) -> bool:
        """Whether the next start is the last one."""
        if not starts:
            return effort.starts <= 1
        return len(starts) + 1 >= effort.starts or time.monotonic() - began + starts[-1].took_s > effort.start_s

    def _start_once(
        self, spec: ProxySpec, scale: Scale, view: KernelView, then: Callable[[RunningProxy], None] | None
    ) -> Start:
        view.remove_table(spec.table)
        time.sleep(_SETTLE_S)
        with run_proxy(self._rig, spec) as proxy:
            with MemoryWatch(proxy.pid) as memory, self._steps(f"{spec.name}: first sync of {scale}", 1):
                done_s = view.wait_for_services(
                    (spec.table, spec.services), scale, proxy.component.check, _START_TIMEOUT_S
                )
                own_s = wait_synced(proxy, _SYNC_TIMEOUT_S)
                time.sleep(_SETTLE_S)
                used_s = cpu_seconds(proxy.pid)
                start = Start(done_s - proxy.started_s, own_s, used_s, memory.read())
            if then is not None:
                then(proxy)
        return start

    def _delays(self, proxy: RunningProxy, changes: Changes) -> Delays:
        effort = self._effort
        # Longer than either's least time between two syncs (20 ms and 1 s), so that no change waits for the one before.
        pause_s = 0.05 if proxy.spec.name == "closeby" else 1.1
        with self._steps(f"{proxy.spec.name}: up to {effort.patches} changes, delay", effort.patches) as advance:

            def go_on(count: int, took_s: float) -> bool:
                advance(1 if count else 0)
                return count < effort.patches and took_s < effort.patch_s

            return changes.measure_delays(proxy.spec.netns, pause_s, go_on)

    def _flows(self, proxy: RunningProxy, changes: Changes) -> FlowFigures | None:
        count = self._effort.flows
        if not count:
            return None
        with self._steps(f"{proxy.spec.name}: {count:,} UDP flows", 1):
            return measure_flows(self._rig, proxy, changes, count)

    def _connect_rows(self, scale: Scale) -> list[Row]:
        """Through rules only: no proxy runs meanwhile."""
        found = {spec.name: Connects([], []) for spec in self._specs}
        effort = self._effort
        with self._steps(f"connections at {scale}", effort.rounds * len(self._specs)) as advance:
            for _ in range(effort.rounds):
                for spec in self._specs:
                    self._connect(spec, scale, found[spec.name])
                    advance(1)
        rates = [pick(connects.per_second) for connects in found.values()]
        longest = [pick(connects.p99_us) for connects in found.values()]
        return [
            make_row("new connections, one client", scale, "1/s", _pair(rates)),
            make_row("connect time, p99", scale, "us", _pair(longest)),
        ]

    def _connect(self, spec: ProxySpec, scale: Scale, into: Connects) -> None:
        step = max(1, scale.services // _MOST_TARGETS)
        targets = [service_ip(number) for number in range(0, scale.services, step)]
        netns = self._rig.world.host(client_pod(spec.node)).netns
        program = ["python3", "-I", "-S", str(PROGRAMS / "connect.py")]
        command = command_in(netns, [*program, str(self._effort.round_s), str(PORT), *targets])
        said = subprocess.run(command, check=True, capture_output=True, text=True)
        count, failures, _median_us, p99_us = json.loads(said.stdout)
        if failures:
            raise RuntimeError(f"{failures} of {count + failures} connections through {spec.name} failed")
        into.per_second.append(count / self._effort.round_s)
        into.p99_us.append(p99_us)


def _rows(scale: Scale, measured: list[Measured], changes: int) -> list[Row]:
    starts = [one.starts for one in measured]
    delays = [one.delays for one in measured]
    table: list[tuple[str, str, list[Figure]]] = [
        ("first sync", "s", [pick([start.took_s for start in each]) for each in starts]),
        ("of that, full syncs", "s", [pick([start.own_s for start in each]) for each in starts]),
        ("first sync, CPU", "s", [pick([start.cpu_s for start in each]) for each in starts]),
        ("resident memory", "MB", [pick([start.memory.resident for start in each]) for each in starts]),
        ("peak memory, with children", "MB", [pick([start.memory.peak_tree for start in each]) for each in starts]),
    ]
    for since, lists in (
        ("watch event", [[1e3 * s for s in each.from_event] for each in delays]),
        ("API's answer", [[1e3 * s for s in each.from_answer] for each in delays]),
    ):
        for name, part in (("median", 0.5), ("p99", 0.99)):
            table.append((f"{since} to kernel, {name}", "ms", [pick(one, part) for one in lists]))
    table.append((f"CPU for {changes:,} changes", "s", [Figure(one.cpu_s) for one in measured]))
    flows = [one.flows for one in measured if one.flows is not None]
    if flows:
        table.append(("UDP flows to an endpoint that left, gone", "s", [Figure(one.gone_s) for one in flows]))
        table.append(("another change meanwhile, to kernel", "ms", [Figure(1e3 * one.other_s) for one in flows]))
    return [make_row(work, scale, unit, _pair(figures)) for work, unit, figures in table]


def _pair(figures: list[Figure]) -> tuple[Figure, Figure | None]:
    """What closeby has, and what kube-proxy has if it was measured."""
    return figures[0], figures[1] if len(figures) > 1 else None
