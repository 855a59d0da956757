"""`closeby plan` on a small folder."""

import json
from pathlib import Path

import pytest

from tests.unit.proxy.cli.conftest import RunCloseby


def test_json_is_the_report_and_nothing_else(run_closeby: RunCloseby, manifests: Path) -> None:
    code, out, err = run_closeby("plan", "--node", "n1", "--manifests", manifests, "-o", "json")

    report = json.loads(out)
    assert (code, err) == (0, "")
    assert list(report) == ["node", "zone", "services", "skipped"]
    assert (report["node"], report["zone"]) == ("n1", "za")
    web = next(port for port in report["services"] if port["service"] == "default/web")
    assert [(f["kind"], f["ip"], f["endpoints"], f["tier"], f["reason"]) for f in web["frontends"]] == [
        ("ClusterIP", "10.96.0.10", ["10.244.0.1:8080"], "same-zone", "endpoint-zones"),
        ("ExternalIP", "198.51.100.7", ["10.244.0.1:8080"], "same-zone", "endpoint-zones"),
    ]
    assert web["left_out"] == [
        {"endpoint": "10.244.1.1:8080", "reason": "other-zone"},
        {"endpoint": "10.244.1.2:8080", "reason": "not-ready"},
    ]
    assert [(part["object"], part["reason"]) for part in report["skipped"]] == [
        ("Service default/headless", "headless"),
        ("Service default/rival ExternalIP 198.51.100.7:80/TCP", "frontend-taken"),
    ]


def test_where_nobody_may_claim_external_ips_none_is_served(run_closeby: RunCloseby, manifests: Path) -> None:
    flags = ("--node", "n1", "--manifests", manifests, "--feature-gates", "AllowServiceExternalIPs=false")

    report = json.loads(run_closeby("plan", *flags, "-o", "json").out)

    assert {frontend["kind"] for port in report["services"] for frontend in port["frontends"]} == {"ClusterIP"}
    assert sorted((part["object"], part["reason"]) for part in report["skipped"]) == [
        ("Service default/headless", "headless"),
        ("Service default/rival", "external-ips-off"),
        ("Service default/web", "external-ips-off"),
    ]


def test_any_node_can_be_asked_for(run_closeby: RunCloseby, manifests: Path) -> None:
    out = run_closeby("plan", "--node", "n2", "--manifests", manifests, "-o", "json").out

    web = next(port for port in json.loads(out)["services"] if port["service"] == "default/web")
    assert web["frontends"][0]["endpoints"] == ["10.244.1.1:8080"]


def test_the_table_has_a_row_a_frontend_and_tells_what_is_not_used(run_closeby: RunCloseby, manifests: Path) -> None:
    code, out, _ = run_closeby("plan", "--node", "n1", "--manifests", manifests)

    rows = [" ".join(line.split()) for line in out.splitlines()]
    assert code == 0
    assert "Node n1, zone za" in rows
    assert "default/web:http ClusterIP 10.96.0.10:80/TCP any 10.244.0.1:8080 same-zone endpoint-zones kept" in rows
    assert "default/rival:80 ClusterIP 10.96.0.11:80/TCP any reject none no-endpoints kept" in rows
    assert "Service default/headless headless" in rows
    assert "default/web has it" in out


SETTINGS = """
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clusterCIDR: 10.244.0.0/16
nftables: {masqueradeAll: true}
mode: nftables
"""


@pytest.mark.parametrize(
    ("flags", "sources"),
    [
        pytest.param([], ["kept"], id="nothing tells pods"),
        pytest.param(["--cluster-cidr", "10.244.0.0/16"], ["masqueraded", "kept"], id="a network tells pods"),
        pytest.param(["--masquerade-all"], ["masqueraded"], id="all are masqueraded"),
        pytest.param(
            ["--detect-local-mode=InterfaceNamePrefix", "--pod-interface-name-prefix=veth"],
            ["masqueraded", "kept"],
            id="devices tell pods",
        ),
        pytest.param(["--config", "{folder}/config.yaml"], ["masqueraded"], id="kube-proxy's file"),
    ],
)
def test_kube_proxys_settings_change_the_sources(
    run_closeby: RunCloseby, manifests: Path, tmp_path: Path, flags: list[str], sources: list[str]
) -> None:
    (tmp_path / "config.yaml").write_text(SETTINGS)
    given = [flag.format(folder=tmp_path) for flag in flags]

    code, out, err = run_closeby("plan", "--node", "n1", "--manifests", manifests, "-o", "json", *given)

    assert (code, err) == (0, "")
    web = next(port for port in json.loads(out)["services"] if port["service"] == "default/web")
    assert [f["source"] for f in web["frontends"] if f["kind"] == "ClusterIP"] == sources


def test_a_file_and_a_flag_that_it_holds_are_one_too_many(
    run_closeby: RunCloseby, manifests: Path, tmp_path: Path
) -> None:
    (tmp_path / "config.yaml").write_text(SETTINGS)
    flags = ("--config", tmp_path / "config.yaml", "--cluster-cidr", "10.0.0.0/8")

    code, _, err = run_closeby("plan", "--manifests", manifests, *flags)

    assert (code, err) == (2, "closeby: --cluster-cidr: --config is given, which holds this\n")


def test_ipv6_addresses_are_shown_in_their_brackets(run_closeby: RunCloseby, tmp_path: Path) -> None:
    service = {
        "kind": "Service",
        "metadata": {"name": "six"},
        "spec": {"clusterIP": "fd00::a", "ports": [{"port": 80}]},
    }
    piece = {
        "kind": "EndpointSlice",
        "metadata": {"name": "six-1", "labels": {"kubernetes.io/service-name": "six"}},
        "addressType": "IPv6",
        "ports": [{"name": "", "port": 8080}],
        "endpoints": [{"addresses": ["fd00::1"]}],
    }
    (tmp_path / "six.json").write_text(json.dumps({"kind": "List", "items": [service, piece]}))

    out = run_closeby("plan", "--manifests", tmp_path).out

    assert "[fd00::a]:80/TCP" in out
    assert "[fd00::1]:8080" in out


ODD = """
kind: Service
metadata: {name: odd, creationTimestamp: "2025-01-01T00:00:00Z"}
spec: {clusterIP: "fd00:100::1", ipFamilies: [IPv6], ports: [{port: 80}]}
---
kind: EndpointSlice
metadata: {name: odd-1, labels: {kubernetes.io/service-name: odd}}
addressType: IPv6
ports: [{port: 8080}]
endpoints: [{addresses: ["fd00:a::b:1"]}]
"""


@pytest.mark.parametrize("command", [["plan"], ["explain", "default/odd"]], ids=lambda each: each[0])
def test_addresses_with_parts_that_are_names_of_emoji_are_shown_as_they_are(
    run_closeby: RunCloseby, tmp_path: Path, command: list[str]
) -> None:
    (tmp_path / "odd.yaml").write_text(ODD)

    out = run_closeby(*command, "--node", "n1", "--manifests", tmp_path).out

    assert "[fd00:100::1]:80" in out
    assert "[fd00:a::b:1]:8080" in out
