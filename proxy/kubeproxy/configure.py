"""From KubeProxyConfiguration and closeby's own flags to what the daemon runs by. Pure."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from endpointslice.addresses import parse_ip
from endpointslice.daemonsets import Mode
from endpointslice.types import IP
from proxy.config import (
    BindAddress,
    Config,
    ConfigError,
    default_hostname,
    parse_bind_address,
    parse_cluster_cidrs,
    parse_duration,
    parse_node_port_addresses,
)
from proxy.conntrack.settings import ConntrackSettings
from proxy.interfaces import is_interface_name
from proxy.kubeproxy.defaults import HEALTHZ_PORT, METRICS_PORT, fill_defaults
from proxy.kubeproxy.fields import EXTERNAL_IPS_GATE, FIELDS
from proxy.kubeproxy.types import IPVS, Conntrack, IPTables, KubeProxyConfiguration, NFTables
from proxy.planner.settings import Detect, Settings

Naming = Callable[[str], str]  # how a field is called where it was written: by its flag, or by file and path

_LOG_FORMATS = {"": "auto", "json": "json", "text": "console"}
_UNSPECIFIED = {"0.0.0.0", "::"}
_MODES = ("", "iptables", "ipvs", "nftables")
_DETECT_MODES = tuple(Detect)
_MAX_BIT = 31
_MAX_OOM = 1000


class Own(NamedTuple):
    """closeby's own flags, and those that win over the file; "" is not given."""

    manifests: Path | None = None
    master: str = ""
    hostname_override: str = ""
    same_node: Mode = Mode.AUTO
    control_socket: Path = Path("/run/closeby/closeby.sock")
    announcer_socket: Path | None = None
    pool_namespace: str = "metallb-system"
    log_format: str = ""
    min_sync_period: str = ""
    sync_period: str = ""
    proc_sys: Path = Path("/proc/sys")
    turned_off: frozenset[str] = frozenset()  # fields of servers that a flag turned off, as no file can


def name_by_flag(path: str) -> str:
    """The field's flag, or its path where it has none."""
    return next((field.flag for field in FIELDS if field.path == path and field.flag), path)


def name_in_file(file: Path) -> Naming:
    """Names a field by the file and its path."""
    return lambda path: f"--config: {file}: {path}"


def build_config(config: KubeProxyConfiguration, own: Own, name: Naming) -> Config:
    """What the daemon runs by; ConfigError names the field or flag that is wrong."""
    config = fill_defaults(config)
    check_values(config, name)
    kubeconfig = Path(config.client_connection.kubeconfig) if config.client_connection.kubeconfig else None
    section, where = choose_section(config)
    return Config(
        settings=_build_settings(config, own, name),
        manifests=own.manifests,
        kubeconfig=kubeconfig if own.manifests is None else None,
        master=own.master,
        healthz=_read_server(config.healthz_bind_address, "healthzBindAddress", own, name),
        metrics=_read_server(config.metrics_bind_address, "metricsBindAddress", own, name),
        bind_address_hard_fail=config.bind_address_hard_fail,
        min_sync_period_s=_choose_period(
            "--min-sync-period", own, section.min_sync_period, name(f"{where}.minSyncPeriod")
        ),
        sync_period_s=_choose_period("--sync-period", own, section.sync_period, name(f"{where}.syncPeriod")),
        control_socket=own.control_socket,
        announcer_socket=own.announcer_socket,
        pool_namespace=own.pool_namespace,
        proc_sys=own.proc_sys,
        verbosity=config.logging.verbosity,
        log_format=own.log_format or _LOG_FORMATS[config.logging.format],
        conntrack=_build_conntrack(config.conntrack, name),
        oom_score_adj=config.oom_score_adj,
    )


def choose_section(config: KubeProxyConfiguration) -> tuple[IPTables | IPVS | NFTables, str]:
    """The section whose periods count in the file's mode, and its name."""
    if config.mode == "nftables":
        return config.nftables, "nftables"
    return (config.ipvs, "ipvs") if config.mode == "ipvs" else (config.iptables, "iptables")


def _build_settings(config: KubeProxyConfiguration, own: Own, name: Naming) -> Settings:
    bind = parse_ip(config.bind_address)
    modes = config.nftables if config.mode == "nftables" else config.iptables  # ipvs mode reads that of iptables too
    return Settings(
        node=default_hostname(own.hostname_override or config.hostname_override),
        cluster_cidrs=parse_cluster_cidrs(name("clusterCIDR"), config.cluster_cidr),
        node_port_addresses=parse_node_port_addresses(name("nodePortAddresses"), ",".join(config.node_port_addresses)),
        same_node=own.same_node,
        masquerade_all=modes.masquerade_all,
        detect=Detect(config.detect_local_mode),
        interface=_read_interface(config, name),
        own_addresses=() if bind is None or bind in _UNSPECIFIED else (IP(bind),),
        external_ips=config.feature_gates.get(EXTERNAL_IPS_GATE, True),
    )


def _read_interface(config: KubeProxyConfiguration, name: Naming) -> str:
    """The interface's name, or the beginning of it, in the modes that go by it; else ""."""
    match config.detect_local_mode:
        case Detect.BRIDGE_INTERFACE:
            path, text = "detectLocal.bridgeInterface", config.detect_local.bridge_interface
        case Detect.INTERFACE_NAME_PREFIX:
            path, text = "detectLocal.interfaceNamePrefix", config.detect_local.interface_name_prefix
        case _:
            return ""
    if not is_interface_name(text):
        raise ConfigError(f'{name(path)}: "{text}" is no interface name, which {config.detect_local_mode} needs')
    return text


def _read_server(text: str, path: str, own: Own, name: Naming) -> BindAddress | None:
    if path in own.turned_off:
        return None
    port = HEALTHZ_PORT if path == "healthzBindAddress" else METRICS_PORT
    return parse_bind_address(name(path), text, port)


def _choose_period(flag: str, own: Own, text: str, name: str) -> float:
    given = own.min_sync_period if flag == "--min-sync-period" else own.sync_period
    return parse_duration(flag, given) if given else parse_duration(name, text)


def _build_conntrack(conntrack: Conntrack, name: Naming) -> ConntrackSettings:
    def seconds(text: str, field: str) -> float:
        return parse_duration(name(f"conntrack.{field}"), text)

    return ConntrackSettings(
        max_per_core=conntrack.max_per_core,
        min=conntrack.min,
        tcp_established_timeout_s=seconds(conntrack.tcp_established_timeout, "tcpEstablishedTimeout"),
        tcp_close_wait_timeout_s=seconds(conntrack.tcp_close_wait_timeout, "tcpCloseWaitTimeout"),
        udp_timeout_s=seconds(conntrack.udp_timeout, "udpTimeout"),
        udp_stream_timeout_s=seconds(conntrack.udp_stream_timeout, "udpStreamTimeout"),
        tcp_be_liberal=conntrack.tcp_be_liberal,
    )


def check_values(config: KubeProxyConfiguration, name: Naming) -> None:
    """ConfigError for a value that its type allows and its meaning doesn't, as kube-proxy's own validation has it."""
    if parse_ip(config.bind_address) is None:
        raise ConfigError(f'{name("bindAddress")}: "{config.bind_address}" is not an IP address')
    for path, text, allowed in (
        ("mode", config.mode, _MODES),
        ("detectLocalMode", config.detect_local_mode, _DETECT_MODES),
        ("logging.format", config.logging.format, tuple(_LOG_FORMATS)),
    ):
        if text not in allowed:
            raise ConfigError(f'{name(path)}: "{text}" is none of {", ".join(filter(None, allowed))}')
    for path, number, least, most in (
        ("iptables.masqueradeBit", config.iptables.masquerade_bit, 0, _MAX_BIT),
        ("nftables.masqueradeBit", config.nftables.masquerade_bit, 0, _MAX_BIT),
        ("oomScoreAdj", config.oom_score_adj, -_MAX_OOM, _MAX_OOM),
        ("clientConnection.burst", config.client_connection.burst, 0, None),
        ("logging.verbosity", config.logging.verbosity, 0, None),
        ("conntrack.maxPerCore", config.conntrack.max_per_core, 0, None),
        ("conntrack.min", config.conntrack.min, 0, None),
    ):
        if number < least or (most is not None and number > most):
            raise ConfigError(f"{name(path)}: {number} is not from {least} {'up' if most is None else f'to {most}'}")
    _check_periods(config, name)


def _check_periods(config: KubeProxyConfiguration, name: Naming) -> None:
    for where, section in (("iptables", config.iptables), ("ipvs", config.ipvs), ("nftables", config.nftables)):
        least = parse_duration(name(f"{where}.minSyncPeriod"), section.min_sync_period)
        longest = parse_duration(name(f"{where}.syncPeriod"), section.sync_period)
        if longest <= 0 or least > longest:
            path = name(f"{where}.syncPeriod")
            raise ConfigError(f"{path}: {section.sync_period} must be more than 0, and not less than minSyncPeriod")
    ipvs = config.ipvs
    for path, text in (
        ("configSyncPeriod", config.config_sync_period),
        ("ipvs.tcpTimeout", ipvs.tcp_timeout or "0"),
        ("ipvs.tcpFinTimeout", ipvs.tcp_fin_timeout or "0"),
        ("ipvs.udpTimeout", ipvs.udp_timeout or "0"),
    ):
        parse_duration(name(path), text)
