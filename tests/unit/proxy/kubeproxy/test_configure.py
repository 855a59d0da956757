"""From KubeProxyConfiguration to what the daemon runs by."""

from pathlib import Path

import msgspec
import pytest

from endpointslice.types import CIDR, IP
from proxy.config import BindAddress, Config, ConfigError
from proxy.conntrack.settings import ConntrackSettings
from proxy.kubeproxy.configure import Own, build_config, name_by_flag, name_in_file
from proxy.kubeproxy.defaults import fill_defaults
from proxy.kubeproxy.file import parse_config
from proxy.kubeproxy.types import (
    IPVS,
    Conntrack,
    DetectLocal,
    IPTables,
    KubeProxyConfiguration,
    Logging,
    NFTables,
)
from proxy.planner.settings import Detect, Settings
from tests.unit.proxy.kubeproxy.documents import KIND, KUBEADM

FULL = KubeProxyConfiguration


def configured(config: KubeProxyConfiguration, own: Own = Own(hostname_override="n1")) -> Config:  # noqa: B008  # frozen
    return build_config(config, own, name_by_flag)


def read(text: str) -> KubeProxyConfiguration:
    return parse_config("f", text.encode())


def test_kubeadms_file_is_kube_proxys_defaults() -> None:
    config = configured(read(KUBEADM))

    settings = Settings(config.settings.node, (CIDR("10.200.0.0/16"),))
    assert config == Config(settings, kubeconfig=Path("/var/lib/kube-proxy/kubeconfig.conf"))


def test_kinds_file_keeps_what_kind_sets() -> None:
    config = configured(read(KIND))

    assert config.settings.cluster_cidrs == ("10.200.0.0/16", "fd00:10:200::/56")
    assert config.settings.own_addresses == ()  # every address is none
    assert (config.healthz, config.metrics) == (BindAddress("", 10256), BindAddress("::1", 10249))
    assert config.min_sync_period_s == 1.0
    assert config.conntrack == ConntrackSettings(max_per_core=0)


@pytest.mark.parametrize(
    ("config", "masquerade_all", "periods"),
    [
        pytest.param(FULL(), False, (0.02, 30.0), id="nothing said"),
        pytest.param(
            FULL(mode="nftables", nftables=NFTables(masquerade_all=True, sync_period="1m", min_sync_period="2s")),
            True,
            (2.0, 60.0),
            id="nftables: its own",
        ),
        pytest.param(
            FULL(mode="nftables", iptables=IPTables(masquerade_all=True)),
            False,
            (0.02, 30.0),
            id="nftables: no other's",
        ),
        pytest.param(
            FULL(iptables=IPTables(masquerade_all=True, sync_period="1m", min_sync_period="2s")),
            True,
            (2.0, 60.0),
            id="no mode: the section iptables",
        ),
        pytest.param(
            FULL(mode="ipvs", ipvs=IPVS("1m", "2s"), iptables=IPTables(masquerade_all=True)),
            True,
            (2.0, 60.0),
            id="ipvs: its periods, and masqueradeAll of iptables",
        ),
        pytest.param(FULL(iptables=IPTables(min_sync_period="0s")), False, (0.02, 30.0), id="no least time"),
    ],
)
def test_the_mode_chooses_the_section(
    config: KubeProxyConfiguration, masquerade_all: object, periods: tuple[float, float]
) -> None:
    built = configured(config)

    assert built.settings.masquerade_all is masquerade_all
    assert (built.min_sync_period_s, built.sync_period_s) == periods


@pytest.mark.parametrize(
    ("mode", "detect", "interface"),
    [
        pytest.param("", Detect.CLUSTER_CIDR, "", id="nothing said"),
        pytest.param("NodeCIDR", Detect.NODE_CIDR, "", id="the Node's networks"),
        pytest.param("BridgeInterface", Detect.BRIDGE_INTERFACE, "cni0", id="a bridge"),
        pytest.param("InterfaceNamePrefix", Detect.INTERFACE_NAME_PREFIX, "veth", id="devices"),
    ],
)
def test_what_tells_pods(mode: str, detect: Detect, interface: str) -> None:
    built = configured(FULL(detect_local_mode=mode, detect_local=DetectLocal("cni0", "veth")))

    assert (built.settings.detect, built.settings.interface) == (detect, interface)


@pytest.mark.parametrize(
    ("text", "own", "log_format"),
    [
        pytest.param("", "", "auto", id="neither"),
        pytest.param("json", "", "json", id="kube-proxy's JSON"),
        pytest.param("text", "", "console", id="kube-proxy's text"),
        pytest.param("text", "json", "json", id="our own flag wins"),
    ],
)
def test_the_log_format(text: str, own: str, log_format: str) -> None:
    built = configured(FULL(logging=Logging(format=text)), Own(log_format=own))

    assert built.log_format == log_format


@pytest.mark.parametrize(
    ("own", "node"),
    [pytest.param(Own(), "from-file", id="the file"), pytest.param(Own(hostname_override=" N1 "), "n1", id="the flag")],
)
def test_the_name_of_the_node(own: Own, node: str) -> None:
    assert configured(FULL(hostname_override="from-file"), own).settings.node == node


def test_a_bind_address_is_the_nodes_own_address() -> None:
    config = configured(FULL(bind_address="2001:db8::7"))

    assert config.settings.own_addresses == (IP("2001:db8::7"),)
    assert (config.healthz, config.metrics) == (BindAddress("", 10256), BindAddress("::1", 10249))


@pytest.mark.parametrize(
    ("gates", "served"),
    [({}, True), ({"AllowServiceExternalIPs": True}, True), ({"AllowServiceExternalIPs": False, "Other": True}, False)],
)
def test_the_one_gate_that_means_something(gates: dict[str, bool], served: object) -> None:
    assert configured(FULL(feature_gates=gates)).settings.external_ips is served


def test_flags_win_over_the_file_where_they_are_ours() -> None:
    own = Own(min_sync_period="5ms", sync_period="3s", turned_off=frozenset(("healthzBindAddress",)))

    config = configured(read(KIND), own)

    assert (config.min_sync_period_s, config.sync_period_s, config.healthz) == (0.005, 3.0, None)


def test_a_folder_of_manifests_takes_the_place_of_the_files_kubeconfig() -> None:
    config = configured(read(KUBEADM), Own(manifests=Path("/m")))

    assert (config.manifests, config.kubeconfig) == (Path("/m"), None)


@pytest.mark.parametrize(
    ("config", "path"),
    [
        pytest.param(FULL(mode="kernelspace"), "mode", id="Windows' mode"),
        pytest.param(FULL(mode="NFTables"), "mode", id="a mode in other letters"),
        pytest.param(FULL(detect_local_mode="Guess"), "detectLocalMode", id="no detect mode"),
        pytest.param(FULL(detect_local_mode="BridgeInterface"), "detectLocal.bridgeInterface", id="no bridge"),
        pytest.param(
            FULL(detect_local_mode="InterfaceNamePrefix", detect_local=DetectLocal("", "a name of 17 char")),
            "detectLocal.interfaceNamePrefix",
            id="no beginning of a device's name",
        ),
        pytest.param(FULL(bind_address="all"), "bindAddress", id="no address"),
        pytest.param(FULL(healthz_bind_address="all"), "healthzBindAddress", id="no server's address"),
        pytest.param(FULL(metrics_bind_address="1:2:3:x"), "metricsBindAddress", id="nor this"),
        pytest.param(FULL(cluster_cidr="10.0.0.0"), "clusterCIDR", id="an address for a network"),
        pytest.param(FULL(node_port_addresses=("primary", "::/0")), "nodePortAddresses", id="primary and a network"),
        pytest.param(FULL(oom_score_adj=-1001), "oomScoreAdj", id="out of range"),
        pytest.param(FULL(iptables=IPTables(masquerade_bit=32)), "iptables.masqueradeBit", id="no bit"),
        pytest.param(FULL(nftables=NFTables(sync_period="-1s")), "nftables.syncPeriod", id="no duration"),
        pytest.param(FULL(ipvs=IPVS("1s", "2s")), "ipvs.syncPeriod", id="the longest less than the least"),
        pytest.param(FULL(config_sync_period="soon"), "configSyncPeriod", id="no duration, in an ignored field"),
        pytest.param(FULL(conntrack=Conntrack(udp_timeout="1")), "conntrack.udpTimeout", id="no unit"),
        pytest.param(FULL(logging=Logging(format="xml")), "logging.format", id="no format"),
    ],
)
def test_a_value_without_meaning_is_named_by_file_and_field(config: KubeProxyConfiguration, path: str) -> None:
    with pytest.raises(ConfigError) as raised:
        build_config(config, Own(), name_in_file(Path("/etc/f")))

    assert str(raised.value).startswith(f"--config: /etc/f: {path}: ")


def test_a_value_of_a_flag_is_named_by_the_flag() -> None:
    with pytest.raises(ConfigError, match="--oom-score-adj: "):
        build_config(FULL(oom_score_adj=2000), Own(), name_by_flag)


def test_defaults_that_were_filled_in_stay() -> None:
    filled = fill_defaults(msgspec.structs.replace(read(KIND), bind_address="::1"))

    assert fill_defaults(filled) == filled
    assert filled.healthz_bind_address == "[::]:10256"
