"""The daemon's configuration, parsed and checked at once: flags named as kube-proxy's where it has them."""

import re
import socket
from pathlib import Path
from typing import NamedTuple

import msgspec

from endpointslice.addresses import family_of, parse_cidr, parse_ip
from endpointslice.types import CIDR, IP, NodeName
from proxy.conntrack.settings import ConntrackSettings
from proxy.planner.settings import PRIMARY, Settings

_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")
_UNIT_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_MAX_PORT = 65535


class ConfigError(Exception):
    """A flag or file that can't be used: the process ends with exit code 2, naming it."""


class BindAddress(NamedTuple):
    """Where a server listens; an empty host is every address of both families."""

    host: str
    port: int  # 0: a free one


class Config(msgspec.Struct, frozen=True):
    """All that `closeby run` is told."""

    settings: Settings
    manifests: Path | None = None
    kubeconfig: Path | None = None  # None with `manifests` None: in-cluster
    master: str = ""
    healthz: BindAddress | None = BindAddress("", 10256)  # None: no server
    metrics: BindAddress | None = BindAddress("127.0.0.1", 10249)
    bind_address_hard_fail: bool = False  # True: end if a server's address can't be had; else try again
    min_sync_period_s: float = 0.02
    sync_period_s: float = 30.0
    control_socket: Path = Path("/run/closeby/closeby.sock")
    announcer_socket: Path | None = None  # None: no announcer is told what is served
    pool_namespace: str = "metallb-system"  # where pools and advertisements are
    verbosity: int = 0
    log_format: str = "auto"
    conntrack: ConntrackSettings = ConntrackSettings()
    proc_sys: Path = Path("/proc/sys")  # where those are written
    oom_score_adj: int = -999  # kube-proxy's


def parse_duration(flag: str, text: str) -> float:
    """Seconds of a Go duration ("1s", "20ms", "1m30s"); a bare 0 is 0. ConfigError names the flag."""
    if text == "0":
        return 0.0
    parts = _DURATION_PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ConfigError(f'{flag}: "{text}" is not a duration; write it as 20ms, 1s or 1m30s')
    return sum(float(number) * _UNIT_S[unit] for number, unit in parts)


def parse_bind_address(flag: str, text: str, default_port: int) -> BindAddress | None:
    """Host and port of `IP`, `IP:port`, `[IPv6]:port` or `:port`; None for an empty text: no server."""
    if text == "":
        return None
    if (ip := parse_ip(text.strip("[]"))) is not None:
        return BindAddress(_every_address(ip), default_port)
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    ip = parse_ip(host) if host else None
    if not colon or (host and ip is None) or not port.isdecimal() or int(port) > _MAX_PORT:
        raise ConfigError(
            f'{flag}: "{text}" is not an address; write it as 0.0.0.0:{default_port} or [::1]:{default_port}'
        )
    return BindAddress(_every_address(ip) if ip else "", int(port))


def _every_address(ip: IP) -> str:
    # kube-proxy's default 0.0.0.0 listens on both families, as Go's net package does.
    return "" if ip in {"0.0.0.0", "::"} else ip


def parse_cluster_cidrs(flag: str, text: str) -> tuple[CIDR, ...]:
    """One network, or one of each family, separated by a comma; () for an empty text."""
    cidrs = tuple(_parse_network(flag, part) for part in text.split(",") if part.strip())
    families = [family_of(IP(cidr)) for cidr in cidrs]
    if len(set(families)) != len(families):
        raise ConfigError(f'{flag}: "{text}" has two networks of one family; give one, or one IPv4 and one IPv6')
    return cidrs


def parse_node_port_addresses(flag: str, text: str) -> tuple[str, ...]:
    """`primary`, or networks separated by commas; an empty text is `primary`, kube-proxy's default in nftables mode.

    `all` (kube-proxy 1.37) is every address of both families.
    """
    parts = tuple(part.strip() for part in text.split(",") if part.strip()) or (PRIMARY,)
    if PRIMARY in parts and len(parts) > 1:
        raise ConfigError(f'{flag}: "{text}" mixes "{PRIMARY}" with networks; give one or the other')
    if parts == (PRIMARY,):
        return parts
    if "localhost" in parts:
        raise ConfigError(f'{flag}: NodePorts don\'t answer on localhost; leave "localhost" out')
    everywhere = ("0.0.0.0/0", "::/0")
    networks = (word for part in parts for word in (everywhere if part == "all" else (part,)))
    return tuple(dict.fromkeys(_parse_network(flag, word) for word in networks))


def _parse_network(flag: str, text: str) -> CIDR:
    cidr = parse_cidr(text.strip())
    if cidr is None:
        raise ConfigError(f'{flag}: "{text.strip()}" is not a network; write it as 10.244.0.0/16 or fd00:10:244::/56')
    return cidr


def default_hostname(override: str) -> NodeName:
    """The node's name: the override as given, or the host's own name in lower case, as kube-proxy has it."""
    return NodeName((override or socket.gethostname()).strip().lower())


def check_sources(manifests: Path | None, kubeconfig: Path | None, *, name: str = "--kubeconfig") -> None:
    """ConfigError if two sources are named, or one that can't be read; `name` is where the kubeconfig was named."""
    if manifests is not None and kubeconfig is not None:
        raise ConfigError("--manifests and --kubeconfig: give one source, not both")
    try:
        if manifests is not None and not manifests.is_dir():
            raise ConfigError(f"--manifests: {manifests} is not a directory")
        if kubeconfig is not None and not kubeconfig.is_file():
            raise ConfigError(f"{name}: {kubeconfig} does not exist or is not a file")
    except PermissionError as error:  # of a folder above it
        flag = "--manifests" if manifests is not None else name
        raise ConfigError(f"{flag}: {error.filename}: {error.strerror}") from error
