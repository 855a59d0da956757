"""What hosts' kernels remember of addresses: a client's or a router's neighbour entries, and a bridge's MACs."""

import json
import socket
import subprocess
from contextlib import suppress
from typing import Any, NamedTuple

from e2e.world.hosts import Host
from e2e.world.netns import command_in, run_in, run_ip
from endpointslice.types import IP

DISCARD = 9


class Entry(NamedTuple):
    """A neighbour entry; "" and "" where there is none."""

    mac: str = ""
    state: str = ""


def read_entry(host: Host, ip: IP) -> Entry:
    """What the host's kernel believes on its eth0."""
    found = _read_json(host.netns, "neigh", "show", ip, "dev", "eth0")
    return Entry(found[0].get("lladdr", ""), " ".join(found[0]["state"])) if found else Entry()


def write_entry(host: Host, ip: IP, mac: str, state: str) -> None:
    """Let it believe that; in state `probe` it asks that MAC at once whether it is right."""
    run_ip({host.netns: [f"neigh replace {ip} lladdr {mac} nud {state} dev eth0"]})


def send_datagram(host: Host, ip: IP) -> None:
    """One that nobody answers: the kernel finds out where to send it."""

    def send() -> None:
        family = socket.AF_INET6 if ":" in ip else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as sock, suppress(OSError):
            sock.sendto(b"hello", (ip, DISCARD))

    run_in(host.netns, send)


def read_learned(bridge: Host) -> dict[str, set[str]]:
    """Which MACs a bridge has seen as senders at each of its ports."""
    text = subprocess.run(
        command_in(bridge.netns, ["bridge", "-j", "fdb", "show", "br", "br0"]),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    learned: dict[str, set[str]] = {}
    for row in json.loads(text):
        if row.get("state") != "permanent":
            learned.setdefault(row["ifname"], set()).add(row["mac"])
    return learned


def read_groups(host: Host, device: str = "eth0") -> set[str]:
    """The IPv6 groups that the device takes in."""
    found = _read_json(host.netns, "-6", "maddr", "show", "dev", device)
    return {entry["address"] for part in found for entry in part["maddr"] if "address" in entry}


def _read_json(netns: str, *argv: str) -> Any:  # noqa: ANN401  # whatever iproute2 says
    text = subprocess.run(command_in(netns, ["ip", "-j", *argv]), capture_output=True, text=True, check=True).stdout
    return json.loads(text or "[]")
