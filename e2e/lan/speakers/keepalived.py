"""EFFECT: keepalived (VRRPv3) as a Speaker; its configuration's text is pure."""

import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from e2e.lan.members import VIPS, Family, Member
from e2e.lan.speakers.daemons import Daemons
from e2e.world.netns import command_in, run_ip

_PROTOCOL = 112  # VRRP, RFC 5798
_ROUTER_ID = 51
_LEFT = tuple(f"{vip}/{128 if ':' in vip else 32}" for vip in VIPS.values())  # by a killed one, as `ip` shows them


class Keepalived:
    """One instance a family, sticky (nopreempt) as closeby is: a node that returns takes nothing back.

    `advert_s` is how often the owner speaks; the others take over after three of these and a little, by priority.
    """

    heartbeats: Sequence[str] = (f"ip protocol {_PROTOCOL}", f"ip6 nexthdr {_PROTOCOL}")

    def __init__(self, folder: Path, advert_s: float) -> None:
        self.name = f"keepalived {advert_s:g} s"
        self._folder = folder
        self._advert_s = advert_s
        self._daemons = Daemons(folder, self._command)
        self._touched: set[Member] = set()

    def missing(self) -> str | None:
        """The package."""
        return None if shutil.which("keepalived") else "keepalived isn't installed (Debian's package has it)"

    def start(self, node: Member) -> None:
        """Run, unless it does; what a killed one left on the interface is its own business."""
        if self._daemons.runs(node):
            return
        for path in self._folder.glob(f"{node.name}.*pid"):  # of a killed one: the new one would take it for running
            path.unlink()
        (self._folder / f"{node.name}.conf").write_text(render_configuration(node, self._advert_s))
        self._touched.add(node)
        self._daemons.start(node)

    def end(self, node: Member) -> None:
        """It says that it goes (priority 0) and takes the VIPs off."""
        self._daemons.end(node)

    def restart(self, node: Member) -> None:
        """It has no readiness to wait for."""
        self.end(node)
        self.start(node)

    def drain(self, node: Member) -> None:
        """Its only planned way to give all away is to end."""
        self._daemons.end(node)

    def kill(self, node: Member) -> None:
        """The VIPs stay on the interface."""
        self._daemons.kill(node)

    def stop(self, node: Member) -> None:
        """The kernel answers on."""
        self._daemons.send(node, signal.SIGSTOP)

    def cont(self, node: Member) -> None:
        """Go on."""
        self._daemons.send(node, signal.SIGCONT)

    def lose_api(self) -> None:
        """It asks none."""

    def close(self) -> None:
        """None runs, and no interface has the VIPs."""
        self._daemons.close()
        for node in self._touched:
            _remove_vips(node)
        self._touched.clear()

    def _command(self, node: Member) -> list[str]:
        files = {"--use-file": "conf", "--pid": "pid", "--vrrp_pid": "vrrp.pid"}
        paths = [f"{flag}={self._folder / node.name}.{ending}" for flag, ending in files.items()]
        return ["keepalived", "--dont-fork", "--vrrp", "--log-console", "--no-syslog", "--dont-respawn", *paths]


def read_version() -> str:
    """Program and version; that it is missing, where it is."""
    if shutil.which("keepalived") is None:
        return "no keepalived"
    said = subprocess.run(["keepalived", "--version"], check=True, capture_output=True, text=True)
    return " ".join((said.stderr or said.stdout).split()[:2])


def render_configuration(node: Member, advert_s: float) -> str:
    """keepalived.conf. Lower numbers have the higher priority; an interface may appear late (dynamic_interfaces)."""
    instances = "".join(_render_instance(node, family, advert_s) for family in Family)
    return f"""global_defs {{
    router_id {node.name}
    vrrp_version 3
    dynamic_interfaces
}}
{instances}"""


def _render_instance(node: Member, family: Family, advert_s: float) -> str:
    length = 32 if family is Family.IPV4 else 128
    return f"""vrrp_instance {family} {{
    state BACKUP
    nopreempt
    interface eth0
    virtual_router_id {_ROUTER_ID}
    priority {200 - node.number}
    advert_int {advert_s:g}
    virtual_ipaddress {{
        {VIPS[family]}/{length} dev eth0
    }}
}}
"""


def _remove_vips(node: Member) -> None:
    """Those that are there."""
    command = command_in(node.netns, ["ip", "-brief", "address", "show"])
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    run_ip({node.netns: [f"address delete {vip} dev eth0" for vip in _LEFT if vip in shown]})
