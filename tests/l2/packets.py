"""What becomes of a packet on the simulated LAN: questions and answers, announcements, and the gateway's word."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from proxy.l2.events import ArpKind, ArpSeen, EchoReply
from proxy.l2.evidence import NoAnswer, choose_answer
from tests.l2.lan import GATEWAY, Frames

if TYPE_CHECKING:
    from proxy.l2.actions import Announce, Echo, Look, Probe
    from tests.l2.node import Node
    from tests.l2.simulation import Simulation


def answers(node: Node, now: float, request: ArpSeen) -> bool:
    """Whether the node would answer now."""
    if node.state is None or node.paused:
        return False
    return choose_answer(node.state, now - node.lag_s, request) is NoAnswer.ANSWERED


def look(simulation: Simulation, node: Node, asked: Look) -> None:
    """A question to one MAC."""
    vip, wire = asked.key
    target = simulation.nodes[asked.mac.removeprefix("mac-")]
    _question(simulation, node, target, ArpSeen(wire, ArpKind.REQUEST, vip, f"mac-{node.name}", broadcast=False))


def probe(simulation: Simulation, node: Node, asked: Probe) -> None:
    """A question to everybody."""
    vip, wire = asked.key
    for target in simulation.nodes.values():
        if target is not node:
            _question(simulation, node, target, ArpSeen(wire, ArpKind.REQUEST, vip, f"mac-{node.name}"))


def _question(simulation: Simulation, node: Node, target: Node, request: ArpSeen) -> None:
    lan, wire = simulation.lan, request.wire
    there = lan.passes(node.name, target.name, wire, Frames.ARP)
    back = lan.passes(target.name, node.name, wire, Frames.ARP)
    if there and back and answers(target, simulation.now, request):
        reply = ArpSeen(wire, ArpKind.REPLY, request.vip, f"mac-{target.name}", broadcast=False)
        simulation.after(2 * lan.delay_s(), partial(simulation.deliver, node, reply))


def announce(simulation: Simulation, node: Node, told: Announce) -> None:
    """The gateway believes it, and the others see it."""
    lan, (vip, wire) = simulation.lan, told.key
    simulation.announced.append((simulation.now, node.name, told.key))
    if lan.passes(node.name, GATEWAY, wire, Frames.ARP):
        simulation.after(lan.delay_s(), partial(simulation.believed.__setitem__, vip, node.name))
    event = ArpSeen(wire, ArpKind.GRATUITOUS, vip, f"mac-{node.name}")
    for other in simulation.nodes.values():
        if other is not node and lan.passes(node.name, other.name, wire, Frames.ARP):
            simulation.after(lan.delay_s(), partial(simulation.deliver, other, event))


def echo(simulation: Simulation, node: Node, asked: Echo) -> None:
    """The gateway answers to whom it believes in; who asks first is believed."""
    lan, believed = simulation.lan, simulation.believed
    if not lan.passes(node.name, GATEWAY, asked.wire, Frames.ARP):
        return
    if asked.vip is not None:
        believed.setdefault(asked.vip, node.name)
        if believed[asked.vip] != node.name:
            return
    if lan.passes(GATEWAY, node.name, asked.wire, Frames.ARP):
        simulation.after(2 * lan.delay_s(), partial(simulation.deliver, node, EchoReply(asked.wire, asked.vip)))
