import json
import subprocess
from pathlib import Path

from e2e.kind.config import ZONE_LABEL
from e2e.kind.routes import Node, decode_nodes, render_conflist, render_setup, render_unit, routes_to

WEST = Node("west", ("172.18.0.2", "fc00::2"), ("10.244.0.0/24", "fd00:10:244::/64"))
EAST = Node("east", ("172.18.0.3", "fc00::3"), ("10.244.1.0/24", "fd00:10:244:1::/64"))


def test_a_route_leads_by_the_nodes_address_of_the_same_family() -> None:
    assert routes_to([EAST]) == ["10.244.1.0/24 via 172.18.0.3", "fd00:10:244:1::/64 via fc00::3"]


def test_a_node_that_has_no_range_yet_gets_no_route() -> None:
    assert routes_to([EAST._replace(pod_cidrs=())]) == []


def test_pods_get_an_address_of_each_family_and_keep_it() -> None:
    ptp, portmap = json.loads(render_conflist(WEST))["plugins"]
    assert ptp["ipam"]["ranges"] == [[{"subnet": "10.244.0.0/24"}], [{"subnet": "fd00:10:244::/64"}]]
    assert [route["dst"] for route in ptp["ipam"]["routes"]] == ["0.0.0.0/0", "::/0"]
    assert ptp["ipMasq"] is False
    assert portmap["type"] == "portmap"


def test_the_unit_sets_every_route_before_the_kubelet_runs() -> None:
    lines = render_unit(["10.244.1.0/24 via 172.18.0.3"]).splitlines()
    assert "ExecStart=ip route replace 10.244.1.0/24 via 172.18.0.3" in lines
    assert "Before=kubelet.service" in lines


def test_the_script_writes_both_files_whole(tmp_path: Path) -> None:
    script = render_setup(WEST, [EAST]).replace("/etc/", f"{tmp_path}/etc/").replace("systemctl", "true")
    (tmp_path / "etc/systemd/system").mkdir(parents=True)
    subprocess.run(["sh"], input=script, text=True, check=True)
    assert (tmp_path / "etc/systemd/system/pod-routes.service").read_text() == render_unit(routes_to([EAST]))
    (conflist,) = (tmp_path / "etc/cni/net.d").iterdir()
    assert conflist.read_text() == render_conflist(WEST) + "\n"


def test_nodes_are_read_as_the_api_lists_them() -> None:
    ready = {"type": "Ready", "status": "True"}
    addresses = [{"type": "InternalIP", "address": "172.18.0.2"}, {"type": "Hostname", "address": "west"}]
    listed = [
        {
            "metadata": {"name": "west", "labels": {ZONE_LABEL: "w"}},
            "spec": {"podCIDRs": ["10.244.0.0/24"]},
            "status": {"addresses": addresses, "conditions": [{"type": "MemoryPressure", "status": "False"}, ready]},
        },
        {"metadata": {"name": "east"}, "spec": {}, "status": {}},
    ]
    assert decode_nodes(json.dumps({"items": listed})) == [
        Node("east", (), (), "", ready=False),
        Node("west", ("172.18.0.2",), ("10.244.0.0/24",), "w", ready=True),
    ]
