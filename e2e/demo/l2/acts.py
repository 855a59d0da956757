"""EFFECT: what happens to the owner, one function an act."""

from e2e.controlplane.waiting import wait_for
from e2e.demo.l2.judge import LOST_S, Fate
from e2e.demo.l2.stage import GRACE_S, Act, Stage

_SETTLE_S = 4.0


def cut(stage: Stage) -> None:
    """The owner dies, as far as anybody on the LAN can tell."""
    stage.set_cable(stage.owner(), "down")


def join(stage: Stage) -> None:
    """It is back."""
    for node in tuple(stage.cut):
        stage.set_cable(node, "up")


def update(stage: Stage) -> None:
    """As a DaemonSet with maxSurge 1 does: the next announcer starts, and once it is ready the one before ends."""
    owner = stage.owner()
    before = stage.announcers[owner]
    following = stage.start_announcer(owner)
    wait_for(following.is_ready, "the next announcer is ready")
    before.terminate()


def drain(stage: Stage) -> None:
    """The owner gives all away, as before maintenance."""
    stage.announcers[stage.owner()].command("drain")


ACTS = (
    Act("The owner's cable is cut: its node is lost", cut, Fate(moves=True, dark_s=LOST_S), _SETTLE_S),
    Act("The cable is in again: the node returns", join, Fate(moves=False), _SETTLE_S),
    Act("The owner's announcer is updated", update, Fate(moves=False), _SETTLE_S),
    Act("The owner is drained by `closeby drain`", drain, Fate(moves=True), GRACE_S + _SETTLE_S),
)
