"""EFFECT: the announcer's process: one loop, woken by packets, urgent messages, threads and the machine's timer.

At every wake-up lateness is judged first: after a pause the machine throws away unread what came in meanwhile.
"""

import os
import queue
import secrets
import selectors
import signal
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from types import FrameType
from typing import NamedTuple

import msgspec
import structlog

from proxy.announcer import metrics
from proxy.announcer.announcer import Announcer
from proxy.announcer.chronicle import Chronicle
from proxy.announcer.config import Config
from proxy.announcer.control import Request, serve_control
from proxy.announcer.counters import read_received
from proxy.announcer.deeds import Parts
from proxy.announcer.feed_client import FeedClient, Gone, News
from proxy.announcer.hand_over import render_state
from proxy.announcer.health import Health
from proxy.announcer.keyring import Keys, KeyWatch, read_keys
from proxy.announcer.memory_file import read_memory, write_memory
from proxy.announcer.moment import render_status
from proxy.announcer.netlink import Links, LinkWatch
from proxy.announcer.orders import order_move
from proxy.announcer.outside import Outside
from proxy.announcer.ownership import Ownership, count_troubled, describe_ownership, may_change
from proxy.announcer.ownership_sender import OwnershipSender
from proxy.announcer.packets import PacketSocket
from proxy.announcer.speech import AddressBook, Speech
from proxy.announcer.status import count_members
from proxy.announcer.take_over import take_over
from proxy.l2.events import DrainAsked, DrainEnded, RestartAsked, StopAsked, Tick
from proxy.l2.guard import is_late
from proxy.l2.state import Memory, Start, remember, start
from proxy.l2.types import DrainCause
from proxy.memory import prepare_memory

log = structlog.get_logger()

_FAREWELLS, _FAREWELL_GAP_S = 3, 0.02  # of a restart: one datagram may be lost
_LAST_S = 1.0  # of a machine that shuts down: its kubelet lets it stand until this process has ended
_REMEMBER_S = 10.0
_SWITCH_S = 0.0005  # how long the loop's thread waits for another that computes
_MOST_FRAMES = 64  # of one interface in a row, so that a flood of questions starves no heartbeat


_Render = Callable[[], bytes]


class _Asked(NamedTuple):
    request: Request
    answer: queue.SimpleQueue[_Render]


class _End(NamedTuple):
    """SIGTERM or SIGINT."""


class _NewKeys(NamedTuple):
    keys: Keys


_Item = Links | News | Gone | _Asked | _NewKeys | _End


class Process:
    """From start to end."""

    def __init__(self, config: Config) -> None:
        """KeyFileError without keys; OSError without rights or ports."""
        keys = read_keys(config.keys)
        settings = msgspec.structs.replace(config.settings, keys=tuple(keys))
        echo_id = secrets.randbelow(1 << 16)
        self._config = config
        self._outside = Outside(config.ports, echo_id)
        self._speech = Speech(self._outside, AddressBook(config.peers), keys, echo_id)
        drawn = Start(secrets.randbits(64), secrets.token_bytes(16), read_memory(config.memory))
        self._sender = OwnershipSender(self._ownership, self._is_in_doubt)
        self._chronicle = Chronicle(self._sender.wake)
        self._announcer = Announcer(
            start(settings, drawn, time.monotonic()),
            Parts(
                self._outside,
                self._speech,
                self._speech.book,
                echo_id,
                self._chronicle,
                config.gateways,
                config.options,
            ),
        )
        self.health = Health(config.ready_file)
        self._inbox: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._counted: dict[str, int] = {}
        self._late_s: list[float] = []  # of wake-ups that aren't counted yet
        self._remembered_s = time.monotonic()
        self._remembered: Memory | None = None  # None: not yet
        self._ended = False
        self._handed_over = False

    def post(self, item: _Item) -> None:
        """For any thread. That nothing is new wakes nobody, and is heard with what comes next."""
        self._inbox.put(item)
        if not isinstance(item, News) or item.said is not None:
            os.eventfd_write(self._bell, 1)

    def run(self) -> None:
        """Until SIGTERM or SIGINT: a restart, for which nobody takes anything for three seconds.

        While the machine shuts down it is the end: what was given away is announced by its new owners at once.
        """
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)
        self._outside.selector.register(self._bell, selectors.EVENT_READ)
        LinkWatch(self.post).start()
        KeyWatch(self._config.keys, self._speech.keys, lambda keys: self.post(_NewKeys(keys))).start()
        self._sender.start()
        FeedClient(self._config.proxy_socket, self.post, self._sender.connected).start()
        self._go_on()
        control = serve_control(self._config.control_socket, self._ask)
        sys.setswitchinterval(_SWITCH_S)
        prepare_memory()
        log.info("started", node=self._config.settings.node)
        while not self._ended and not self._handed_over:
            self._wake()
            self.health.woke(self._announcer.state)
        self.health.rest()
        if self._handed_over:
            self._wait_for_end()
        else:
            self._leave()
            control.remove()
            log.info("stopped", addresses=len(self._announcer.state.mine))

    def _go_on(self) -> None:
        """In the place of a process that still runs on this node, if one does."""
        state = take_over(self._config.control_socket, self._announcer.state.settings)
        if state is not None:
            self._announcer.resume(state)
            log.info("took_over", addresses=len(state.mine))

    def _ownership(self) -> Ownership:
        """For the sender's thread: states are frozen, and links are replaced whole."""
        interfaces = {wire: link.interface for wire, link in self._outside.links.items()}
        return describe_ownership(self._announcer.state, time.monotonic(), interfaces, self._chronicle.story)

    def _is_in_doubt(self) -> bool:
        return may_change(self._announcer.state, time.monotonic())

    def _end(self, _number: int, _frame: FrameType | None) -> None:
        self.post(_End())

    def _wake(self) -> None:
        announcer, speech = self._announcer, self._speech
        due_s = announcer.state.due_s
        ready = self._outside.selector.select(max(0.0, min(due_s, speech.kept_s) - time.monotonic()))
        now = time.monotonic()
        if now >= speech.kept_s:
            speech.send_kept(late=now >= due_s)
            if not ready and now < due_s:
                return
        self._late_s.append(max(0.0, now - due_s))
        if is_late(announcer.state, now):
            announcer.step(Tick(), more=True)  # who stood still flushes the sockets first
        self._read([key.fileobj for key, _events in ready if isinstance(key.fileobj, PacketSocket)])
        if any(key.fileobj == self._bell for key, _events in ready):
            os.eventfd_read(self._bell)
        self._take_inbox()
        if time.monotonic() >= announcer.state.due_s and not self._handed_over:
            self._tick()

    def _read(self, frames: Iterable[PacketSocket]) -> None:
        self._announcer.take_letters(self._outside.letters())
        self._announcer.note_members()
        for sock in frames:
            for _ in range(_MOST_FRAMES):
                captured = sock.receive()
                if captured is None:
                    break
                self._announcer.take_frame(sock, captured)

    def _tick(self) -> None:
        announcer = self._announcer
        now = time.monotonic()
        interval_s = announcer.state.settings.timing.interval_s
        if any(now - wire.last_frame_s > interval_s for wire in announcer.state.wires.values()):
            counted = read_received()
            announcer.note_counted(counted, self._counted)
            self._counted = counted
        announcer.step(Tick())
        if now - self._remembered_s > _REMEMBER_S:
            self._remembered_s = now
            self._note_metrics()
            memory = remember(announcer.state)
            if memory != self._remembered:
                self._remembered = memory
                write_memory(self._config.memory, memory)

    def _note_metrics(self) -> None:
        """Not at each wake-up: what is seldom done is slow to do."""
        for late_s in self._late_s:
            metrics.LATE_SECONDS.observe(late_s)
        self._late_s.clear()
        state, now = self._announcer.state, time.monotonic()
        for wire, members in count_members(state, now).items():
            metrics.MEMBERS.labels(wire).set(members)
        unowned, conflicting = count_troubled(state, now)
        metrics.UNOWNED.set(unowned)
        metrics.CONFLICTING.set(conflicting)

    def _take_inbox(self) -> None:
        while not self._inbox.empty() and not self._handed_over:
            self._take(self._inbox.get())

    def _take(self, item: _Item) -> None:
        announcer = self._announcer
        match item:
            case Links():
                announcer.take_links(item)
            case News() | Gone():
                announcer.take_news(item)
                self.health.told()
            case _Asked(request, answer):
                answer.put(self._answer(request))
            case _NewKeys(keys):
                self._speech.keys = keys
                settings = msgspec.structs.replace(announcer.state.settings, keys=tuple(keys))
                announcer.state = msgspec.structs.replace(announcer.state, settings=settings)
                log.info("keys_changed", ids=list(keys))
            case _End():
                self._ended = True

    def _ask(self, request: Request) -> bytes:
        """For the control socket's threads: they put it into words, which for thousands of addresses takes long."""
        answer: queue.SimpleQueue[_Render] = queue.SimpleQueue()
        self.post(_Asked(request, answer))
        try:
            return answer.get(timeout=5.0)()
        except queue.Empty as error:
            raise TimeoutError from error

    def _answer(self, request: Request) -> _Render:
        announcer = self._announcer
        if request.command in {"state", "hand-over"}:
            # Not one step more after this, nor a socket that takes what is meant for the other.
            if request.command == "hand-over":
                self._handed_over = True
                self._sender.stop()
                self._outside.close()
            return partial(render_state, announcer.state)
        match request.command:
            case "drain":
                announcer.step(DrainAsked())
            case "undrain":
                announcer.step(DrainEnded())
            case "move":
                for event in order_move(announcer.state, request.vip, request.to):
                    announcer.step(event)
        return partial(render_status, announcer.moment(), request.without)

    def _wait_for_end(self) -> None:
        """Another process goes on. Not to end before one is told to: a container would be started again."""
        log.info("handed_over")
        while not isinstance(self._inbox.get(), _End):
            pass
        log.info("stopped", addresses=0)

    def _leave(self) -> None:
        if DrainCause.SHUTDOWN in self._announcer.state.drains:
            # Clients that ask this node's MAC would lose it before the grace is over: the new owners announce now.
            self._announcer.step(StopAsked())
            time.sleep(_LAST_S)
        else:
            for _ in range(_FAREWELLS):
                self._announcer.step(RestartAsked())
                time.sleep(_FAREWELL_GAP_S)
        write_memory(self._config.memory, remember(self._announcer.state))
