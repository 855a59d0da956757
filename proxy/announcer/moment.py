"""An announcer at one moment, to be described later: all of it is frozen, or replaced whole. No I/O."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from endpointslice.types import IP, NodeName
from proxy.announcer.served import Said
from proxy.announcer.status import Status, describe
from proxy.l2.state import State
from proxy.l2.types import Channel


class Moment(NamedTuple):
    """What its status is made of."""

    state: State
    now: float
    said: Said
    wire_of: Mapping[IP, Channel]

    def describe(self, without: NodeName) -> Status:
        """For people; `without`: as if that node were lost."""
        return msgspec.structs.replace(
            describe(self.state, self.now, without),
            no_interface=tuple(sorted(self.said.served.keys() - self.wire_of.keys())),
            problems=self.said.around.problems,
        )


def render_status(moment: Moment, without: NodeName) -> bytes:
    """The same as JSON."""
    return msgspec.json.encode(moment.describe(without))
