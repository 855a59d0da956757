"""What is said of settings that do something else here, or nothing."""

import pytest

from proxy.kubeproxy.defaults import fill_defaults
from proxy.kubeproxy.file import parse_config
from proxy.kubeproxy.notes import note_file, note_flags
from proxy.kubeproxy.types import IPVS, ClientConnection, KubeProxyConfiguration, NFTables
from proxy.kubeproxy.values import set_flags
from tests.unit.proxy.kubeproxy.documents import KIND, KUBEADM

QUIET = KubeProxyConfiguration(mode="nftables")


@pytest.mark.parametrize(
    ("config", "settings"),
    [
        pytest.param(QUIET, [], id="nothing said"),
        pytest.param(fill_defaults(QUIET), [], id="the defaults written out"),
        pytest.param(parse_config("f", KUBEADM.encode()), ["mode", "nodePortAddresses"], id="kubeadm's"),
        pytest.param(parse_config("f", KIND.encode()), ["mode", "nodePortAddresses"], id="kind's"),
        pytest.param(
            KubeProxyConfiguration(
                mode="nftables",
                ipvs=IPVS(strict_arp=True, tcp_timeout="5s"),
                nftables=NFTables(masquerade_bit=3),
                client_connection=ClientConnection(qps=50.0),
            ),
            ["clientConnection.qps", "ipvs.strictARP", "ipvs.tcpTimeout", "nftables.masqueradeBit"],
            id="what does nothing here",
        ),
        pytest.param(
            KubeProxyConfiguration(mode="ipvs", node_port_addresses=("all",)), ["mode"], id="another mode, addresses"
        ),
        pytest.param(
            KubeProxyConfiguration(mode="nftables", node_port_addresses=("::/0",)),
            ["nodePortAddresses"],
            id="networks of one family",
        ),
        pytest.param(
            KubeProxyConfiguration(mode="nftables", node_port_addresses=("127.0.0.0/8", "fd00::/8")),
            ["nodePortAddresses"],
            id="a loopback network",
        ),
        pytest.param(
            KubeProxyConfiguration(mode="nftables", feature_gates={"AllowServiceExternalIPs": False}), [], id="our gate"
        ),
        pytest.param(
            KubeProxyConfiguration(mode="nftables", feature_gates={"Other": True}), ["featureGates"], id="another gate"
        ),
    ],
)
def test_what_a_file_says_without_effect(config: KubeProxyConfiguration, settings: list[str]) -> None:
    assert [note.setting for note in note_file(config, ())] == settings


def test_flags_beside_a_file_are_ignored_but_for_logging_and_the_name() -> None:
    notes = note_file(QUIET, ("--cluster-cidr", "--v", "--logging-format", "--hostname-override"))

    assert [note.setting for note in notes] == ["--cluster-cidr"]


def test_flags_that_do_nothing_say_why() -> None:
    texts = {"--cluster-cidr": "10.0.0.0/8", "--kube-api-burst": "3", "--proxy-mode": "ipvs"}

    notes = list(note_flags(set_flags(KubeProxyConfiguration(), texts), texts))

    assert [note.setting for note in notes] == ["--kube-api-burst", "mode", "nodePortAddresses"]
    assert all(note.why for note in notes)
