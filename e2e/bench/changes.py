"""EFFECT: changes of slices, and the time until a proxy's kernel has them."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from subprocess import Popen
from typing import NamedTuple

from e2e.bench.bulk import MERGE_PATCH, Line, Request, send_all
from e2e.bench.objects import endpoints, slice_name
from e2e.bench.rig import PROGRAMS, SLICES_PATH, Rig
from e2e.bench.scale import Scale, spare_ip
from e2e.world.processes import ProgramError, start_program, stop_programs, wait_ready

_STRIDE = 7919  # a prime: consecutive changes are to Services far apart
_TIMEOUT_S = 120.0


class Delays(NamedTuple):
    """Seconds until the kernel had each change; they may be below 0, where a watch is faster than an answer."""

    from_answer: list[float]  # since the API server's answer to whoever changed the slice
    from_event: list[float]  # since another watcher had the event


class Changes:
    """The changes of one run; no two bring the same address."""

    def __init__(self, rig: Rig, scale: Scale) -> None:
        self._rig = rig
        self._scale = scale
        self._count = 0

    def measure_delays(self, netns: str, pause_s: float, go_on: Callable[[int, float], bool]) -> Delays:
        """One change after the other, each when the kernel has the one before and after a pause.

        `go_on` is told the number of changes and the seconds so far, and says whether there shall be another.
        """
        delays = Delays([], [])
        jitter = random.Random(1)
        began = time.monotonic()
        with _listener(netns) as listener, _observer(self._rig) as seen:
            line = Line(self._rig.plane.admin)
            while go_on(len(delays.from_answer), time.monotonic() - began):
                request, address = self._next()
                _ask(listener, address)
                answered_s = line.send(request)
                in_kernel_s = _answer(listener, address)
                delays.from_answer.append(in_kernel_s - answered_s)
                delays.from_event.append(in_kernel_s - _wait_seen(seen, address))
                time.sleep(pause_s * jitter.uniform(1.0, 1.5))
            line.close()
        return delays

    def send_stream(self, netns: str, count: int, per_second: float, done: Callable[[int], None]) -> None:
        """So many changes at an even pace. Returns when the kernel has the last of them."""
        with _listener(netns) as listener:
            requests = (self._next()[0] for _ in range(count - 1))
            send_all(self._rig.plane.admin, requests, lambda: done(1), per_second=per_second)
            request, address = self._next()
            _ask(listener, address)
            line = Line(self._rig.plane.admin)
            line.send(request)
            line.close()
            _answer(listener, address)
            done(1)

    def _next(self) -> tuple[Request, str]:
        """A change of one endpoint of one slice, and the address that it brings."""
        number = self._count * _STRIDE % self._scale.services
        address = spare_ip(self._count)
        self._count += 1
        body = {"endpoints": endpoints(self._scale, number, address)}
        return Request("PATCH", f"{SLICES_PATH}/{slice_name(number)}", body, MERGE_PATCH), address


@contextmanager
def _listener(netns: str) -> Iterator[Popen[str]]:
    process = start_program(netns, str(PROGRAMS / "listen"))
    try:
        wait_ready(process, "the netlink listener")
        yield process
    finally:
        stop_programs([process])


def _ask(listener: Popen[str], address: str) -> None:
    assert listener.stdin
    assert listener.stdout
    listener.stdin.write(address + "\n")
    listener.stdin.flush()
    if listener.stdout.readline() != "asked\n":
        raise ProgramError("the netlink listener ended")


def _answer(listener: Popen[str], address: str) -> float:
    """Monotonic time of the notification. TimeoutError."""
    assert listener.stdout
    stuck = threading.Timer(_TIMEOUT_S, listener.kill)
    stuck.start()
    try:
        line = listener.stdout.readline()
    finally:
        stuck.cancel()
    if not line:
        raise TimeoutError(f"{address} wasn't in the kernel {_TIMEOUT_S:g} s after the change")
    return float(line)


@contextmanager
def _observer(rig: Rig) -> Iterator[dict[str, float]]:
    """When a watch of ours had the event with each address, filled in meanwhile by a thread."""
    version = rig.plane.api.request("GET", f"{SLICES_PATH}?limit=1")["metadata"]["resourceVersion"]
    line = Line(rig.plane.admin)
    seen: dict[str, float] = {}

    def watch() -> None:
        rest = b""
        for at_s, piece in line.stream(f"{SLICES_PATH}?watch=1&resourceVersion={version}&timeoutSeconds=3600"):
            rest += piece
            whole, _, rest = rest.rpartition(b"\n")
            for event in whole.split(b'"addresses":["')[1:]:
                seen.setdefault(event.partition(b'"')[0].decode(), at_s)

    thread = threading.Thread(target=watch, name="observer", daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        line.shut()
        thread.join()
        line.close()


def _wait_seen(seen: dict[str, float], address: str) -> float:
    deadline = time.monotonic() + _TIMEOUT_S
    while address not in seen:
        if time.monotonic() > deadline:
            raise TimeoutError(f"no watch event with {address}")
        time.sleep(0.001)
    return seen[address]
