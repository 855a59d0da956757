"""What the kubernetes package is asked for, and that it isn't imported for anything else."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import certifi
import pytest

from proxy.sources.credentials import load_in_cluster, load_kubeconfig

_CREDENTIAL = json.dumps(
    {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "plugged"}}
)
_LOAD = """
import sys
from pathlib import Path
from proxy.sources.credentials import load_kubeconfig
access = load_kubeconfig(Path(sys.argv[1]))
print("kubernetes" in sys.modules, access.host, access.authorization())
"""


def write(path: Path, cluster: dict[str, Any], user: dict[str, Any]) -> Path:
    content = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "lan", "user": "me"}}],
        "clusters": [{"name": "lan", "cluster": {"server": "https://192.0.2.1:6443/", **cluster}}],
        "users": [{"name": "me", "user": user}],
    }
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize(
    ("cluster", "user", "says"),
    [
        pytest.param({}, {"token": "secret"}, "False https://192.0.2.1:6443 Bearer secret", id="a token"),
        pytest.param(
            {"certificate-authority": certifi.where(), "tls-server-name": "api"},
            {"tokenFile": "token"},
            "False https://192.0.2.1:6443 Bearer from file",
            id="files",
        ),
        pytest.param(
            {"insecure-skip-tls-verify": True}, {}, "False https://192.0.2.1:6443", id="no credentials and no checks"
        ),
        pytest.param({}, {"username": "u", "password": "p"}, "True https://192.0.2.1:6443 Basic dTpw", id="a password"),
        pytest.param(
            {"proxy-url": "http://192.0.2.2:3128"},
            {"tokenFile": "token"},
            "True https://192.0.2.1:6443 Bearer from file",
            id="a proxy, and a file of a token",
        ),
        pytest.param(
            {},
            {
                "exec": {
                    "apiVersion": "client.authentication.k8s.io/v1",
                    "command": "echo",
                    "args": [_CREDENTIAL],
                    "interactiveMode": "Never",
                }
            },
            "True https://192.0.2.1:6443 Bearer plugged",
            id="a plugin",
        ),
    ],
)
def test_the_package_is_imported_only_for_what_it_alone_can_do(
    cluster: dict[str, Any], user: dict[str, Any], says: str, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("from file\n")
    path = write(tmp_path / "config", cluster, user)

    done = subprocess.run([sys.executable, "-c", _LOAD, str(path)], env={}, check=True, capture_output=True, text=True)

    assert done.stdout.strip() == says


def test_a_proxy_of_the_environment_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://192.0.2.2:3128")
    path = write(tmp_path / "config", {}, {"token": "secret"})

    access = load_kubeconfig(path)

    assert str(access.pool.proxy) == "http://192.0.2.2:3128"
    assert access.authorization() == "Bearer secret"


def test_a_pod_behind_a_proxy_has_its_token_too(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("mounted\n")
    (tmp_path / "ca.crt").write_bytes(Path(certifi.where()).read_bytes())
    environ = {
        "KUBERNETES_SERVICE_HOST": "192.0.2.1",
        "KUBERNETES_SERVICE_PORT": "443",
        "HTTPS_PROXY": "http://192.0.2.2:3128",
    }

    access = load_in_cluster(tmp_path, environ)

    assert (access.host, access.authorization()) == ("https://192.0.2.1:443", "Bearer mounted")
