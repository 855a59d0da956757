"""EFFECT: the orders in which a node can move, each under load."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from e2e.migration.load import Cost
from e2e.migration.rig import Mode, Rig

_BETWEEN_S = 1.0  # what goes wrong at a step may show a moment later

Step = Callable[[Rig, Mode], object]


class Order(NamedTuple):
    """A way to move."""

    name: str
    steps: Sequence[Step]
    to_closeby: bool = True
    loses: bool = False  # shown as a warning, not as advice


def _start_closeby(rig: Rig, _mode: Mode) -> None:
    rig.start_closeby()


def _stop_closeby(rig: Rig, _mode: Mode) -> None:
    rig.closeby.stop()


def _start_peer(rig: Rig, mode: Mode) -> None:
    rig.start_peer(mode)


def _stop_peer(rig: Rig, _mode: Mode) -> None:
    rig.stop_peer()


def _clean_up_peer(rig: Rig, _mode: Mode) -> None:
    rig.clean_up_peer()


def _clean_up_closeby(rig: Rig, _mode: Mode) -> None:
    rig.clean_up_closeby()


ORDERS = (
    Order("closeby beside kube-proxy, then stop and clean", (_start_closeby, _stop_peer, _clean_up_peer)),
    Order("stop kube-proxy, start closeby, then clean", (_stop_peer, _start_closeby, _clean_up_peer)),
    Order("stop and clean kube-proxy, then start closeby", (_stop_peer, _clean_up_peer, _start_closeby), loses=True),
    Order(
        "back: kube-proxy beside closeby, then stop and clean",
        (_start_peer, _stop_closeby, _clean_up_closeby),
        to_closeby=False,
    ),
    Order(
        "back: stop closeby, start kube-proxy, then clean",
        (_stop_closeby, _start_peer, _clean_up_closeby),
        to_closeby=False,
    ),
    Order(
        "back: stop and clean closeby, then start kube-proxy",
        (_stop_closeby, _clean_up_closeby, _start_peer),
        to_closeby=False,
        loses=True,
    ),
)


def find_order(name: str) -> Order:
    """The order of that name."""
    return next(order for order in ORDERS if order.name == name)


def measure(rig: Rig, order: Order, mode: Mode) -> Cost:
    """What the order costs: from the one proxy alone on the node to the other alone."""
    prepare(rig, mode, closeby=not order.to_closeby)
    with rig.load() as load:
        time.sleep(_BETWEEN_S)
        for step in order.steps:
            step(rig, mode)
            time.sleep(_BETWEEN_S)
        return load.stop()


def prepare(rig: Rig, mode: Mode, *, closeby: bool) -> None:
    """One proxy alone, and no rule of the other."""
    rig.stop_peer()
    rig.closeby.kill()
    rig.clean_up_peer()
    rig.clean_up_closeby()
    if closeby:
        rig.start_closeby()
    else:
        rig.start_peer(mode)


def measure_all(rig: Rig) -> Iterator[tuple[Mode, Order, Cost]]:
    """Every order, in both modes."""
    for mode in Mode:
        for order in ORDERS:
            yield mode, order, measure(rig, order, mode)
