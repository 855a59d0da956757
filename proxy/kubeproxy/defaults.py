"""kube-proxy's values for what is empty in the file or the flags (1.36), but for the least time between two writes."""

import msgspec

from endpointslice.addresses import family_of, parse_ip
from endpointslice.types import Family
from proxy.kubeproxy.types import Conntrack, KubeProxyConfiguration

HEALTHZ_PORT = 10256
METRICS_PORT = 10249
_ZERO = {"", "0", "0s"}


def fill_defaults(config: KubeProxyConfiguration) -> KubeProxyConfiguration:
    """The configuration that takes effect; what was filled in stays when it is filled again."""
    replace = msgspec.structs.replace
    bind = config.bind_address or "0.0.0.0"
    ip = parse_ip(bind)
    six = ip is not None and family_of(ip) is Family.IPV6
    client = config.client_connection
    return replace(
        config,
        bind_address=bind,
        healthz_bind_address=config.healthz_bind_address or f"{'[::]' if six else '0.0.0.0'}:{HEALTHZ_PORT}",
        metrics_bind_address=config.metrics_bind_address or f"{'[::1]' if six else '127.0.0.1'}:{METRICS_PORT}",
        client_connection=replace(
            client,
            content_type=client.content_type or "application/vnd.kubernetes.protobuf",
            qps=client.qps or 5.0,
            burst=client.burst or 10,
        ),
        iptables=replace(
            config.iptables,
            sync_period=_fill(config.iptables.sync_period, "30s"),
            min_sync_period=_fill(config.iptables.min_sync_period, "20ms"),
        ),
        ipvs=replace(
            config.ipvs,
            sync_period=_fill(config.ipvs.sync_period, "30s"),
            min_sync_period=_fill(config.ipvs.min_sync_period, "20ms"),
        ),
        nftables=replace(
            config.nftables,
            sync_period=_fill(config.nftables.sync_period, "30s"),
            min_sync_period=_fill(config.nftables.min_sync_period, "20ms"),
        ),
        detect_local_mode=config.detect_local_mode or "ClusterCIDR",
        node_port_addresses=config.node_port_addresses or ("primary",),
        conntrack=_fill_conntrack(config.conntrack),
        config_sync_period=_fill(config.config_sync_period, "15m"),
    )


def _fill(text: str, default: str) -> str:
    return default if text in _ZERO else text


def _fill_conntrack(conntrack: Conntrack) -> Conntrack:
    """An empty duration is 0, leave alone: absent ones have their defaults already."""
    return msgspec.structs.replace(
        conntrack, udp_timeout=conntrack.udp_timeout or "0s", udp_stream_timeout=conntrack.udp_stream_timeout or "0s"
    )
