"""A loop that writes to this namespace's kernel while Services, slices and pods come and go; prints what it keeps.

    python -m tests.netns.soak CHANGES

Every name is new, so whatever is kept of what was deleted adds up.
"""

import gc
import json
import os
import random
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from endpointslice.snapshot import Changed, Listed
from endpointslice.types import (
    CIDR,
    IP,
    DaemonSet,
    DaemonSetName,
    Kind,
    NodeName,
    Pod,
    PodName,
    Protocol,
    ServiceName,
    ServicePort,
    SliceEndpoint,
    SliceName,
    TrafficDistribution,
    TrafficPolicy,
    Zone,
)
from proxy.kernel.netlink import NftKernel
from proxy.messages import Events, Stop
from proxy.metrics import COUNTED_SETS, render_connections, render_skipped
from proxy.pacing import Pacing
from proxy.planner.settings import Settings
from proxy.sources import KindStatus, Post
from proxy.sync import Loop
from tests.builders import a_slice, service

NODE = NodeName("n1")
AGENT = DaemonSetName("default/agent")
LIVE = 60  # Services at one time
WARM_UP = 0.3  # of the changes
_BATCH = 20
_PAGE_KB = os.sysconf("SC_PAGE_SIZE") >> 10


class Usage(NamedTuple):
    """What the process holds."""

    rss_kb: int
    files: int
    objects: int  # that Python's collector follows


class Churn:
    """A source whose objects are ever new; it answers for pods as the API server would."""

    kinds = frozenset({Kind.SERVICE, Kind.ENDPOINT_SLICE, Kind.NODE, Kind.DAEMON_SET})

    def __init__(self) -> None:
        self.draw = random.Random(7)
        self.live: deque[int] = deque()
        self.count = 0
        self.post: Post = lambda _batch: None
        self.asked: set[PodName] = set()

    def start(self, post: Post) -> None:
        """Post the first lists."""
        self.post = post
        selector = frozenset({("app", "web")})
        agent = Changed(Kind.DAEMON_SET, AGENT, DaemonSet(AGENT, selector, 2))
        post([Listed(kind, (agent,) if kind is Kind.DAEMON_SET else ()) for kind in self.kinds])

    def stop(self) -> None:
        """Nothing runs."""

    def request_pod(self, pod: PodName, uid: str) -> None:
        """Answer at once."""
        if pod not in self.asked:
            self.asked.add(pod)
            self.post([Changed(Kind.POD, pod, Pod(pod, uid, AGENT))])

    def status(self) -> Mapping[Kind, KindStatus]:
        """All is well."""
        return {}

    def next_changes(self) -> Sequence[Changed]:
        """A Service comes, or its slice changes, or the oldest goes."""
        if len(self.live) >= LIVE:
            return list(self._remove(self.live.popleft()))
        if self.live and self.draw.random() < 0.6:
            return [self._slice(self.draw.choice(self.live))]
        self.count += 1
        self.live.append(self.count)
        return [self._service(self.count), self._slice(self.count)]

    def _service(self, number: int) -> Changed:
        name = ServiceName(f"default/web-{number}")
        made = service(
            name,
            cluster_ips=(IP(f"10.96.{number // 250 % 250}.{number % 250 + 1}"),),
            ports=(ServicePort("http", Protocol.TCP, 80, 30000 + number % 2000),),
            type="NodePort",
            external_traffic_policy=self.draw.choice(list(TrafficPolicy)),
            traffic_distribution=self.draw.choice([None, TrafficDistribution.PREFER_CLOSE]),
        )
        return Changed(Kind.SERVICE, name, made)

    def _slice(self, number: int) -> Changed:
        name = SliceName(f"default/web-{number}-1")
        ends = [self._endpoint() for _ in range(self.draw.randrange(40))]
        return Changed(Kind.ENDPOINT_SLICE, name, a_slice(ends, name, service=ServiceName(f"default/web-{number}")))

    def _endpoint(self) -> SliceEndpoint:
        draw = self.draw
        pod = PodName(f"{AGENT}-{''.join(draw.choices('bcdfghjklm', k=5))}")
        return SliceEndpoint(
            IP(f"10.244.{draw.randrange(250)}.{draw.randrange(1, 250)}"),
            node=draw.choice([NODE, NodeName("n2")]),
            zone=Zone(draw.choice("ab")),
            pod=pod,
        )

    def _remove(self, number: int) -> Iterator[Changed]:
        yield Changed(Kind.SERVICE, f"default/web-{number}", None)
        yield Changed(Kind.ENDPOINT_SLICE, f"default/web-{number}-1", None)
        for pod in self.asked:  # they are long gone
            yield Changed(Kind.POD, pod, None)
        self.asked.clear()


def main(argv: list[str]) -> int:
    """Run, and print the usage after the warm-up and at the end."""
    changes = int(argv[0])
    source, kernel = Churn(), NftKernel()
    loop = Loop(Settings(NODE, cluster_cidrs=(CIDR("10.244.0.0/16"),)), source, kernel, Pacing(0.0, 1.0))
    source.start(lambda batch: loop.inbox.put(Events(tuple(batch))))
    thread = threading.Thread(target=loop.run)
    thread.start()
    warm = usage()
    with NftKernel() as counting:
        for number in range(0, changes, _BATCH):
            for _change in range(_BATCH):
                loop.inbox.put(Events(tuple(source.next_changes())))
            while not loop.inbox.empty():
                time.sleep(0.0005)
            if number % 1000 == 0:
                scrape(loop, counting)
            if number <= changes * WARM_UP < number + _BATCH:
                warm = usage()
        end = usage()
    loop.inbox.put(Stop())
    thread.join()
    kept = {"services": len(loop.published.snapshot.services), "pods": len(loop.published.snapshot.pods)}
    print(json.dumps({"warm": warm._asdict(), "end": end._asdict(), "kept": kept}))  # noqa: T201  # its only output
    return 0


def scrape(loop: Loop, kernel: NftKernel) -> None:
    """As somebody who reads /metrics."""
    counters = {(set_id, key): count for set_id in COUNTED_SETS for key, count in kernel.counters(set_id).items()}
    render_connections(loop.published, counters)
    render_skipped(loop.published)


def usage() -> Usage:
    """Now, after a collection."""
    gc.collect()
    rss_kb = int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_KB
    return Usage(rss_kb, len([*Path("/proc/self/fd").iterdir()]), len(gc.get_objects()) + gc.get_freeze_count())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
