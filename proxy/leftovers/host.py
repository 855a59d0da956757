"""EFFECT. Takes what kube-proxy left out of this network namespace: nft tables, iptables chains, IPVS.

Each function yields what it did and what it could not do; a thing that isn't there is neither.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from endpointslice.types import Family
from proxy.kernel.attributes import pack_name
from proxy.kernel.batch import CREATE, Message, Type
from proxy.kernel.change import KernelError
from proxy.kernel.connection import Connection
from proxy.kernel.netlink import host_families
from proxy.kernel.ruleset import TABLE
from proxy.leftovers.iptables import parse_save, plan_removal
from proxy.leftovers.ipvs import DEVICE, find_node_ports, find_servers, find_sets

_THEIR_TABLE = "kube-proxy"
_TIMEOUT_S = 120.0  # iptables' lock, or tens of thousands of rules
_WAIT = ("--wait", "30")  # for iptables' lock, seconds
_IPVS = Path("/proc/thread-self/net/ip_vs")  # there once the kernel's module is loaded
_NFT_FAMILIES = {Family.IPV4: "ip", Family.IPV6: "ip6"}
_TOOLS = {Family.IPV4: "iptables", Family.IPV6: "ip6tables"}


class Done(NamedTuple):
    """One thing that was removed, or could not be."""

    good: bool
    text: str


class ToolError(Exception):
    """A program of the host failed; the text is its own words."""


def find_running() -> list[int]:
    """Process ids of kube-proxies in this network namespace, as far as /proc shows them."""
    here = Path("/proc/thread-self/ns/net").stat().st_ino
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            argv = (process / "cmdline").read_bytes().split(b"\0")
            there = (process / "ns/net").stat().st_ino
        except OSError:  # ended meanwhile, or another user's
            continue
        if there == here and is_kube_proxy(argv):
            found.append(int(process.name))
    return sorted(found)


def is_kube_proxy(argv: list[bytes]) -> bool:
    """Whether this command line is kube-proxy's, or that of a binary that has it among others."""
    return any(os.path.basename(word) == b"kube-proxy" for word in argv[:2])  # noqa: PTH119  # bytes


def our_table_is_here() -> bool:
    """Whether closeby's table stands for every family of this host."""
    connection = Connection()
    try:
        name = pack_name(1, TABLE)
        return all(connection.request(Message(Type.GETTABLE, family, name)) for family in host_families())
    finally:
        connection.close()


def remove_all() -> Iterator[Done]:
    """Everything that kube-proxy may have left, in the order that one thing holds the other."""
    yield from remove_tables()
    yield from remove_iptables()
    yield from remove_ipvs()


def remove_tables() -> Iterator[Done]:
    """The nft tables `ip kube-proxy` and `ip6 kube-proxy`, each in one transaction; KernelError without the right."""
    connection = Connection()
    try:
        for family in host_families():
            name = pack_name(1, _THEIR_TABLE)
            if connection.request(Message(Type.GETTABLE, family, name)) is None:
                continue
            # Added first, so that the delete doesn't fail if somebody was faster.
            removal = [Message(Type.NEWTABLE, family, name, CREATE), Message(Type.DELTABLE, family, name)]
            what = f"table {_NFT_FAMILIES[family]} {_THEIR_TABLE}"
            try:
                connection.transact(removal)
            except KernelError as error:
                yield Done(good=False, text=f"{what}: {error.reason}")
            else:
                yield Done(good=True, text=what)
    finally:
        connection.close()


def remove_iptables() -> Iterator[Done]:
    """kube-proxy's chains and the jumps to them, by each iptables that is installed (legacy, nft)."""
    for family in host_families():
        tool = _TOOLS[family]
        variants = [name for name in (f"{tool}-legacy", f"{tool}-nft") if shutil.which(f"{name}-save")]
        for variant in variants or [name for name in (tool,) if shutil.which(f"{name}-save")]:
            yield from _remove_chains(variant)


def _remove_chains(tool: str) -> Iterator[Done]:
    try:
        tables = parse_save(_run(f"{tool}-save"))
    except ToolError as error:
        yield Done(good=False, text=str(error))
        return
    for removal in filter(None, map(plan_removal, tables)):
        what = f"{tool}: {len(removal.chains)} chains and {removal.jumps} jumps to them in table {removal.table}"
        try:
            _run(f"{tool}-restore", "--noflush", *_WAIT, text=removal.text)
        except ToolError as error:
            yield Done(good=False, text=f"{what}: {error}")
            continue
        kept = f"; kept {', '.join(removal.kept)}, which rules of other programs use" if removal.kept else ""
        yield Done(good=True, text=what + kept)


def remove_ipvs() -> Iterator[Done]:
    """Virtual servers and sets where ipvsadm and ipset are installed, and the device kube-ipvs0."""
    with IPRoute() as routes:
        found = routes.link_lookup(ifname=DEVICE)
        addresses = frozenset(
            str(message.get_attr("IFA_ADDRESS")) for index in found for message in routes.get_addr(index=index)
        )
        try:
            if found and _IPVS.exists() and shutil.which("ipvsadm"):
                yield from _remove_servers(addresses)
            if shutil.which("ipset"):
                yield from _remove_sets()
        except ToolError as error:
            yield Done(good=False, text=str(error))
        for index in found:
            try:
                routes.link("del", index=index)
            except NetlinkError as error:
                yield Done(good=False, text=f"device {DEVICE}: {error}")
            else:
                yield Done(good=True, text=f"device {DEVICE} with {len(addresses)} addresses")


def _remove_servers(addresses: frozenset[str]) -> Iterator[Done]:
    node_ports = find_node_ports(_run("ipset", "save")) if shutil.which("ipset") else frozenset()
    servers = list(find_servers(_run("ipvsadm", "--save", "--numeric"), addresses, node_ports))
    for flag, server in servers:
        _run("ipvsadm", "--delete-service", flag, server)
    if servers:
        yield Done(good=True, text=f"{len(servers)} IPVS virtual servers")


def _remove_sets() -> Iterator[Done]:
    names = find_sets(_run("ipset", "list", "-name").splitlines())
    for name in names:
        _run("ipset", "destroy", name)
    if names:
        yield Done(good=True, text=f"{len(names)} ipsets")


def _run(*command: str, text: str = "") -> str:
    """What the program printed; ToolError with its complaint if it fails."""
    try:
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, check=True, timeout=_TIMEOUT_S, errors="replace"
        )
    except subprocess.CalledProcessError as error:
        raise ToolError(f"{command[0]}: {error.stderr.strip() or f'ended with {error.returncode}'}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolError(f"{command[0]}: {error}") from error
    return done.stdout
