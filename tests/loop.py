"""A running loop between a source and a kernel that keep what they are told, for tests of `proxy.sync`."""

import copy
import gc
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from prometheus_client import REGISTRY

from endpointslice.snapshot import Changed, Listed
from endpointslice.types import CIDR, Kind, NodeName, Object, PodName
from proxy.commits import Commit
from proxy.kernel.change import Change, Counters, Elements, Installed, KernelError, apply_change
from proxy.kernel.ruleset import SetId
from proxy.messages import Events, Message, Stop
from proxy.pacing import Pacing
from proxy.planner.settings import Settings
from proxy.sources import KindStatus, Post
from proxy.sync import Loop
from tests.elements_text import show_elements
from tests.strategies import kind_of

KINDS = frozenset({Kind.SERVICE, Kind.ENDPOINT_SLICE, Kind.NODE})
PATIENCE_S = 60.0  # a test that waits this long has failed


class KeepingSource:
    """Posts nothing by itself; remembers which pods it was asked for."""

    kinds = KINDS

    def __init__(self) -> None:
        self.asked: list[PodName] = []

    def start(self, post: Post) -> None: ...

    def stop(self) -> None: ...

    def request_pod(self, pod: PodName, uid: str) -> None:
        self.asked.append(PodName(pod + uid))

    def status(self) -> Mapping[Kind, KindStatus]:
        return {}


class KeepingKernel:
    """Does what it is told, but for the errors lined up in `errors`; one with None applies its change first."""

    def __init__(self) -> None:
        self.held: Installed | None = None
        self.calls: list[str] = []
        self.errors: list[KernelError] = []
        self.counts: dict[tuple[SetId, bytes], int] = {}
        self.open = threading.Event()
        self.open.set()

    def read(self) -> Installed | None:
        self.calls.append("read")
        return copy.deepcopy(self.held)

    def install(self, elements: Mapping[SetId, Elements]) -> Installed:
        self._begin("install")
        self.held = Installed({set_id: dict(part) for set_id, part in elements.items()}, set())
        return copy.deepcopy(self.held)

    def run(self, change: Change, installed: Installed) -> Counters:
        self._begin("run", change)
        self._apply(change)
        apply_change(installed, change)
        deleted = {(set_id, key) for set_id, part in change.sets.items() for key in part.delete}
        return {key: self.counts.pop(key) for key in deleted & self.counts.keys()}

    def _begin(self, call: str, change: Change | None = None) -> None:
        self.calls.append(call)
        assert self.open.wait(PATIENCE_S)
        if self.errors:
            error = self.errors.pop(0)
            if error.unknown and change is not None:
                self._apply(change)
            raise error

    def _apply(self, change: Change) -> None:
        """To a copy, which then takes the place of what was held: the test's thread may be reading that."""
        held = copy.deepcopy(self.held)
        assert held is not None
        apply_change(held, change)
        self.held = held


def first_lists(*objects: Object) -> Iterator[Events]:
    """A complete list of each kind that the loop waits for."""
    for kind in sorted(KINDS):
        listed = tuple(Changed(kind, one.name, one) for one in objects if kind_of(one) is kind)
        yield Events((Listed(kind, listed),))


class RunningLoop:
    """A loop in a thread of its own."""

    def __init__(self, kernel: KeepingKernel, pacing: Pacing) -> None:
        self.kernel = kernel
        self.source = KeepingSource()
        settings = Settings(NodeName("n1"), cluster_cidrs=(CIDR("10.244.0.0/16"),))
        self.commits: list[Commit] = []
        self.told: list[tuple[Change, str]] = []  # what was going to be written, and the kernel's last call until then
        self.loop = Loop(settings, self.source, kernel, pacing, [self])
        self.thread = threading.Thread(target=self.loop.run, daemon=True)
        self.thread.start()

    def writing(self, change: Change) -> None:
        self.told.append((change, self.kernel.calls[-1]))

    def committed(self, commit: Commit) -> None:
        self.commits.append(commit)

    def send(self, *messages: Message) -> None:
        for message in messages:
            self.loop.inbox.put(message)

    def list_all(self, *objects: Object) -> None:
        """The first complete list of each kind."""
        self.send(*first_lists(*objects))
        self.until(lambda: self.loop.health().ready)

    def put(self, *objects: Object) -> None:
        self.send(Events(tuple(Changed(kind_of(one), one.name, one) for one in objects)))

    def shown(self) -> set[str]:
        """What the kernel holds for Services, a line an element."""
        return show_elements(self.kernel.held.elements) if self.kernel.held is not None else set()

    def until(self, true: Callable[[], bool]) -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        while not true():
            assert time.monotonic() < deadline_s, "it never came true"
            assert self.thread.is_alive(), "the loop ended"
            time.sleep(0.001)

    def stop(self) -> None:
        self.send(Stop())
        self.thread.join(PATIENCE_S)
        assert not self.thread.is_alive()


@contextmanager
def running(
    kernel: KeepingKernel | None = None, longest_retry_s: float = 0.05, owners_s: float = PATIENCE_S
) -> Iterator[RunningLoop]:
    """A loop that is stopped at the end; it settles the collector for a daemon, which is undone as well."""
    thresholds = gc.get_threshold()
    loop = RunningLoop(kernel or KeepingKernel(), Pacing(0.0, longest_retry_s, owners_s))
    try:
        yield loop
    finally:
        loop.kernel.open.set()
        loop.stop()
        gc.set_threshold(*thresholds)
        gc.unfreeze()


def metric(name: str, **labels: str) -> float:
    """The value of one of our metrics now; 0 if it has none yet."""
    return REGISTRY.get_sample_value(name, labels) or 0.0
