"""Any configuration file is a configuration to run by, or a ConfigError."""

import contextlib
from typing import Any

import yaml
from hypothesis import given

from proxy.config import ConfigError
from proxy.kubeproxy.configure import Own, build_config, name_by_flag
from proxy.kubeproxy.file import parse_config, render_config
from tests.fuzz_inputs import damaged, odd_copies
from tests.unit.proxy.kubeproxy.documents import KIND, KUBEADM

DOCUMENTS: list[dict[str, Any]] = [yaml.safe_load(text) for text in (KUBEADM, KIND)]


def load(content: bytes) -> None:
    with contextlib.suppress(ConfigError):
        config = parse_config("f", content)
        render_config(config)
        build_config(config, Own(), name_by_flag)


@given(damaged([KUBEADM.encode(), KIND.encode()]))
def test_any_bytes(content: bytes) -> None:
    load(content)


@given(odd_copies(DOCUMENTS))
def test_any_odd_values(document: dict[str, Any]) -> None:
    load(yaml.safe_dump(document).encode())
