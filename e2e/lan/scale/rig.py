"""EFFECT: the wire, the crowd on it, and the announcer that is measured, started and ended."""

import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
from msgspec.structs import replace

from e2e.lan.scale.crowd import Order, render_interface
from e2e.lan.scale.plan import FIRST_PORT, GATEWAY, KEY, PREFIX_LENGTH, plan_members, plan_vips
from e2e.lan.scale.usage import read_usage
from e2e.world import netns
from e2e.world.processes import ProgramError, read_answer, stop_programs, wait_ready
from e2e.world.signals import exit_on_signals, signals_held
from endpointslice.snapshot import EMPTY
from endpointslice.types import IP, Kind, Service, ServiceName, Slice, SliceEndpoint, SliceName
from endpointslice.types import Family as IpFamily
from proxy.announcer.feed_server import Feed
from proxy.commits import Commit
from proxy.sources import KindStatus

_ELECTED_S = 12.0  # waiting, looks and claims take three
_STARTED = '"event": "started"'  # in its log
_PATIENCE_S = 120.0
_POLL_S = 0.05


class Cost(msgspec.Struct, frozen=True):
    """Of one announcer."""

    members: int
    vips: int
    owned: int  # that it claimed for itself
    elected_s: float  # from the first table to its last claim
    claims_s: float  # from its first claim to its last
    elected_cpu_s: float  # used meanwhile, and for taking in the others' claims
    idle_cpu: float  # part of one core, afterwards
    wakes: float  # a second
    resident_mb: float


class _Seen(msgspec.Struct):
    """What the crowd tells."""

    claimed: int
    first_s: float
    last_s: float


def measure(order: Order, folder: Path, *, settle_s: float, idle_s: float) -> Cost:
    """Elect all, wait until it is quiet, and look for so long. ProgramError if a process ended by itself."""
    with _wire(order.members) as (home, outside), ExitStack() as during:
        crowd = _start(outside, ["-m", "e2e.lan.scale.crowd", msgspec.json.encode(order).decode()])
        during.callback(stop_programs, [crowd])
        wait_ready(crowd, "the crowd")
        feed = Feed(folder / "feed.sock", plan_members(1)[0].node, _is_fresh)
        feed.start()
        during.callback(feed.close)
        announcer = _start_announcer(home, folder)
        during.callback(stop_programs, [announcer])
        _await_start(announcer, folder / "log")
        before, began = read_usage(announcer.pid), time.monotonic()
        _serve(feed, plan_vips(order.vips))
        time.sleep(_ELECTED_S)
        elected = read_usage(announcer.pid)
        time.sleep(settle_s)
        first = read_usage(announcer.pid)
        looked = time.monotonic()
        time.sleep(idle_s)
        last = read_usage(announcer.pid)
        took_s = time.monotonic() - looked
        assert crowd.stdin
        crowd.stdin.close()
        seen = read_answer(crowd, "the crowd", _Seen)
        idle_cpu = (last.cpu_s - first.cpu_s) / took_s
        return Cost(
            members=order.members,
            vips=order.vips,
            owned=seen.claimed,
            elected_s=seen.last_s - began,
            claims_s=seen.last_s - seen.first_s,
            elected_cpu_s=max(0.0, elected.cpu_s - before.cpu_s - idle_cpu * _ELECTED_S),
            idle_cpu=idle_cpu,
            wakes=(last.sleeps - first.sleeps) / took_s,
            resident_mb=last.resident_mb,
        )


@contextmanager
def _wire(members: int) -> Iterator[tuple[str, str]]:
    """Two namespaces, joined: the announcer's and the crowd's."""
    prefix = netns.unique_prefix("scale")
    home, outside = prefix + "home", prefix + "crowd"
    netns.sweep_namespaces()
    with exit_on_signals():
        try:
            netns.create_namespaces([home, outside])
            netns.run_ip({home: [f"link add eth0 type veth peer name eth0 netns {outside}"]})
            own = plan_members(1)[0].address
            netns.run_ip({outside: render_interface(members)})
            netns.run_ip(
                {
                    home: [
                        "link set lo up",
                        f"address add {own}/{PREFIX_LENGTH} dev eth0",
                        "link set eth0 up",
                        f"route add default via {GATEWAY}",
                    ]
                }
            )
            yield home, outside
        finally:
            with signals_held():
                netns.remove_namespaces(netns.list_namespaces(prefix))


def _start(name: str, argv: Iterable[str]) -> subprocess.Popen[str]:
    command = ["setpriv", "--pdeathsig", "KILL", "--", sys.executable, *argv]
    return subprocess.Popen(
        netns.command_in(name, command),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _start_announcer(home: str, folder: Path) -> subprocess.Popen[str]:
    keys = folder / "keys"
    keys.mkdir(exist_ok=True)
    (keys / "1").write_bytes(KEY)
    command = [
        *("setpriv", "--pdeathsig", "KILL", "--", sys.executable, "-m", "proxy", "announce", "--log-format=json"),
        *(f"--hostname-override={plan_members(1)[0].node}", f"--keys={keys}", f"--port={FIRST_PORT}"),
        *(f"--proxy-socket={folder / 'feed.sock'}", f"--announcer-control={folder / 'control.sock'}"),
        *(f"--memory={folder / 'memory'}", "--metrics-bind-address="),
    ]
    with (folder / "log").open("w") as log:
        return subprocess.Popen(netns.command_in(home, command), stderr=log, text=True, start_new_session=True)


def _await_start(announcer: subprocess.Popen[str], log: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while _STARTED not in log.read_text():
        if announcer.poll() is not None or time.monotonic() > deadline:
            raise ProgramError(f"the announcer isn't ready: {log.read_text()[-400:]}")
        time.sleep(_POLL_S)


def _serve(feed: Feed, vips: Iterable[IP]) -> None:
    """A Service of policy Cluster for each address."""
    services, slices = {}, {}
    for vip in vips:
        name = ServiceName(f"default/{vip}")
        services[name] = Service(name, (IP("10.96.0.1"),), (), load_balancer_ips=(vip,))
        piece = Slice(SliceName(f"{name}-x"), name, IpFamily.IPV4, (), (SliceEndpoint(IP("10.244.9.9")),))
        slices[name] = {piece.name: piece}
    feed.committed(Commit(replace(EMPTY, services=services, slices=slices), None))


def _is_fresh() -> dict[Kind, KindStatus]:
    return {Kind.SERVICE: KindStatus(connected=True)}
