"""KubeProxyConfiguration, kubeproxy.config.k8s.io/v1alpha1, with every field that kube-proxy 1.36 reads.

Durations are Go's text ("30s", "1h30m"). The defaults are those of an absent field; `defaults.py` has kube-proxy's for
what is empty. Constants and shapes only.
"""

import msgspec

API_VERSION = "kubeproxy.config.k8s.io/v1alpha1"
KIND = "KubeProxyConfiguration"


class Section(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A mapping of the file."""


class ClientConnection(Section, frozen=True):
    """How to reach the API server."""

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = ""
    qps: float = 0.0
    burst: int = 0


class TextLog(Section, frozen=True):
    """Options of the text format."""

    split_stream: bool = False
    info_buffer_size: str | int = "0"


class JsonLog(Section, frozen=True):
    """Options of the JSON format."""

    split_stream: bool = False
    info_buffer_size: str | int = "0"


class LogOptions(Section, frozen=True):
    """Options by format."""

    text: TextLog = TextLog()
    json: JsonLog = JsonLog()


class ModuleVerbosity(Section, frozen=True):
    """A verbosity for some source files."""

    file_pattern: str = ""
    verbosity: int = 0


class Logging(Section, frozen=True):
    """How log lines look, and how many there are."""

    format: str = ""
    flush_frequency: str | int = 0
    verbosity: int = 0
    vmodule: tuple[ModuleVerbosity, ...] = ()
    options: LogOptions = LogOptions()


class IPTables(Section, frozen=True):
    """Settings of kube-proxy's iptables mode; the default one, so they count where `mode` is empty."""

    masquerade_bit: int = 14
    masquerade_all: bool = False
    localhost_node_ports: bool = True
    sync_period: str = ""
    min_sync_period: str = ""


class IPVS(Section, frozen=True):
    """Settings of kube-proxy's ipvs mode."""

    sync_period: str = ""
    min_sync_period: str = ""
    scheduler: str = ""
    exclude_cidrs: tuple[str, ...] = msgspec.field(name="excludeCIDRs", default=())
    strict_arp: bool = msgspec.field(name="strictARP", default=False)
    tcp_timeout: str = ""
    tcp_fin_timeout: str = ""
    udp_timeout: str = ""


class NFTables(Section, frozen=True):
    """Settings of kube-proxy's nftables mode."""

    masquerade_bit: int = 14
    masquerade_all: bool = False
    sync_period: str = ""
    min_sync_period: str = ""


class Winkernel(Section, frozen=True):
    """Windows only."""

    network_name: str = ""
    source_vip: str = ""
    enable_dsr: bool = msgspec.field(name="enableDSR", default=False)
    root_hns_endpoint_name: str = ""
    forward_health_check_vip: bool = False


class DetectLocal(Section, frozen=True):
    """What tells this node's pods, in the two modes that go by interface."""

    bridge_interface: str = ""
    interface_name_prefix: str = ""


class Conntrack(Section, frozen=True):
    """The kernel's connection tracking."""

    max_per_core: int = 32768
    min: int = 131072
    tcp_established_timeout: str = "24h"
    tcp_close_wait_timeout: str = "1h"
    tcp_be_liberal: bool = False
    udp_timeout: str = ""
    udp_stream_timeout: str = ""


class KubeProxyConfiguration(Section, frozen=True):
    """The whole file."""

    api_version: str = API_VERSION
    kind: str = KIND
    feature_gates: dict[str, bool] = {}
    client_connection: ClientConnection = ClientConnection()
    logging: Logging = Logging()
    hostname_override: str = ""
    bind_address: str = ""
    healthz_bind_address: str = ""
    metrics_bind_address: str = ""
    bind_address_hard_fail: bool = False
    enable_profiling: bool = False
    show_hidden_metrics_for_version: str = ""
    mode: str = ""
    iptables: IPTables = IPTables()
    ipvs: IPVS = IPVS()
    nftables: NFTables = NFTables()
    winkernel: Winkernel = Winkernel()
    detect_local_mode: str = ""
    detect_local: DetectLocal = DetectLocal()
    cluster_cidr: str = msgspec.field(name="clusterCIDR", default="")
    node_port_addresses: tuple[str, ...] = ()
    oom_score_adj: int = -999
    conntrack: Conntrack = Conntrack()
    config_sync_period: str = ""
    port_range: str = ""
    windows_run_as_service: bool = False
