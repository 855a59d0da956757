"""Every field of the file: its flag, and what closeby does with it: the log's words, and docs/configuration.md's."""

from enum import StrEnum
from typing import NamedTuple


class Use(StrEnum):
    """What becomes of a field."""

    USED = "used"
    IGNORED = "ignored"


class Field(NamedTuple):
    """One field; `says` tells what it means here, or why it means nothing."""

    path: str
    flag: str  # kube-proxy's; "" where it has none
    default: str  # as shown to people
    use: Use
    says: str


_WINDOWS = "this is Linux"
_IPVS = "closeby has no ipvs mode: it always programs its own nftables tables"
_LOG_STREAM = "every line goes to stderr, at once"
_BIT = "closeby sets and reads no packet mark"

USED, IGNORED = Use.USED, Use.IGNORED
EXTERNAL_IPS_GATE = "AllowServiceExternalIPs"  # the one gate of kube-proxy 1.36 that decides where traffic goes

FIELDS = (
    Field("apiVersion", "", "", USED, "must be kubeproxy.config.k8s.io/v1alpha1"),
    Field("kind", "", "", USED, "must be KubeProxyConfiguration"),
    Field(
        *("featureGates", "--feature-gates", "", USED),
        f"`{EXTERNAL_IPS_GATE}=false`: serve nobody's externalIPs; no other gate means anything here",
    ),
    Field("clientConnection.kubeconfig", "--kubeconfig", "in-cluster", USED, "the API server and our rights on it"),
    Field("clientConnection.acceptContentTypes", "", "", IGNORED, "closeby speaks JSON"),
    Field("clientConnection.contentType", "--kube-api-content-type", "", IGNORED, "closeby speaks JSON"),
    Field("clientConnection.qps", "--kube-api-qps", "5", IGNORED, "closeby sends a few requests and then only watches"),
    Field("clientConnection.burst", "--kube-api-burst", "10", IGNORED, "as qps"),
    Field("logging.format", "--logging-format", "", USED, "`json`, or `text` for columns; --log-format wins"),
    Field("logging.flushFrequency", "--log-flush-frequency", "5s", IGNORED, _LOG_STREAM),
    Field("logging.verbosity", "--v", "0", USED, "4 and above shows each decision"),
    Field("logging.vmodule", "--vmodule", "", IGNORED, "it names source files of kube-proxy"),
    Field("logging.options.text.splitStream", "--log-text-split-stream", "false", IGNORED, _LOG_STREAM),
    Field("logging.options.text.infoBufferSize", "--log-text-info-buffer-size", "0", IGNORED, _LOG_STREAM),
    Field("logging.options.json.splitStream", "--log-json-split-stream", "false", IGNORED, _LOG_STREAM),
    Field("logging.options.json.infoBufferSize", "--log-json-info-buffer-size", "0", IGNORED, _LOG_STREAM),
    Field("hostnameOverride", "--hostname-override", "the host's name", USED, "the Node's name; the flag wins"),
    Field(
        "bindAddress",
        "--bind-address",
        "0.0.0.0",
        USED,
        "nothing is bound to it: it is the node's first address of its family, where the Node object says another; "
        "and IPv6 makes the two servers' defaults IPv6",
    ),
    Field("healthzBindAddress", "--healthz-bind-address", "0.0.0.0:10256", USED, "/healthz, /livez and /readyz"),
    Field("metricsBindAddress", "--metrics-bind-address", "127.0.0.1:10249", USED, "/metrics and /proxyMode"),
    Field(
        "bindAddressHardFail",
        "--bind-address-hard-fail",
        "false",
        USED,
        "true: exit with code 2 if one of the two can't be bound; else it is tried again every 5 s",
    ),
    Field("enableProfiling", "--profiling", "false", IGNORED, "there is no /debug/pprof; attach py-spy to the process"),
    Field("showHiddenMetricsForVersion", "--show-hidden-metrics-for-version", "", IGNORED, "no metric is hidden"),
    Field(
        "mode",
        "--proxy-mode",
        "",
        USED,
        "nftables, whatever it says: `iptables`, `ipvs` and nothing are taken too, and choose which section's "
        "masqueradeAll, syncPeriod and minSyncPeriod count; another mode is refused",
    ),
    Field("iptables.masqueradeBit", "--iptables-masquerade-bit", "14", IGNORED, _BIT),
    Field("iptables.masqueradeAll", "--masquerade-all", "false", USED, "as nftables.masqueradeAll, in the other modes"),
    Field(
        "iptables.localhostNodePorts",
        "--iptables-localhost-nodeports",
        "true",
        IGNORED,
        "NodePorts don't answer on 127.0.0.1 or ::1, as in kube-proxy's nftables mode: use an address of the node",
    ),
    Field("iptables.syncPeriod", "--iptables-sync-period", "30s", USED, "as nftables.syncPeriod, in mode iptables"),
    Field("iptables.minSyncPeriod", "--iptables-min-sync-period", "20ms", USED, "as nftables.minSyncPeriod"),
    Field("ipvs.syncPeriod", "--ipvs-sync-period", "30s", USED, "as nftables.syncPeriod, in mode ipvs"),
    Field("ipvs.minSyncPeriod", "--ipvs-min-sync-period", "20ms", USED, "as nftables.minSyncPeriod, in mode ipvs"),
    Field("ipvs.scheduler", "--ipvs-scheduler", "", IGNORED, _IPVS),
    Field("ipvs.excludeCIDRs", "--ipvs-exclude-cidrs", "", IGNORED, _IPVS),
    Field("ipvs.strictARP", "--ipvs-strict-arp", "false", IGNORED, _IPVS),
    Field("ipvs.tcpTimeout", "--ipvs-tcp-timeout", "0s", IGNORED, _IPVS),
    Field("ipvs.tcpFinTimeout", "--ipvs-tcpfin-timeout", "0s", IGNORED, _IPVS),
    Field("ipvs.udpTimeout", "--ipvs-udp-timeout", "0s", IGNORED, _IPVS),
    Field("nftables.masqueradeBit", "", "14", IGNORED, _BIT),
    Field("nftables.masqueradeAll", "--masquerade-all", "false", USED, "masquerade all traffic to ClusterIPs"),
    Field(
        "nftables.syncPeriod",
        "--iptables-sync-period",
        "30s",
        USED,
        "the longest time until a refused write is tried again; twice as long makes /healthz 503; --sync-period wins",
    ),
    Field(
        "nftables.minSyncPeriod",
        "--iptables-min-sync-period",
        "20ms",
        USED,
        "the least time between two writes; nothing or 0s is 20ms (kube-proxy: 1s), since a write costs so little; "
        "--min-sync-period wins",
    ),
    Field("winkernel.networkName", "", "", IGNORED, _WINDOWS),
    Field("winkernel.sourceVip", "", "", IGNORED, _WINDOWS),
    Field("winkernel.enableDSR", "", "false", IGNORED, _WINDOWS),
    Field("winkernel.rootHnsEndpointName", "", "", IGNORED, _WINDOWS),
    Field("winkernel.forwardHealthCheckVip", "", "false", IGNORED, _WINDOWS),
    Field(
        "detectLocalMode",
        "--detect-local-mode",
        "ClusterCIDR",
        USED,
        "what tells pods from others: `ClusterCIDR` (the source is in clusterCIDR), `NodeCIDR` (it is in this Node's "
        "podCIDRs: the start waits for them, and the process ends with exit code 1 when they change), "
        "`BridgeInterface` or `InterfaceNamePrefix` (the packet came in there; the device may come later)",
    ),
    Field(
        "detectLocal.bridgeInterface", "--pod-bridge-interface", "", USED, "the bridge's name, for `BridgeInterface`"
    ),
    Field(
        "detectLocal.interfaceNamePrefix",
        "--pod-interface-name-prefix",
        "",
        USED,
        "how the devices' names begin, for `InterfaceNamePrefix`",
    ),
    Field(
        "clusterCIDR",
        "--cluster-cidr",
        "",
        USED,
        "the pods' network, one a family: ClusterIP traffic from elsewhere is masqueraded; pods take the short circuit",
    ),
    Field(
        "nodePortAddresses",
        "--nodeport-addresses",
        "primary",
        USED,
        "the node's addresses that NodePorts answer on: `primary` (the Node's first of each family), networks or "
        "`all`; nothing is `primary` in every mode. Addresses that come and go are followed. A family without a "
        "network has none (kube-proxy: all); 127.0.0.1 and ::1 never answer",
    ),
    Field("oomScoreAdj", "--oom-score-adj", "-999", USED, "ours, where we may: less takes CAP_SYS_RESOURCE"),
    Field(
        "conntrack.maxPerCore",
        "--conntrack-max-per-core",
        "32768",
        USED,
        "tracked connections per core of the host, at most 1048576 in all; 0 leaves it",
    ),
    Field("conntrack.min", "--conntrack-min", "131072", USED, "tracked connections, however few cores there are"),
    Field(
        "conntrack.tcpEstablishedTimeout",
        "--conntrack-tcp-timeout-established",
        "24h",
        USED,
        "how long an idle TCP connection is kept; 0 leaves it",
    ),
    Field(
        "conntrack.tcpCloseWaitTimeout",
        "--conntrack-tcp-timeout-close-wait",
        "1h",
        USED,
        "the same in CLOSE_WAIT; 0 leaves it",
    ),
    Field(
        "conntrack.tcpBeLiberal",
        "--conntrack-tcp-be-liberal",
        "false",
        USED,
        "true: take TCP packets outside of the window, for asymmetric routes",
    ),
    Field(
        "conntrack.udpTimeout",
        "--conntrack-udp-timeout",
        "0s",
        USED,
        "how long a UDP flow without answers is kept; 0 leaves it",
    ),
    Field(
        "conntrack.udpStreamTimeout",
        "--conntrack-udp-timeout-stream",
        "0s",
        USED,
        "the same for one with answers; 0 leaves it",
    ),
    Field("configSyncPeriod", "--config-sync-period", "15m", IGNORED, "a watch misses nothing"),
    Field("portRange", "", "", IGNORED, "kube-proxy reads it no more either"),
    Field("windowsRunAsService", "", "false", IGNORED, _WINDOWS),
)
