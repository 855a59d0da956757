"""Random failures where several nodes share addresses: who answered which client meanwhile, and does it settle.

python -m tests.l2.shared_fuzz --seed 17 --nodes 5    # one run again, with all that was noted
python -m tests.l2.shared_fuzz --seeds 1000 --calm    # many, one failure at a time on a healthy wire
"""

import argparse
import random
import sys
from collections.abc import Callable
from typing import NamedTuple

from endpointslice.types import IP
from proxy.l2.events import DrainAsked, DrainEnded
from proxy.l2.spreading import JOIN_S
from proxy.l2.types import Key
from tests.l2.clients import SharedWorld
from tests.l2.fuzz import Variant, do_mischief, world_of

CLIENTS = tuple(IP(f"192.0.2.{last}") for last in range(10, 22))
BOOT_S = 9.0
RECOVERY_S = 2 * JOIN_S + 4.0  # listening, joining, and clients being told twice
FAILURES = 2  # of a calm run


class SharedOutcome(NamedTuple):
    """What one run showed."""

    simulation: SharedWorld
    settled_in_s: float  # after the last failure ended
    longest_two_s: float  # for any client
    longest_none_s: float
    astray: tuple[tuple[Key, IP], ...]  # clients that another node answers than should, or none, at the end


class Calm:
    """One failure at a time, on a wire where nothing is lost."""

    def __init__(self, simulation: SharedWorld, chance: random.Random) -> None:
        self.simulation = simulation
        self.chance = chance

    def one(self) -> str:
        """It happens and ends; what it was."""
        kinds: list[Callable[[str], None]] = [self._restart, self._drain, self._surge, self._lose_api]
        kind, name = self.chance.choice(kinds), self.chance.choice(list(self.simulation.nodes))
        kind(name)
        return f"{kind.__name__} {name}"

    def _wait(self) -> None:
        self.simulation.run(self.chance.choice((0.1, 0.4, 1.5, 4.0, 8.0)) * (0.5 + self.chance.random()))

    def _restart(self, name: str) -> None:
        self.simulation.kill(name, forgets=self.chance.random() < 1 / 2)
        self._wait()
        self.simulation.boot(name)

    def _drain(self, name: str) -> None:
        self.simulation.tell(name, DrainAsked())
        self._wait()
        self.simulation.tell(name, DrainEnded())

    def _surge(self, name: str) -> None:
        self.simulation.surge(name)

    def _lose_api(self, _name: str) -> None:
        """Of all nodes, and some have it back before others."""
        names = list(self.simulation.nodes)
        self.simulation.without_api.update(names)
        self.simulation.run(self.chance.choice((10.0, 70.0)))
        for name in self.chance.sample(names, len(names)):
            self.simulation.without_api.discard(name)
            self.simulation.run(self.chance.random())


def start_shared(seed: int, nodes: int) -> SharedWorld:
    """Every client has asked for every address."""
    simulation = SharedWorld(world_of(seed, nodes)._replace(vips=2), CLIENTS, watches=True)
    simulation.boot_all(settle_s=BOOT_S)
    simulation.ask_all()
    simulation.seen.stretches.clear()
    return simulation


def play_wild(seed: int, nodes: int, *, for_s: float = 10.0) -> SharedOutcome:
    """All that may befall a LAN, for a while, then heal, then a wait."""
    simulation = start_shared(seed, nodes)
    chance = random.Random(seed * 7919 + nodes)
    do_mischief(simulation, chance, Variant.PLAIN, for_s)
    healed_s = simulation.now
    simulation.run(RECOVERY_S)
    return _judge(simulation, healed_s)


def play_calm(seed: int, nodes: int) -> SharedOutcome:
    """A few failures, each of which is over before the next."""
    simulation = start_shared(seed, nodes)
    calm = Calm(simulation, random.Random(seed * 7919 + nodes))
    healed_s = simulation.now
    astray: tuple[tuple[Key, IP], ...] = ()
    for _ in range(FAILURES):
        calm.one()
        healed_s = simulation.now
        simulation.run(RECOVERY_S)
        # Nobody asked: what a client believes now, it was told.
        believed = simulation.entries.items()
        astray += tuple(place for place, name in believed if name != simulation.meant_for(*place))
    outcome = _judge(simulation, healed_s)
    return outcome._replace(astray=astray + outcome.astray)


def _judge(simulation: SharedWorld, healed_s: float) -> SharedOutcome:
    seen = simulation.seen
    answering = {(key.vip, str(key.wire)): names for key, names in seen.answering.items()}
    places = [(key, client) for key in simulation.keys for client in CLIENTS]
    changes = [stretch.to_s for stretch in seen.open_stretches()] + [at_s for at_s, _key, _name in seen.moves]
    return SharedOutcome(
        simulation,
        settled_in_s=max([0.0, *(at_s - healed_s for at_s in changes)]),
        longest_two_s=seen.longest_s(2, 0.0),
        longest_none_s=seen.longest_s(0, 0.0),
        astray=tuple(
            (key, client)
            for key, client in places
            if answering[key.vip, str(client)] != (simulation.meant_for(key, client),)
        ),
    )


def main() -> int:
    """Exit code 1 if a client ends up with another node, with two, or with none."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, help="only this one, with what was noted")
    parser.add_argument("--seeds", type=int, default=100, help="how many (100)")
    parser.add_argument("--nodes", type=int, default=3, help="3 or 5 (3)")
    parser.add_argument("--calm", action="store_true", help="one failure at a time, on a healthy wire")
    asked = parser.parse_args()
    play = play_calm if asked.calm else play_wild
    seeds = range(asked.seeds) if asked.seed is None else [asked.seed]
    outcomes = {seed: play(seed, asked.nodes) for seed in seeds}
    for field in ("settled_in_s", "longest_two_s", "longest_none_s"):
        values = sorted((getattr(outcome, field), seed) for seed, outcome in outcomes.items())
        shown = [values[int(share * (len(values) - 1))] for share in (0.5, 0.9, 1.0)]
        print(field, *(f"{value:.2f} (seed {seed})" for value, seed in shown))  # noqa: T201  # a command's output
    if asked.seed is not None:
        print(*outcomes[asked.seed].simulation.notes, sep="\n")  # noqa: T201  # a command's output
        print(*outcomes[asked.seed].simulation.seen.open_stretches(), sep="\n")  # noqa: T201  # a command's output
    lost = {seed: outcome.astray for seed, outcome in outcomes.items() if outcome.astray}
    print("seeds with clients astray:", lost or "none")  # noqa: T201  # a command's output
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
