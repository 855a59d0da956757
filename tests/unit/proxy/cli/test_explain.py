"""`closeby explain` on a small folder."""

from pathlib import Path

import pytest

from tests.unit.proxy.cli.conftest import RunCloseby


def test_a_service_with_its_answers_and_every_endpoint(run_closeby: RunCloseby, manifests: Path) -> None:
    code, out, err = run_closeby("explain", "default/web", "--node", "n1", "--manifests", manifests)

    rows = [" ".join(line.split()) for line in out.splitlines()]
    assert (code, err) == (0, "")
    assert out.startswith("default/web (ClusterIP) on node n1, zone za\n")
    assert "trafficDistribution PreferClose, internalTrafficPolicy Cluster" in out
    assert "same node for a DaemonSet's pods: off: the Service has no selector" in out
    assert any(row.startswith("ClusterIP 10.96.0.10:80 any 10.244.0.1:8080 ") for row in rows)
    assert "prefers close endpoints and none has hints: the ready ones in this node's zone" in out
    assert "10.244.0.1:8080 n1 za ready yes" in rows
    assert "10.244.1.1:8080 n2 zb ready no: in another zone" in rows
    assert "10.244.1.2:8080 n2 zb not ready no: not ready" in rows


@pytest.mark.parametrize(
    ("client", "words", "source"),
    [
        pytest.param("10.244.5.5", "Client 10.244.5.5: a pod: inside the cluster CIDR", "kept", id="a pod"),
        pytest.param("192.0.2.1", "Client 192.0.2.1: an address of node n1", "masqueraded", id="the host"),
        pytest.param("203.0.113.1", "Client 203.0.113.1: outside the cluster CIDR", "masqueraded", id="someone else"),
    ],
)
def test_only_the_answer_for_a_client(
    run_closeby: RunCloseby, manifests: Path, client: str, words: str, source: str
) -> None:
    flags = ("--node", "n1", "--manifests", manifests, "--cluster-cidr", "10.244.0.0/16", "--from", client)

    code, out, _ = run_closeby("explain", "default/web", *flags)

    rows = [line.split() for line in out.splitlines()]
    (cluster_ip,) = [row for row in rows if row[:1] == ["ClusterIP"]]
    assert code == 0
    assert words in out
    assert source in cluster_ip


def test_a_frontend_that_another_service_has(run_closeby: RunCloseby, manifests: Path) -> None:
    out = run_closeby("explain", "default/rival", "--node", "n1", "--manifests", manifests).out

    assert "Not served: Service default/rival ExternalIP 198.51.100.7:80/TCP: default/web has it." in out
    assert "No endpoint at all." in out


@pytest.mark.parametrize(
    ("service", "words"),
    [
        pytest.param("default/none", "there is no Service default/none in this source", id="one that isn't there"),
        pytest.param("default/headless", "Service default/headless is not proxied: headless", id="one that is skipped"),
    ],
)
def test_a_service_that_is_not_proxied_ends_with_1(
    run_closeby: RunCloseby, manifests: Path, service: str, words: str
) -> None:
    code, out, err = run_closeby("explain", service, "--manifests", manifests)

    assert (code, out) == (1, "")
    assert err == f"closeby: {words}\n"
