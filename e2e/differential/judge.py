"""EFFECT: the same probes on both sides, and where their fates differ."""

from collections.abc import Sequence
from typing import NamedTuple

from e2e.differential.clients import Fates, Patience
from e2e.differential.expect import reached
from e2e.differential.rig import Rig
from e2e.differential.targets import Probe, Target

_QUICK = Patience(0.25, 2)
_SURE = Patience(5.0, 120)  # one endpoint of five is missed by all of 120 tries with a probability of 2e-12


class Disagreement(NamedTuple):
    """A probe whose fates differ."""

    probe: Probe
    closeby: Fates
    peer: Fates


def ask(rig: Rig, probes: Sequence[Probe], patience: Patience) -> tuple[list[Fates], list[Fates]]:
    """The fates of the probes on closeby's and on kube-proxy's side. All clients of both work at once."""
    orders: dict[str, list[Target]] = {}
    places = []
    for probe in probes:
        mine = orders.setdefault(probe.client, [])
        places.append((probe.client, len(mine)))
        mine.append(probe.target)
    for side in rig.sides:
        side.clients.send(orders, patience)
    closeby, peer = (side.clients.receive(orders) for side in rig.sides)
    return [closeby[client][index] for client, index in places], [peer[client][index] for client, index in places]


def find_disagreements(rig: Rig, probes: Sequence[Probe]) -> list[Disagreement]:
    """Those that differ when asked quickly; on a busy machine an answer may just be late."""
    return _compare(rig, probes, _QUICK)


def confirm(rig: Rig, probes: Sequence[Probe]) -> list[Disagreement]:
    """Those that differ when asked with seconds of time, and as many tries as it takes."""
    return _compare(rig, probes, _SURE) if probes else []


def _compare(rig: Rig, probes: Sequence[Probe], patience: Patience) -> list[Disagreement]:
    closeby, peer = ask(rig, probes, patience)
    bound = [_list_bound(probes, side) for side in (closeby, peer)]
    return [
        Disagreement(probe, mine, other)
        for probe, mine, other in zip(probes, closeby, peer, strict=True)
        if comparable(probe, mine) != comparable(probe, other)
        or len(bound[0][probe.binding]) != len(bound[1][probe.binding])
        or not keeps_own_rule(probe, mine)
    ]


def keeps_own_rule(probe: Probe, closeby: Fates) -> bool:
    """Whether closeby reached what it must by a rule of its own, if there is one for the probe."""
    if probe.must is None:
        return True
    answered = reached(closeby)
    return (
        answered <= probe.must and bool(answered) == bool(probe.must) if probe.target.sticky else answered == probe.must
    )


def _list_bound(probes: Sequence[Probe], fates: Sequence[Fates]) -> dict[str, frozenset[str]]:
    """The endpoints that the probes of one binding met together: it holds for all frontends of a Service port."""
    found: dict[str, frozenset[str]] = {"": frozenset()}
    for probe, met in zip(probes, fates, strict=True):
        if probe.binding:
            found[probe.binding] = found.get(probe.binding, frozenset()) | reached(met)
    return found


def comparable(probe: Probe, fates: Fates) -> Fates:
    """What must be equal: all fates, or, where chance binds a client to an endpoint, how many there are and failures.

    A failure is one word. Which source an endpoint sees depends on where it is, so that is chance, too. And where a
    policy gives two frontends two lists of endpoints, the one may bind the client anew while the other is probed.
    """
    if not probe.target.sticky:
        return fates
    answers = {fate for fate in fates if " " in fate}
    count = len(answers) if probe.target.one_list else min(len(answers), 1)
    return frozenset({*(fates - answers), f"{count} endpoints"})
