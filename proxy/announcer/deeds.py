"""EFFECT: what an announcer's machine wants done, done."""

from typing import NamedTuple

import structlog

from endpointslice.types import IP
from proxy.announcer import metrics
from proxy.announcer.chronicle import Chronicle
from proxy.announcer.groups import Groups
from proxy.announcer.notes import show_report
from proxy.announcer.outside import Outside
from proxy.announcer.speech import AddressBook, Question, Speech
from proxy.announcer.wires import WireLink
from proxy.l2.actions import (
    Action,
    Announce,
    Echo,
    FlushSockets,
    Keep,
    Look,
    Owned,
    Probe,
    Reply,
    Report,
    Send,
    Tell,
    Withdraw,
)
from proxy.l2.candidates import Options
from proxy.l2.shares import NO_SHARE
from proxy.l2.state import State
from proxy.l2.types import Channel, MemberId

log = structlog.get_logger()


class Parts(NamedTuple):
    """What an announcer works with."""

    outside: Outside
    speech: Speech
    book: AddressBook
    echo_id: int
    chronicle: Chronicle
    gateways: tuple[IP, ...] = ()  # given by hand
    options: Options = Options()


class Deeds:
    """Done in the order in which they are wanted."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._groups = Groups()
        self.question: Question | None = None  # the frame that is being looked at
        self.reply_to: tuple[Channel, MemberId, IP] | None = None  # the message that is

    def do(self, action: Action, state: State, now: float) -> None:
        """One of them; `state` is the one after the step."""
        speech = self._parts.speech
        match action:  # of SetTimer nothing is done: the loop reads due_s of the state
            case Send():
                speech.send(action, self.reply_to)
            case Keep():
                speech.keep(action)
            case Reply(key):
                if self.question is not None:
                    speech.reply(key.wire, self.question)
            case Announce():
                speech.announce(action)
            case Look() | Probe():
                speech.ask(action)
            case Tell():
                speech.tell(action)
            case Echo():
                speech.echo(action, now)
            case Owned() | Withdraw():
                self._own(action, state)
            case FlushSockets():
                self._parts.outside.flush()
            case Report():
                show_report(state, action, now)
                self._parts.chronicle.note(action, state.members.get(action.member))

    def _own(self, action: Owned | Withdraw, state: State) -> None:
        vip, wire = action.key
        self._parts.chronicle.note_held(action.key, held=isinstance(action, Owned))
        metrics.OWNED.set(len(state.mine))
        link = self._parts.outside.links.get(wire)
        if link is None:
            return
        if isinstance(action, Owned):
            self.join(vip, link)
        elif ":" in vip and state.me not in state.shares.get(action.key, NO_SHARE).members:
            self._groups.leave(vip, link.number)

    def join(self, vip: IP, link: WireLink) -> None:
        """The group that questions about an IPv6 address go to; again where it was joined already."""
        if ":" in vip:
            try:
                self._groups.join(vip, link.number)
            except OSError as error:
                log.warning("group_not_joined", vip=vip, interface=link.interface, why=error.strerror)

    def forget_groups(self, interface: int) -> None:
        """Of an interface that is none of ours any more."""
        self._groups.forget(interface)
