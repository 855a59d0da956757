"""The JSON of `closeby verify`, which other programs read."""

import json

import msgspec

from endpointslice.types import IP, Family, Protocol
from proxy.planner.keys import pack_vip
from proxy.verify.report import keep_differences, report_checks
from tests.builders import a_slice, service, slice_endpoint
from tests.kube_proxy_table import KubeProxyTable
from tests.verified import plan_objects, tables_of

WORLD = plan_objects(
    service(),
    service("default/empty", cluster_ips=(IP("10.96.0.11"),)),
    a_slice([slice_endpoint("10.244.0.1"), slice_endpoint("10.244.1.1")]),
)


def lose_web() -> list[KubeProxyTable]:
    table = tables_of(WORLD.wanted)[0]
    assert table.family is Family.IPV4
    del table.elements["service-ips"][pack_vip(IP("10.96.0.10"), Protocol.TCP, 80)]
    return [table]


def test_a_difference_as_json() -> None:
    report = report_checks(WORLD.wanted.place, [WORLD.check_kube_proxy(lose_web())])

    found = json.loads(msgspec.json.encode(keep_differences(report)))

    assert report.wrong
    assert (found["node"], found["zone"]) == ("n1", None)
    (table,) = found["tables"]
    assert list(table) == ["table", "frontends", "remarks", "unseen", "counts"]
    assert table["counts"] == {"same": 1, "meant": 0, "different": 1, "remarks": 0}
    assert table["frontends"] == [
        {
            "service": "default/web",
            "service_port": "http",
            "protocol": "TCP",
            "family": "IPv4",
            "kind": "ClusterIP",
            "ip": "10.96.0.10",
            "port": 80,
            "from": "any",
            "tier": "cluster",
            "reason": "all-ready",
            "expected": {
                "verdict": "dnat",
                "endpoints": ["10.244.0.1:8080", "10.244.1.1:8080"],
                "affinity": None,
                "source_ranges": [],
                "source": None,
            },
            "found": None,
            "differences": ["missing"],
            "meant": "",
            "detail": "",
        }
    ]


def test_all_frontends_are_sorted_by_service() -> None:
    report = report_checks(WORLD.wanted.place, [WORLD.check_kube_proxy(tables_of(WORLD.wanted))])

    assert [row.service for row in report.tables[0].frontends] == ["default/empty", "default/web"]
    assert not report.wrong
    assert keep_differences(report).tables[0].frontends == ()
