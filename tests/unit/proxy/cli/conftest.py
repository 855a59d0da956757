"""Running `closeby` in this process, and a small folder of manifests."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import structlog

from proxy.__main__ import main

MANIFEST = """
kind: Node
metadata: {name: n1, labels: {topology.kubernetes.io/zone: za}}
status: {addresses: [{type: InternalIP, address: 192.0.2.1}]}
---
kind: Node
metadata: {name: n2, labels: {topology.kubernetes.io/zone: zb}}
---
kind: Service
metadata: {name: web, creationTimestamp: "2025-01-01T00:00:00Z"}
spec:
  clusterIP: 10.96.0.10
  externalIPs: [198.51.100.7]
  trafficDistribution: PreferClose
  ports: [{name: http, port: 80}]
---
kind: EndpointSlice
metadata: {name: web-1, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints:
- {addresses: [10.244.0.1], nodeName: n1, zone: za}
- {addresses: [10.244.1.1], nodeName: n2, zone: zb}
- {addresses: [10.244.1.2], nodeName: n2, zone: zb, conditions: {ready: false, serving: false}}
---
kind: Service
metadata: {name: rival}
spec: {clusterIP: 10.96.0.11, externalIPs: [198.51.100.7], ports: [{port: 80}]}
---
kind: Service
metadata: {name: headless}
spec: {clusterIP: None, ports: [{port: 80}]}
"""


class Result(NamedTuple):
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str


RunCloseby = Callable[..., Result]


@pytest.fixture
def run_closeby(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[RunCloseby]:
    def run(*arguments: str | Path) -> Result:
        monkeypatch.setattr(sys, "argv", ["closeby", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        written = capsys.readouterr()
        code = ended.value.code
        return Result(code if isinstance(code, int) else 0, written.out, written.err)

    yield run
    structlog.reset_defaults()  # the commands set it up for their process


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    folder = tmp_path / "manifests"
    folder.mkdir()
    (folder / "world.yaml").write_text(MANIFEST)
    return folder
