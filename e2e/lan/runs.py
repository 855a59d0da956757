"""EFFECT: one scenario, played once with fresh daemons, and measured."""

import time
from contextlib import ExitStack

from e2e.lan.lan import Lan
from e2e.lan.measure import Figure, Window, measure
from e2e.lan.scenarios import Scenario, Stage
from e2e.lan.speakers.speaker import Speaker
from e2e.lan.watching import Watch, await_owner

_BEFORE_S = 1.0


def run_once(lan: Lan, speaker: Speaker, scenario: Scenario, family: str) -> dict[Figure, float]:
    """Every figure of the run; afterwards nothing of the speaker runs and the LAN is whole.

    The window begins right before the fault. SettleError if nobody comes to own the VIP, ProgramError if a daemon or
    a client ended by itself.
    """
    with ExitStack() as during:
        during.callback(lan.heal)
        during.callback(speaker.close)
        for node in lan.nodes:
            speaker.start(node)
        time.sleep(scenario.rest_s)
        stage = Stage(lan, speaker, family, await_owner(lan, family), during)
        if scenario.prepare is not None:
            scenario.prepare(stage)
        with Watch(lan, family, served=scenario.served) as watch:
            time.sleep(_BEFORE_S)
            began = time.monotonic()
            scenario.act(stage)
            time.sleep(scenario.after_s)
            window = Window(began, time.monotonic())
            return measure(watch.stop(), window)
