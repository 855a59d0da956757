"""Random failures on the simulated LAN, then heal: who answered meanwhile, and does it settle.

python -m tests.l2.fuzz --seed 17 --nodes 5     # one run again, with all that was noted
python -m tests.l2.fuzz --seeds 1000            # many, and how long two or none answered
"""

import argparse
import random
import sys
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from proxy.l2.events import Event, LinkChanged
from proxy.l2.types import DEFAULT, NODE_NETWORK, PROFILES, Channel, Timing
from tests.l2.checks import BrokenError
from tests.l2.lan import GATEWAY, WIRE, WIRES
from tests.l2.simulation import Simulation, World
from tests.l2.watch import Stretch

BOOT_S = 6.0


class Variant(StrEnum):
    """What else is played with."""

    PLAIN = "plain"
    KEYS = "keys"  # the Secret's key is changed, again and again
    ISOLATED = "isolated"  # no member hears another on the wire: the node network judges
    WIRES = "wires"  # two, and the node network


class Outcome(NamedTuple):
    """What one run showed."""

    simulation: Simulation
    healed_s: float  # when the last failure ended
    failures: int
    settled_in_s: float  # after that
    longest_two_s: float  # answering at once
    longest_none_s: float


class Mischief:
    """Failures of all kinds, each of which ends by itself."""

    def __init__(self, simulation: Simulation, chance: random.Random, variant: Variant) -> None:
        self.variant = variant
        self.key = 1
        self.changing = False
        self.simulation = simulation
        self.chance = chance
        self.names = list(simulation.nodes)
        self.failures = 0

    def one(self) -> None:
        """Begin one."""
        kinds: list[Callable[[float], None]] = [
            self._cut,
            self._cut,
            self._cut_one_way,
            self._cut_messages,
            self._pause,
            self._pause_clock,
            self._restart,
            self._restart,
            self._lose,
            self._unplug,
            self._drop_carrier,
            self._surge,
        ]
        if self.variant is Variant.KEYS:
            kinds += [self._change_key] * 4
        self.failures += 1
        self.chance.choice(kinds)(self.chance.choice((0.3, 0.8, 1.5, 3.0, 6.0)) * (0.5 + self.chance.random()))

    def _some(self) -> list[str]:
        return self.chance.sample(self.names, self.chance.randint(1, max(1, len(self.names) // 2)))

    def _cut(self, for_s: float) -> None:
        some = self._some()
        self._ways(self.simulation.lan.cut, some, for_s)

    def _cut_messages(self, for_s: float) -> None:
        self._ways(self.simulation.lan.deaf, self._some(), for_s)

    def _ways(self, ways: set[tuple[str, str, Channel]], some: list[str], for_s: float) -> None:
        rest = [name for name in self.names if name not in some]
        mine = {
            way
            for one in some
            for other in rest
            for channel in (*WIRES, NODE_NETWORK)
            for way in ((one, other, channel), (other, one, channel))
        }
        ways |= mine
        self.simulation.after(for_s, partial(ways.difference_update, mine))

    def _cut_one_way(self, for_s: float) -> None:
        one, other = self.chance.sample(self.names, 2)
        mine = {(one, other, channel) for channel in (*WIRES, NODE_NETWORK)}
        self.simulation.lan.cut |= mine
        self.simulation.after(for_s, partial(self.simulation.lan.cut.difference_update, mine))

    def _pause(self, for_s: float) -> None:
        self.simulation.pause(self.chance.choice(self.names), for_s)

    def _pause_clock(self, for_s: float) -> None:
        self.simulation.pause(self.chance.choice(self.names), for_s, clock=True)

    def _restart(self, for_s: float) -> None:
        name = self.chance.choice(self.names)
        if self.simulation.nodes[name].state is not None:
            self.simulation.kill(name, forgets=self.chance.random() < 1 / 2)
            self.simulation.after(for_s, partial(self._boot, name))

    def _boot(self, name: str) -> None:
        if self.simulation.nodes[name].state is None:
            self.simulation.boot(name)

    def _lose(self, for_s: float) -> None:
        lan = self.simulation.lan
        lan.loss = self.chance.choice((0.05, 0.1, 0.2))
        self.simulation.after(for_s, partial(setattr, lan, "loss", 0.0))

    def _unplug(self, for_s: float) -> None:
        name = self.chance.choice(self.names)
        self.simulation.lan.unplugged.add(name)
        self.simulation.after(for_s, partial(self.simulation.lan.unplugged.discard, name))

    def _drop_carrier(self, for_s: float) -> None:
        name = self.chance.choice(self.names)
        self._carrier(name, up=False)
        self.simulation.after(for_s, partial(self._carrier, name, up=True))

    def _carrier(self, name: str, *, up: bool) -> None:
        simulation = self.simulation
        change = simulation.lan.unplugged.discard if up else simulation.lan.unplugged.add
        change(name)
        gateway = GATEWAY if simulation.world.gateway else None
        event: Event = LinkChanged(WIRE, mac=f"mac-{name}", carrier=up, gateway=gateway)  # type: ignore[arg-type]
        simulation.deliver(simulation.nodes[name], event)

    def mend_carrier(self, name: str) -> None:
        """If it is out."""
        state = self.simulation.nodes[name].state
        if state is not None and not state.wires[WIRE].carrier:
            self._carrier(name, up=True)

    def end_all(self) -> None:
        """What a failure left: all that still lasts ends now."""
        simulation = self.simulation
        simulation.lan.heal()
        for name, node in simulation.nodes.items():
            simulation.change_keys(name, (self.key,))
            if node.state is None:
                simulation.boot(name)
            elif node.paused:
                simulation.resume(name)
            self.mend_carrier(name)

    def _change_key(self, for_s: float) -> None:
        """The new one reaches the nodes one after another, and then the old one leaves them the same way."""
        if self.changing:
            return
        self.changing, old = True, self.key
        self.key += 1
        for name in self.names:
            come_s, go_s = self.chance.random() * for_s, (1 + self.chance.random()) * for_s + 1
            self.simulation.after(come_s, partial(self.simulation.change_keys, name, (old, self.key)))
            self.simulation.after(go_s, partial(self.simulation.change_keys, name, (self.key,)))
        self.simulation.after(2 * for_s + 1, self._changed)

    def _changed(self) -> None:
        self.changing = False

    def _surge(self, _for_s: float) -> None:
        self.simulation.surge(self.chance.choice(self.names))


def do_mischief(simulation: Simulation, chance: random.Random, variant: Variant, for_s: float) -> Mischief:
    """All that may befall a LAN, for so long; then it is healed, and what was done is told."""
    mischief = Mischief(simulation, chance, variant)
    end = simulation.now + for_s
    while simulation.now < end:
        mischief.one()
        simulation.run(min(end - simulation.now, chance.choice((0.1, 0.5, 1.0, 2.5)) * (0.5 + chance.random())))
    mischief.end_all()
    return mischief


def play(world: World, variant: Variant = Variant.PLAIN, *, for_s: float = 10.0, wait_s: float = 5.0) -> Outcome:
    """Failures for a while, then heal, then a wait."""
    simulation = Simulation(world)
    chance = random.Random(world.seed * 7919 + world.nodes)
    simulation.boot_all(settle_s=BOOT_S)
    if any(len(names) != 1 for names in simulation.answering.values()):
        raise BrokenError(f"7: after the start {simulation.answering}")
    simulation.stretches.clear()
    mischief = do_mischief(simulation, chance, variant, for_s)
    healed_s = simulation.now
    simulation.run(wait_s)
    return _judge(simulation, healed_s, mischief.failures)


def _judge(simulation: Simulation, healed_s: float, failures: int) -> Outcome:
    stretches = simulation.open_stretches()
    two = [stretch for stretch in stretches if len(stretch.answering) > 1]
    none = [stretch for stretch in stretches if not stretch.answering]
    changes = [stretch.to_s for stretch in stretches] + [at_s for at_s, _key, _name in simulation.moves]
    return Outcome(
        simulation,
        healed_s,
        failures,
        settled_in_s=max([0.0, *(at_s - healed_s for at_s in changes)]),
        longest_two_s=max([0.0, *map(_length, two)]),
        longest_none_s=max([0.0, *map(_length, none)]),
    )


def _length(stretch: Stretch) -> float:
    return stretch.to_s - stretch.from_s


def world_of(seed: int, nodes: int, timing: Timing = DEFAULT, variant: Variant = Variant.PLAIN) -> World:
    """Every second seed has a node network of its own, every fourth no gateway."""
    isolated, wires = variant is Variant.ISOLATED, 2 if variant is Variant.WIRES else 1
    separate = isolated or seed % 2 == 1
    return World(seed, nodes, timing=timing, separate=separate, gateway=seed % 4 != 0, isolated=isolated, wires=wires)


def main() -> int:
    """Exit code 1 if an invariant is broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, help="only this one, with what was noted")
    parser.add_argument("--seeds", type=int, default=100, help="how many (100)")
    parser.add_argument("--from", dest="first", type=int, default=0, help="the first one (0)")
    parser.add_argument("--nodes", type=int, default=3, help="3, 5 or 9 (3)")
    parser.add_argument("--for", dest="for_s", type=float, default=10.0, help="seconds of failures (10)")
    parser.add_argument("--profile", choices=PROFILES, default="default", help="how fast the dead are found (default)")
    parser.add_argument("--crowd", type=int, default=DEFAULT.crowd, help="members that are many (10)")
    parser.add_argument("--variant", type=Variant, choices=list(Variant), default=Variant.PLAIN, help="of the failures")
    asked = parser.parse_args()
    timing, variant = replace(PROFILES[asked.profile], crowd=asked.crowd), asked.variant
    if asked.seed is not None:
        outcome = play(world_of(asked.seed, asked.nodes, timing, variant), variant, for_s=asked.for_s)
        print(*outcome.simulation.notes, sep="\n")  # noqa: T201  # a command's output
        print(*outcome.simulation.open_stretches(), sep="\n")  # noqa: T201  # a command's output
        print(f"healed at {outcome.healed_s:.3f}", outcome[2:])  # noqa: T201  # a command's output
        return 0
    seeds = range(asked.first, asked.first + asked.seeds)
    outcomes = {seed: play(world_of(seed, asked.nodes, timing, variant), variant) for seed in seeds}
    for gateway in (True, False):
        chosen = {seed: each for seed, each in outcomes.items() if each.simulation.world.gateway is gateway}
        print("with a gateway" if gateway else "without", len(chosen))  # noqa: T201  # a command's output
        for field in ("settled_in_s", "longest_two_s", "longest_none_s"):
            values = sorted((getattr(outcome, field), seed) for seed, outcome in chosen.items()) or [(0.0, -1)]
            shown = [values[int(share * (len(values) - 1))] for share in (0.5, 0.9, 0.99, 1.0)]
            print(" ", field, *(f"{value:.2f} (seed {seed})" for value, seed in shown))  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
