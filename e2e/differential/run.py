"""EFFECT: worlds, one after the other, against both proxies."""

import time
from collections import Counter
from collections.abc import Sequence
from random import Random

import msgspec

from e2e.controlplane.api import ApiError
from e2e.differential.apply import Applier
from e2e.differential.judge import Disagreement, confirm, find_disagreements
from e2e.differential.model import State, World
from e2e.differential.report import Difference, describe
from e2e.differential.rig import Rig
from e2e.differential.shrink import shrink
from e2e.differential.targets import Probe, choose_probes, list_companions
from e2e.differential.wanted import find_wanted

PROBES = 40  # in each state, of a few hundred
_SHRINK_TRIES = 60
_REPEATS = 3


class Counts(msgspec.Struct):
    """What a run has done so far."""

    worlds: int = 0
    states: int = 0
    probes: int = 0
    wanted: Counter[str] = msgspec.field(default_factory=Counter)
    seen_once: list[str] = msgspec.field(default_factory=list)  # differences that no repetition of their world showed
    apply_s: float = 0.0
    probe_s: float = 0.0


class Runner:
    """Judges worlds on one rig."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self._applier = Applier(rig)
        self.counts = Counts()

    def judge(self, world: World) -> Difference | None:
        """The first unexplained difference, shrunk; None if all is equal or meant to be."""
        rng = Random(world.seed)
        self.counts.worlds += 1
        for index, state in enumerate(world.states):
            probes = choose_probes(state, rng, PROBES)
            began = time.monotonic()
            self._applier.apply(state)
            applied = time.monotonic()
            unexplained = self._find_unexplained(world.states[: index + 1], probes)
            self.counts.states += 1
            self.counts.probes += len(probes)
            self.counts.apply_s += applied - began
            self.counts.probe_s += time.monotonic() - applied
            if unexplained:
                until = msgspec.structs.replace(world, states=world.states[: index + 1])
                return self._repeat(until, unexplained[0])
        return None

    def begin_anew(self) -> None:
        """After a world that could not be judged: without any Service. TimeoutError if not in sync even so."""
        self._applier.clear()
        self._applier.apply(State(None, ()))

    def _repeat(self, world: World, found: Disagreement) -> Difference | None:
        """The difference, shrunk, if it is there again when the world is; else it is noted, and None."""
        for _ in range(_REPEATS):
            again = self._try(world, found.probe)
            if again is not None:
                return self._shrink(world, again)
        self.counts.seen_once.append(describe(Difference(world, found)))
        return None

    def _find_unexplained(self, states: Sequence[State], probes: list[Probe]) -> list[Disagreement]:
        """What differs twice, and is not meant to; what is, is counted."""
        suspects = self._leave_out_wanted(states, find_disagreements(self._rig, probes))
        return self._leave_out_wanted(states, confirm(self._rig, [found.probe for found in suspects]))

    def _leave_out_wanted(self, states: Sequence[State], found: list[Disagreement]) -> list[Disagreement]:
        explained = [(one, find_wanted(states, one)) for one in found]
        self.counts.wanted.update(wanted.name for _, wanted in explained if wanted)
        return [one for one, wanted in explained if wanted is None]

    def _shrink(self, world: World, found: Disagreement) -> Difference:
        newest = found

        def differs(candidate: World) -> bool:
            nonlocal newest
            try:
                again = self._try(candidate, found.probe)
            except ApiError:  # it takes no such Service
                return False
            newest = again or newest
            return again is not None

        smallest = shrink(world, differs, _SHRINK_TRIES)
        return Difference(smallest, newest)

    def _try(self, world: World, probe: Probe) -> Disagreement | None:
        """The probe's difference after all states of the world, if it is there and nothing explains it.

        Those that share a binding with it are asked, too. It begins without any Service: bindings are of this world.
        """
        self._applier.apply(State(world.states[0].zone, ()))
        for state in world.states:
            self._applier.apply(state)
        again = confirm(self._rig, list_companions(world.states[-1], probe))
        return next((found for found in again if find_wanted(world.states, found) is None), None)
