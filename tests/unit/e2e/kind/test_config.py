from typing import Any

import pytest
import yaml

from e2e.kind.config import ZONE_LABEL, Proxy, Wanted, render_config
from e2e.kind.host import Host

PLAIN = Host(no_sys_resource=False, cgroup_v1=False)
WANTED = Wanted("shop", 2, Proxy.NONE, "node:v1")


def config(wanted: Wanted, host: Host = PLAIN) -> dict[str, Any]:
    parsed: dict[str, Any] = yaml.safe_load(render_config(wanted, host))
    return parsed


def patched(host: Host) -> set[str]:
    return {yaml.safe_load(patch)["kind"] for patch in config(WANTED, host)["kubeadmConfigPatches"]}


@pytest.mark.parametrize(
    ("proxy", "mode"),
    [
        pytest.param(Proxy.NONE, "none", id="nobody makes Services work"),
        pytest.param(Proxy.CLOSEBY, "none", id="closeby is installed afterwards"),
        pytest.param(Proxy.KUBE_PROXY, "nftables", id="the peer in the mode that is compared"),
    ],
)
def test_the_proxy_chooses_kube_proxys_mode(proxy: Proxy, mode: str) -> None:
    networking = config(WANTED._replace(proxy=proxy))["networking"]
    assert networking == {"ipFamily": "dual", "disableDefaultCNI": True, "kubeProxyMode": mode}


def test_a_small_cluster_has_no_zones() -> None:
    nodes = config(WANTED)["nodes"]
    assert [node["role"] for node in nodes] == ["control-plane", "worker", "worker"]
    assert all(node == {"role": node["role"], "image": "node:v1"} for node in nodes)


def test_six_workers_are_two_in_each_of_three_zones() -> None:
    zones = [node["labels"][ZONE_LABEL] for node in config(WANTED._replace(workers=6))["nodes"][1:]]
    assert sorted(zones) == ["east", "east", "north", "north", "south", "south"]
    assert len(set(zones[:3])) == 3


def test_a_usual_machine_needs_no_remedy() -> None:
    assert "containerdConfigPatches" not in config(WANTED)
    assert patched(PLAIN) == {"InitConfiguration", "JoinConfiguration"}


def test_kubeadm_is_told_to_be_patient() -> None:
    init, join = (yaml.safe_load(patch) for patch in config(WANTED)["kubeadmConfigPatches"])
    assert init["timeouts"] == join["timeouts"]
    assert set(init["timeouts"].values()) == {"10m0s"}


def test_kubelets_are_told_to_bear_cgroup_v1() -> None:
    host = PLAIN._replace(cgroup_v1=True)
    assert patched(host) == {"InitConfiguration", "JoinConfiguration", "KubeletConfiguration"}
    assert yaml.safe_load(config(WANTED, host)["kubeadmConfigPatches"][-1])["failCgroupV1"] is False


def test_containerd_is_told_to_lower_no_oom_score_without_the_capability() -> None:
    (patch,) = config(WANTED, PLAIN._replace(no_sys_resource=True))["containerdConfigPatches"]
    assert patch.splitlines() == ['[plugins."io.containerd.grpc.v1.cri"]', "restrict_oom_score_adj = true"]
