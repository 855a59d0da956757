import json
from pathlib import Path
from typing import Any

import pytest

from proxy.config import ConfigError
from proxy.sources.credentials import load_in_cluster, load_kubeconfig

GOOD: dict[str, Any] = {
    "current-context": "here",
    "contexts": [{"name": "here", "context": {"cluster": "lan", "user": "me"}}],
    "clusters": [{"name": "lan", "cluster": {"server": "https://192.0.2.1:6443"}}],
    "users": [{"name": "me", "user": {"token": "secret"}}],
}


def with_cluster(**cluster: object) -> dict[str, Any]:
    return GOOD | {"clusters": [{"name": "lan", "cluster": {"server": "https://192.0.2.1:6443"} | cluster}]}


def with_user(**user: object) -> dict[str, Any]:
    return GOOD | {"users": [{"name": "me", "user": user}]}


def test_a_kubeconfig_gives_server_and_token(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(json.dumps(GOOD))

    access = load_kubeconfig(path)

    assert access.host == "https://192.0.2.1:6443"
    assert access.authorization() == "Bearer secret"
    assert load_kubeconfig(path, "http://192.0.2.9:8080").host == "http://192.0.2.9:8080"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param("", "Expected `object`, got `null`", id="an empty file"),
        pytest.param("hello", "Expected `object`, got `str`", id="a word"),
        pytest.param("a: [1\nb: 2", "not YAML: .*line 2", id="broken YAML"),
        pytest.param({}, "missing required field `current-context`", id="nothing in it"),
        pytest.param(
            GOOD | {"current-context": "home"}, 'current-context: no context is named "home"', id="no such context"
        ),
        pytest.param(GOOD | {"contexts": [{"name": "here"}]}, r"`context` - at `\$.contexts\[0\]`", id="no context"),
        pytest.param(GOOD | {"clusters": []}, 'names the cluster "lan", which isn\'t there', id="no such cluster"),
        pytest.param(GOOD | {"users": []}, 'names the user "me", who isn\'t there', id="no such user"),
        pytest.param(
            with_cluster(server=443),
            r"Expected `str`, got `int` - at `\$.clusters\[0\].cluster.server`",
            id="a number as server",
        ),
        pytest.param(with_cluster(server="192.0.2.1"), 'server of "lan" is "192.0.2.1", not an http', id="no URL"),
        pytest.param(
            with_cluster(**{"certificate-authority": "no.pem"}),
            "certificate-authority: .*/no.pem: No such",
            id="no such certificate file",
        ),
        pytest.param(with_cluster(**{"certificate-authority-data": "a"}), "base64|padding", id="no base64"),
        pytest.param(
            with_cluster(**{"certificate-authority-data": "aGVsbG8="}), "certificate-authority: ", id="no certificate"
        ),
        pytest.param(
            with_user(tokenFile="none"), "users.*tokenFile: .*/none: No such file or directory", id="no such token file"
        ),
        pytest.param(with_cluster(**{"proxy-url": "gopher://here"}), "the proxy 'gopher://here'", id="no such proxy"),
        pytest.param(
            with_user(**{"client-certificate-data": "aGVsbG8=", "client-key-data": "aGVsbG8="}),
            "client-certificate, client-key: ",
            id="no client certificate",
        ),
        pytest.param(
            with_user(exec={"apiVersion": "client.authentication.k8s.io/v1", "command": "/none"}),
            "plugin '/none' gave no credentials",
            id="no such plugin",
        ),
    ],
)
def test_what_is_wrong_is_named(content: object, words: str, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(content if isinstance(content, str) else json.dumps(content))

    with pytest.raises(ConfigError, match=words) as caught:
        load_kubeconfig(path)

    assert str(caught.value).startswith(f"--kubeconfig {path}: ")


def test_a_missing_kubeconfig_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--kubeconfig .*/none: No such file or directory"):
        load_kubeconfig(tmp_path / "none")


def test_paths_in_a_kubeconfig_are_relative_to_it(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from file\n")
    (tmp_path / "config").write_text(json.dumps(with_user(tokenFile="token")))

    assert load_kubeconfig(tmp_path / "config").authorization() == "Bearer from file"


PLUGIN = """#!/bin/sh
echo '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "of a plugin"}}'
"""


@pytest.mark.parametrize("folder", ["plain", "of:two"])
def test_a_plugin_and_certificates_are_relative_to_a_kubeconfig_of_any_path_and_spacing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    home = tmp_path / folder
    home.mkdir()
    plugin = home / "plugin"
    plugin.write_text(PLUGIN)
    plugin.chmod(0o700)
    (home / "ca.crt").write_text(Path(_any_certificates()).read_text())
    content = with_cluster(**{"certificate-authority": "ca.crt"}) | {
        "users": [
            {"name": "me", "user": {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin"}}}
        ]
    }
    words = json.dumps(content).replace('"current-context":', "\ncurrent-context\t:")  # PyYAML's own loader refuses it
    (home / "config").write_text(words)
    monkeypatch.chdir(tmp_path)

    access = load_kubeconfig(Path(folder, "config"))

    assert access.authorization() == "Bearer of a plugin"
    assert access.pool.connection_pool_kw["ca_certs"] == str(home / "ca.crt")


def test_outside_a_cluster_the_flags_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="give --kubeconfig or --manifests: not in a cluster"):
        load_in_cluster(tmp_path, {})


def test_a_pod_is_given_all_it_needs(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("mounted")
    (tmp_path / "ca.crt").write_text(Path(_any_certificates()).read_text())

    access = load_in_cluster(tmp_path, {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"})

    assert access.host == "https://[fd00::1]:443"
    assert access.authorization() == "Bearer mounted"


def test_a_pod_may_be_told_another_server(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("mounted")
    (tmp_path / "ca.crt").write_text(Path(_any_certificates()).read_text())

    access = load_in_cluster(tmp_path, {}, "https://192.0.2.10:6443/")

    assert access.host == "https://192.0.2.10:6443"
    assert access.authorization() == "Bearer mounted"


def test_another_server_is_named_by_a_url(tmp_path: Path) -> None:
    (tmp_path / "config").write_text(json.dumps(GOOD))

    with pytest.raises(ConfigError, match=r'--master: "192\.0\.2\.10:6443" is not a URL; write it as https://'):
        load_kubeconfig(tmp_path / "config", "192.0.2.10:6443")


def _any_certificates() -> str:
    import certifi  # noqa: PLC0415  # comes with the Kubernetes client

    return str(certifi.where())
