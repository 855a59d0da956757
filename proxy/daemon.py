"""EFFECT: the running daemon: constructs its parts, starts their threads, and stops them. Nothing else constructs."""

import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import TYPE_CHECKING

import structlog
from prometheus_client import REGISTRY, disable_created_metrics

from endpointslice.external_ips import drop_external_ips
from endpointslice.snapshot import Changed, Listed
from proxy import metrics
from proxy.announcer.feed_server import Feed, ignore
from proxy.binding import Binder, ServerSpec
from proxy.commits import Observer
from proxy.config import Config, ConfigError
from proxy.conntrack.cleaner import Cleaner
from proxy.control import serve_control
from proxy.dump import render_dump
from proxy.head_start import HeadStart
from proxy.health import serve_health
from proxy.healthcheck.server import HealthCheckServer
from proxy.kernel.change import Counters, KernelError
from proxy.kernel.monitor import Monitor, Seen
from proxy.kernel.netlink import NftKernel, host_families
from proxy.kernel.ruleset import SetId
from proxy.messages import Events, ForeignChange, HostAddresses, Stop
from proxy.metrics import COUNTED_SETS, KernelCollector, SourceCollector
from proxy.metrics_server import serve_metrics
from proxy.node_guard import NodeGuard
from proxy.notices import Notice
from proxy.oom import set_oom_score
from proxy.pacing import Pacing
from proxy.planner.settings import PRIMARY, Detect
from proxy.pod_cidrs import PodCIDRGuard
from proxy.restart import RestartWanted
from proxy.sync import Loop
from proxy.sysctls import apply_conntrack_settings
from proxy.version import VERSION

if TYPE_CHECKING:
    from proxy.announcer.surroundings import Surroundings
    from proxy.l2status.writer import StatusWriter

log = structlog.get_logger()

# How long a thread waits for another that computes. While a scrape or a look at UDP flows is under way, each hand-over
# of a change costs that much: 5.2 ms at the median with Python's own 5 ms, 0.7 with this (a thread that counts, tried).
_SWITCH_S = 0.0005
_MONITOR_RETRY_S = 1.0  # after an error of the monitor's socket


class Daemon:
    """One node's daemon, from start to stop."""

    def __init__(self, config: Config, started: HeadStart) -> None:
        self._config = config
        self._started = started
        self._source, self._tell = started.source, started.tell
        self._kernel = NftKernel(host_families())
        self._health_checks = HealthCheckServer(config.settings.node, lambda: self._loop.health().healthy, self._tell)
        self._cleaner = Cleaner(self._kernel.families)
        self._surroundings: Surroundings | None = None
        self._l2_status = self._open_l2_status()
        self._feed = self._open_feed()
        self._ending = ""  # why the process ends without having been told to
        self._loop = Loop(
            config.settings,
            self._source,
            self._kernel,
            Pacing(config.min_sync_period_s, config.sync_period_s),
            self._observers(),
        )

    def _open_l2_status(self) -> "StatusWriter | None":
        api, config = self._started.api, self._config
        if api is None or config.announcer_socket is None:
            return None
        from proxy.l2status.writer import StatusWriter  # noqa: PLC0415  # for those that announce

        return StatusWriter(api, config.pool_namespace, config.settings.node, self._tell)

    def _open_feed(self) -> Feed | None:
        path, api = self._config.announcer_socket, self._started.api
        if path is None:
            return None
        heard = self._l2_status.hear if self._l2_status is not None else ignore
        feed = Feed(path, self._config.settings.node, self._source.status, heard, surveys=api is not None)
        if api is not None:
            from proxy.announcer.surroundings import Surroundings  # noqa: PLC0415  # for those that announce

            namespace = self._config.pool_namespace
            self._surroundings = Surroundings(api, namespace, feed.look_around, feed.note_connection)
        return feed

    def _observers(self) -> tuple[Observer, ...]:
        observers: list[Observer] = [self._health_checks, self._cleaner]
        observers += [part for part in (self._feed, self._l2_status) if part is not None]
        if self._config.manifests is None:
            node = self._config.settings.node
            observers.append(NodeGuard(node, self.end))
            if self._config.settings.detect is Detect.NODE_CIDR:
                pod_cidrs = PodCIDRGuard(node, self.end)
                pod_cidrs.start()
                observers.append(pod_cidrs)
        return tuple(observers)

    def run(self) -> None:
        """Work until SIGTERM or SIGINT, then stop and leave the rules in place.

        KernelError: this host can't run us. RestartWanted: only a new start takes in what has changed.
        """
        monitor = Monitor(self._kernel.port_id, self._kernel.families)  # before the first read: nothing goes unseen
        self._kernel.read()  # privilege and nf_tables are there, or this ends it in plain words
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        apply_conntrack_settings(self._config.conntrack, self._config.proc_sys)
        set_oom_score(self._config.oom_score_adj)
        self._serve()
        threading.Thread(target=self._watch_kernel, args=(monitor,), name="kernel-monitor", daemon=True).start()
        if self._config.settings.node_port_addresses != (PRIMARY,) or self._config.manifests is not None:
            from proxy.host import HostAddressWatch  # noqa: PLC0415  # pyroute2 takes a sixth of a second to import

            HostAddressWatch(lambda addresses: self._loop.inbox.put(HostAddresses(addresses))).start()
        self._health_checks.start()
        self._cleaner.start()
        log.info("started", version=VERSION, node=self._config.settings.node)
        self._tell(self._notice("Starting", f"closeby {VERSION} starts"))
        sys.setswitchinterval(_SWITCH_S)
        self._started.waiting.hand_to(self._post)
        self._loop.run()
        if self._surroundings is not None:
            self._surroundings.stop()
        if self._l2_status is not None:
            self._l2_status.stop()
        self._source.stop()
        self._config.control_socket.unlink(missing_ok=True)
        log.info("stopped", rules="left in place")  # the servers' threads end with the process
        if self._ending:
            raise RestartWanted(self._ending)

    def end(self, reason: str) -> None:
        """Stop soon, and have `run` raise RestartWanted; for any thread."""
        self._ending = reason
        self._loop.inbox.put(Stop())

    def _post(self, batch: Sequence[Changed | Listed]) -> None:
        served = batch if self._config.settings.external_ips else drop_external_ips(batch)
        self._loop.inbox.put(Events(tuple(served)))

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        self._loop.inbox.put(Stop())

    def _serve(self) -> None:
        config = self._config
        disable_created_metrics()  # type: ignore[no-untyped-call]  # prometheus-client leaves it so
        metrics.BUILD.info({"version": VERSION})
        REGISTRY.register(KernelCollector(lambda: self._loop.published, _count))
        REGISTRY.register(SourceCollector(self._source.status))
        binder = Binder(self._tell, hard_fail=config.bind_address_hard_fail)
        binder.start(
            ServerSpec(
                name="healthz",
                flag="--healthz-bind-address",
                address=config.healthz,
                serve=lambda at: serve_health(at, self._loop.health),
                failure=self._notice("FailedToStartProxierHealthcheck", warning=True),
            )
        )
        binder.start(
            ServerSpec(
                name="metrics",
                flag="--metrics-bind-address",
                address=config.metrics,
                serve=serve_metrics,
                failure=self._notice("FailedToStartMetricServer", warning=True),
            )
        )
        try:
            serve_control(config.control_socket, self._dump)
        except OSError as error:
            if error.errno is None:  # such as a path that is too long for a socket
                raise ConfigError(f"--control-socket: {config.control_socket}: {error}") from error
            # A full disk: that the traffic is looked after matters more than that dumps are to be had.
            log.warning("control_socket_unusable", socket=str(config.control_socket), why=error.strerror)
        if self._surroundings is not None:
            self._surroundings.start()
        if self._l2_status is not None:
            self._l2_status.start()
        if self._feed is not None:
            try:
                self._feed.start()
            except OSError as error:
                raise ConfigError(
                    f"--announcer-socket: {config.announcer_socket}: {error.strerror or error}"
                ) from error

    def _notice(self, reason: str, note: str = "", *, warning: bool = False) -> Notice:
        """About our Node."""
        return Notice(reason, "Start", note, kind="Node", name=self._config.settings.node, warning=warning)

    def _dump(self) -> bytes:
        return render_dump(self._loop.published.snapshot, self._config.settings)

    def _watch_kernel(self, monitor: Monitor) -> None:
        while True:
            try:
                seen = monitor.wait(None)
            except KernelError as error:
                log.warning("kernel_unwatched", why=error.reason, retry_s=_MONITOR_RETRY_S)
                time.sleep(_MONITOR_RETRY_S)
                seen = Seen.UNKNOWN
            if seen is not Seen.NOTHING:
                self._loop.inbox.put(ForeignChange())


def _count() -> Counters:
    """Connections by element, read over a socket of its own: the loop's belongs to the loop's thread."""
    counts: dict[tuple[SetId, bytes], int] = {}
    try:
        families = host_families()
        with NftKernel(families) as kernel:
            for set_id in (one for one in COUNTED_SETS if one.family in families):
                found: Mapping[bytes, int] = kernel.counters(set_id)
                counts.update({(set_id, key): packets for key, packets in found.items()})
    except KernelError as error:
        log.info("counters_unread", why=error.reason)
    return counts
