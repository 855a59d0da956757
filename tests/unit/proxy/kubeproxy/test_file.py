"""The configuration file: what is read, and that a mistake is told by line and field."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.config import ConfigError
from proxy.kubeproxy.file import parse_config, render_config
from proxy.kubeproxy.types import KubeProxyConfiguration, NFTables
from tests.unit.proxy.kubeproxy.documents import KIND, KUBEADM, SMALL


@pytest.mark.parametrize(
    ("text", "mode", "cidr"),
    [
        pytest.param(KUBEADM, "", "10.200.0.0/16", id="kubeadm's"),
        pytest.param(KIND, "iptables", "10.200.0.0/16,fd00:10:200::/56", id="kind's"),
        pytest.param(SMALL, "", "", id="one that says nothing"),
    ],
)
def test_what_installers_write_is_read(text: str, mode: str, cidr: str) -> None:
    config = parse_config("f", text.encode())

    assert (config.mode, config.cluster_cidr) == (mode, cidr)
    assert config.node_port_addresses == ()
    assert config.oom_score_adj == -999


def test_a_null_is_as_absent() -> None:
    assert parse_config("f", KUBEADM.encode()).conntrack.min == KubeProxyConfiguration().conntrack.min


def test_json_is_read_too_with_tabs_in_it() -> None:
    text = json.dumps({"kind": "KubeProxyConfiguration", "apiVersion": "kubeproxy.config.k8s.io/v1alpha1"}, indent="\t")

    assert parse_config("f", text.encode()) == KubeProxyConfiguration()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(SMALL + "mods: x\n", 'line 3: unknown field "mods"; did you mean mode?', id="an unknown field"),
        pytest.param(
            SMALL + "iptables:\n  masqueradeBits: 3\n",
            'line 4: unknown field "iptables.masqueradeBits"; did you mean masqueradeBit?',
            id="an unknown field of a section",
        ),
        pytest.param(
            SMALL + "mode: nftables\nmode: ipvs\n", 'line 4: field "mode" is in line 3 already', id="a field twice"
        ),
        pytest.param(
            SMALL + "conntrack:\n  min: many\n", "line 4: conntrack.min: Expected int, got str", id="another type"
        ),
        pytest.param(SMALL + "nodePortAddresses: all\n", "line 3: nodePortAddresses: Expected array", id="no list"),
        pytest.param(SMALL + "iptables: 3\n", "line 3: iptables: Expected object", id="no mapping"),
        pytest.param("kind: KubeProxyConfiguration\n", "line 1: no apiVersion", id="no version"),
        pytest.param(SMALL.replace("v1alpha1", "v1alpha2"), "line 1: apiVersion is", id="another version"),
        pytest.param("apiVersion: v1\nkind: ConfigMap\n", "line 2: this is a ConfigMap", id="the ConfigMap itself"),
        pytest.param("", "line 1: no KubeProxyConfiguration", id="nothing"),
        pytest.param("- a\n", "line 1: no KubeProxyConfiguration", id="a list"),
        pytest.param(f"{SMALL}---\n{SMALL}", "line 1: no KubeProxyConfiguration", id="two documents"),
        pytest.param("a: [\n", "not YAML or JSON: line 2", id="no YAML"),
        pytest.param(SMALL + "mo\tde: x\n", "line 3: unknown field", id="a tab in a name, as only libyaml takes it"),
        pytest.param("<<: {}\n" + SMALL, 'unknown field "<<"', id="a merge key"),
    ],
)
def test_a_mistake_is_told_by_its_line_and_field(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_config("kube-proxy.conf", text.encode())

    assert str(raised.value).startswith("--config: kube-proxy.conf: ")
    assert said in str(raised.value)


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: (SMALL + text).encode()))
def test_whatever_the_file_holds_only_a_config_error_comes(content: bytes) -> None:
    with contextlib.suppress(ConfigError):
        parse_config("f", content)


@pytest.mark.parametrize("text", [KUBEADM, KIND, SMALL])
def test_what_is_written_is_read_as_the_same(text: str) -> None:
    config = parse_config("f", text.encode())

    assert parse_config("f", render_config(config).encode()) == config


def test_every_default_can_be_written() -> None:
    config = KubeProxyConfiguration(nftables=NFTables(masquerade_all=True), feature_gates={"A": True})

    assert parse_config("f", render_config(config).encode()) == config
