"""As an operator I swap kube-proxy for closeby and keep kube-proxy's configuration file, as kubeadm wrote it."""

from pathlib import Path

import pytest

from e2e.cluster.cluster import Cluster, every_client
from e2e.cluster.space import Space, target
from e2e.controlplane.waiting import wait_for
from e2e.world.hosts import CLUSTER_CIDRS
from tests.unit.proxy.kubeproxy.documents import KUBEADM

pytestmark = pytest.mark.e2e

NODE = "north-1"
SERVING = ("north-1", "south-1")


@pytest.fixture
def file(cluster: Cluster, tmp_path: Path) -> Path:
    text = KUBEADM.replace("/var/lib/kube-proxy/kubeconfig.conf", str(cluster.kubeconfig))
    path = tmp_path / "config.conf"
    path.write_text(text.replace("clusterCIDR: 10.200.0.0/16", f"clusterCIDR: {','.join(CLUSTER_CIDRS)}"))
    return path


def test_kubeadms_file_serves_and_a_change_of_it_ends_the_process_to_be_started_anew(
    cluster: Cluster, space: Space, file: Path
) -> None:
    daemon = cluster.daemons[NODE]
    daemon.stop()
    daemon.start("--config", str(file))
    daemon.await_ready()
    space.add_pods("web", SERVING)
    web = space.add_service("web")

    for ip in web["spec"]["clusterIPs"]:
        cluster.await_served(target(web, ip=ip), every_client(*SERVING))
    assert [line["setting"] for line in daemon.events("setting_noted")][:2] == ["mode", "nodePortAddresses"]
    assert daemon.command("plan", "-o", "json").code == 0

    file.write_text(file.read_text().replace("clusterCIDR", "# nothing new but this\nclusterCIDR"))
    code = wait_for(lambda: daemon.running.exit_code, "it ends with an error")

    assert code == 1
    assert f"closeby: --config: {file} changed; start again to take it in" in daemon.log_file.read_text()
    daemon.stop()
    daemon.start("--config", str(file))
    daemon.await_ready()
    cluster.await_served(target(web), every_client(*SERVING))
    daemon.stop()


@pytest.mark.parametrize(
    ("edit", "kept"),
    [
        pytest.param(("", ""), True, id="ClusterCIDR"),
        pytest.param(('detectLocalMode: ""', "detectLocalMode: NodeCIDR"), True, id="NodeCIDR"),
        pytest.param(
            (
                'interfaceNamePrefix: ""\ndetectLocalMode: ""',
                "interfaceNamePrefix: pod-\ndetectLocalMode: InterfaceNamePrefix",
            ),
            True,
            id="InterfaceNamePrefix",
        ),
        pytest.param(("masqueradeAll: false", "masqueradeAll: true"), False, id="masqueradeAll"),
    ],
)
def test_the_file_says_whose_pods_keep_their_address(
    cluster: Cluster, space: Space, file: Path, edit: tuple[str, str], kept: object
) -> None:
    assert edit[0] in file.read_text()
    file.write_text(file.read_text().replace(*edit, 1))
    daemon = cluster.daemons[NODE]
    daemon.stop()
    daemon.start("--config", str(file))
    daemon.await_ready()
    (server,) = space.add_pods("web", ["south-1"])
    web = space.add_service("web")
    client = f"client-{NODE}"

    for ip in web["spec"]["clusterIPs"]:
        cluster.await_served(target(web, ip=ip), {client: {"south-1"}}, tries=3)
        own = cluster.world.host(client)
        seen = set(cluster.ask(client, target(web, ip=ip)._replace(timeout_s=10.0)).seen)
        assert (seen == {(server, own.ipv6 if ":" in ip else own.ipv4)}) is kept
    daemon.stop()
