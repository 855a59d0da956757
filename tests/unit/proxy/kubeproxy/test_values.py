"""Fields by path, and the table that says what becomes of each."""

from collections import Counter

import pytest

from proxy.config import ConfigError
from proxy.kubeproxy.fields import FIELDS
from proxy.kubeproxy.types import KubeProxyConfiguration
from proxy.kubeproxy.values import LEAVES, get_field, set_flags


def test_every_field_of_the_file_is_in_the_table_once() -> None:
    assert Counter(field.path for field in FIELDS) == Counter(list(LEAVES))


@pytest.mark.parametrize(
    ("flag", "text", "path", "value"),
    [
        pytest.param("--bind-address", "::1", "bindAddress", "::1", id="text"),
        pytest.param("--masquerade-all", "true", "nftables.masqueradeAll", True, id="a switch"),
        pytest.param("--masquerade-all", "true", "iptables.masqueradeAll", True, id="one flag for two modes"),
        pytest.param(
            "--iptables-localhost-nodeports", "false", "iptables.localhostNodePorts", False, id="switched off"
        ),
        pytest.param("--oom-score-adj", "-5", "oomScoreAdj", -5, id="a number"),
        pytest.param("--kube-api-qps", "7.5", "clientConnection.qps", 7.5, id="a fraction"),
        pytest.param("--nodeport-addresses", "a, b", "nodePortAddresses", ["a", "b"], id="a list"),
        pytest.param("--feature-gates", "A=true,B=false", "featureGates", {"A": True, "B": False}, id="gates"),
        pytest.param(
            "--vmodule", "a*=3", "logging.vmodule", [{"filePattern": "a*", "verbosity": 3}], id="verbosity by file"
        ),
    ],
)
def test_a_flag_sets_its_field(flag: str, text: str, path: str, value: object) -> None:
    found = get_field(set_flags(KubeProxyConfiguration(), {flag: text}), path)

    assert found == (tuple(value) if isinstance(value, list) else value)


@pytest.mark.parametrize(
    ("flag", "text"),
    [
        pytest.param("--masquerade-all", "perhaps", id="a switch"),
        pytest.param("--conntrack-min", "many", id="a number"),
        pytest.param("--feature-gates", "A", id="a gate without a value"),
        pytest.param("--feature-gates", "A=on off", id="a gate with another value"),
    ],
)
def test_a_flag_that_is_wrong_is_named(flag: str, text: str) -> None:
    with pytest.raises(ConfigError, match=flag):
        set_flags(KubeProxyConfiguration(), {flag: text})
