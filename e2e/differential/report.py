"""A difference as a folder that a person, or `closeby plan --manifests`, can read."""

from pathlib import Path

import msgspec
import yaml

from e2e.differential.clients import Fates
from e2e.differential.judge import Disagreement
from e2e.differential.model import World
from e2e.differential.objects import render_node, render_state


class Difference(msgspec.Struct, frozen=True):
    """One that nothing explains, in the smallest world that still shows it in its last state."""

    world: World
    found: Disagreement


def write_difference(folder: Path, difference: Difference) -> Path:
    """The folder `seed-N` in it: a folder of manifests for each state, and both answers."""
    made = folder / f"seed-{difference.world.seed}"
    for number, state in enumerate(difference.world.states):
        there = made / f"state-{number}"
        there.mkdir(parents=True, exist_ok=True)
        documents = [render_node(state.zone), *render_state(state)]
        (there / "objects.yaml").write_text(yaml.safe_dump_all(documents, sort_keys=False))
    (made / "answers.txt").write_text(describe(difference))
    return made


def describe(difference: Difference) -> str:
    """The probe and both answers."""
    found = difference.found
    return (
        f"seed {difference.world.seed}, after {len(difference.world.states)} states: {found.probe}\n"
        f"  closeby:    {_words(found.closeby)}\n"
        f"  kube-proxy: {_words(found.peer)}\n"
    )


def _words(fates: Fates) -> str:
    """Answers are endpoint, its port and the source that it saw."""
    return "; ".join(sorted(fates))
