"""Any kubeconfig is a configuration or a ConfigError that names it."""

import contextlib
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from proxy.config import ConfigError
from proxy.sources.credentials import load_kubeconfig
from tests.fuzz_inputs import damaged, odd_copies

KUBECONFIG: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "home",
    "contexts": [{"name": "home", "context": {"cluster": "home", "user": "me", "namespace": "default"}}],
    "clusters": [
        {
            "name": "home",
            "cluster": {
                "server": "http://192.0.2.1",
                "insecure-skip-tls-verify": False,
                "certificate-authority-data": "aGk=",
                "proxy-url": "http://192.0.2.2",
                "tls-server-name": "home",
            },
        }
    ],
    "users": [{"name": "me", "user": {"token": "secret", "username": "u", "password": "p"}}],
}


def load(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "config")
        path.write_bytes(content)
        with contextlib.suppress(ConfigError):
            load_kubeconfig(path)


@given(damaged([yaml.safe_dump(KUBECONFIG).encode()]))
@example(yaml.safe_dump(KUBECONFIG).encode().replace(b"apiVersion", b"a\tpiVersion"))  # ours takes it, PyYAML's doesn't
def test_any_bytes(content: bytes) -> None:
    load(content)


@given(odd_copies([KUBECONFIG]))
def test_any_odd_values(document: dict[str, Any]) -> None:
    load(yaml.safe_dump(document).encode())


@pytest.mark.parametrize(
    "user",
    [
        {"exec": {}},
        {"exec": {"command": 5, "apiVersion": "client.authentication.k8s.io/v1"}},
        {"exec": {"command": "true", "apiVersion": 5, "args": "x", "env": [5]}},
        {"exec": {"command": "true", "apiVersion": "client.authentication.k8s.io/v1", "env": [{"name": 5}]}},
        {"auth-provider": 5},
        {"auth-provider": {"name": "oidc"}},
        {"auth-provider": {"name": "oidc", "config": {"id-token": "a.b.c"}}},
        {"auth-provider": {"name": "gcp", "config": {}}},
        {"tokenFile": 5},
        {"tokenFile": "/"},
        {"client-certificate-data": "aGk=", "client-key-data": "="},
    ],
)
def test_odd_users(user: dict[str, Any]) -> None:
    load(yaml.safe_dump(KUBECONFIG | {"users": [{"name": "me", "user": user}]}).encode())


@given(st.binary(max_size=40))
def test_a_token_file_of_any_bytes(token: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "token")
        place.write_bytes(token)
        load(yaml.safe_dump(KUBECONFIG | {"users": [{"name": "me", "user": {"tokenFile": str(place)}}]}).encode())
