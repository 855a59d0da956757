"""EFFECT: ask the process that still runs on this node for its state, as in an update that starts the new one first."""

from pathlib import Path

import structlog

from proxy.announcer.control import Request, ask_bytes
from proxy.announcer.hand_over import continue_state, parse_state
from proxy.l2.state import State
from proxy.l2.types import Settings

log = structlog.get_logger()


def take_over(control: Path, settings: Settings) -> State | None:
    """What to go on with in its place; None if none runs, or, with a warning, if nothing can be had of it.

    The state is looked at before it is asked for: who gives it away is silent from then on.
    """
    try:
        state = parse_state(ask_bytes(control, Request("state")), settings.node)
        if state is not None:
            state = parse_state(ask_bytes(control, Request("hand-over")), settings.node)
    except (FileNotFoundError, ConnectionRefusedError):
        return None
    except OSError as error:
        log.warning("not_taken_over", why=str(error))
        return None
    if state is None:
        log.warning("not_taken_over", why="the process that runs here gave no state that this version reads")
        return None
    return continue_state(state, settings)
