"""What other threads tell the controller's loop."""

from typing import NamedTuple

from proxy.addresses.decode import Change
from proxy.addresses.types import Kind


class Heard(NamedTuple):
    """From a watch."""

    term: int  # in which the watch was begun: what an older one still says is dropped
    kind: Kind
    changes: tuple[Change, ...]
    listed: bool = False  # all objects of the kind


class Leading(NamedTuple):
    """This replica became the active one, or is it no more."""

    active: bool


class Stop(NamedTuple):
    """End the loop; what was written stays."""


Message = Heard | Leading | Stop
