"""As an administrator I run the image with exactly the rights that the DaemonSet asks for, and it does all its work."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.image.build import BuildError, build_image
from deploy.image.debian import DebianError
from e2e.addresses import ACCOUNT as CONTROLLER
from e2e.addresses import NAMESPACE, Shop, install
from e2e.cluster.cluster import ACCOUNT, Cluster
from e2e.cluster.daemon import HEALTHZ_PORT
from e2e.cluster.kernel import list_rules
from e2e.cluster.space import PORT, Space, target
from e2e.controlplane.api import ApiError
from e2e.controlplane.waiting import wait_for
from e2e.deploy.container import Container, Given, oci_config, unpack
from e2e.deploy.rendering import DEPLOY, kustomize
from e2e.world.clients import Target
from proxy.addresses.follow import list_resources

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

NODE = "north-1"
CLIENT = f"client-{NODE}"
VIP = "172.30.0.231"
WITH_ANNOUNCER = "overlays/kind-announcer"
REAL_TIME = "components/announcer-realtime"
REAL_TIME_GROUPS = Path("/sys/fs/cgroup/cpu/cpu.rt_runtime_us")  # sched-rt-group.rst
ANNOUNCER = DEPLOY / "components" / "announcer" / "daemonset.yaml"
TABLES = ("table ip closeby", "table ip6 closeby")


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The image's folder: `rootfs`. Of $CLOSEBY_IMAGE, or built here."""
    folder = tmp_path_factory.mktemp("image")
    for program in ("runc", "debootstrap"):
        if shutil.which(program) is None:
            pytest.skip(f"no {program} on this host")
    file = os.environ.get("CLOSEBY_IMAGE")
    try:
        built = Path(file) if file else build_image("closeby:test", folder / "image.tar", with_docker=False)
    except (BuildError, DebianError) as error:
        pytest.skip(f"no image: {error}")
    config = unpack(built, folder / "rootfs")
    assert config["config"]["User"] == "65532:65532"
    return folder


class Node:
    """A node whose daemon gives way to a container."""

    def __init__(self, cluster: Cluster, image: Path, binary: Path, folder: Path) -> None:
        self._image, self._binary = image, binary
        self.netns = cluster.daemons[NODE].site.netns
        self._account = folder / "account"
        self._account.mkdir()
        (self._account / "token").write_text(cluster.plane.service_account_token(*ACCOUNT))
        shutil.copy(cluster.plane.ca_certificate, self._account / "ca.crt")
        self._config = folder / "config"
        self._config.mkdir()
        self.folders = {"config": self._config}
        self._environment = {"NODE_NAME": NODE, "API_SERVER": f"https://{cluster.world.lan.ipv4}:6443"}

    def forget_server(self) -> None:
        """The ConfigMap names no API server; a pod has the Service's address. Here it is one that nobody has."""
        self._environment |= {
            "API_SERVER": "",
            "KUBERNETES_SERVICE_HOST": "10.96.255.254",
            "KUBERNETES_SERVICE_PORT": "443",
        }

    def container(self, name: str, folder: str = "overlays/kind", **rights: Any) -> Container:  # noqa: ANN401  # any right
        """The first container of the folder's DaemonSet, with these rights in place of its own."""
        return self.part(name, folder, **rights)

    def part(self, name: str, folder: str, daemon_set: str = "", part: str = "", **rights: Any) -> Container:  # noqa: ANN401  # any right
        """The same of one of several DaemonSets, and the container of that name."""
        objects = kustomize(self._binary, DEPLOY / folder)
        pods = {
            one["metadata"]["name"]: one["spec"]["template"]["spec"] for one in objects if one["kind"] == "DaemonSet"
        }
        pod = pods[daemon_set or min(pods)]
        containers = [*pod.get("initContainers", ()), *pod["containers"]]
        container = next(one for one in containers if part in {"", one["name"]})
        container["securityContext"] |= rights
        for one in objects:
            if one["kind"] == "ConfigMap":
                (self._config / "config.conf").write_text(one["data"]["config.conf"])
        given = Given(self.netns, self._environment, self.folders, self._account)
        return Container(name, self._image, oci_config(pod, container, ["/usr/local/bin/closeby"], given))


@pytest.fixture
def node(cluster: Cluster, image: Path, kube_binary: Path, tmp_path: Path) -> Iterator[Node]:
    cluster.daemons[NODE].stop()
    yield Node(cluster, image, kube_binary, tmp_path)
    cluster.daemons[NODE].start()
    cluster.daemons[NODE].await_ready()


def await_ready(cluster: Cluster, container: Container) -> None:
    def is_ready() -> bool:
        assert container.exit_code is None, container.log_file.read_text()
        return cluster.daemons[NODE].http(HEALTHZ_PORT, "/readyz")[0] == 200

    wait_for(is_ready, "the container is ready", timeout_s=120)


def test_the_daemon_sets_rights_are_all_that_it_takes(cluster: Cluster, space: Space, node: Node) -> None:
    with node.container("rights") as container:
        await_ready(cluster, container)
        pods = space.add_pods("web", ["south-1"])
        stored = space.add_service("web", type="NodePort")
        web, dns = target(stored), target(stored, "udp")
        cluster.await_served(web, {CLIENT: {"south-1"}})
        cluster.await_served(dns, {CLIENT: {"south-1"}})

        space.set_ready(pods[0], ready=False)  # its UDP flows are deleted from conntrack
        said = container.exec("/usr/local/bin/closeby", "explain", f"{space.name}/web")
        container.exec("/usr/local/bin/closeby", "verify")  # exit code 0: the kernel has what it should
        removed = container.exec("/usr/local/bin/closeby", "cleanup", "--kube-proxy")
        events = container.events()
        code = container.stop(60)

    assert "south-1" in said
    assert removed == "kube-proxy left nothing here.\n"
    assert code == 0
    refused = [event for event in events if event["level"] in {"warning", "error"}]
    assert not [event for event in refused if event["event"] != "sysctl_not_set"], refused
    assert {event["sysctl"] for event in events if event["event"] == "sysctl_set"} <= {
        "nf_conntrack_tcp_timeout_established",
        "nf_conntrack_tcp_timeout_close_wait",
    }
    assert "conntrack_unavailable" not in {event["event"] for event in events}


@pytest.mark.parametrize(
    ("rights", "words"),
    [
        pytest.param({"capabilities": {"drop": ["ALL"]}}, "CAP_NET_ADMIN", id="no capability"),
    ],
)
def test_without_its_one_right_it_says_so_and_ends(node: Node, rights: dict[str, Any], words: str) -> None:
    with node.container("poor", **rights) as container:
        wait_for(lambda: container.exit_code is not None, "it ends", timeout_s=120)

        assert container.exit_code == 1
        assert words in container.log_file.read_text()


def test_where_the_servers_address_is_missing_it_says_once_what_to_set(node: Node) -> None:
    node.forget_server()

    with node.container("lost") as container:
        told = wait_for(
            lambda: [event for event in container.events() if event["event"] == "api_server_unreachable"],
            "it says so",
            timeout_s=120,
        )

        assert [event["server"] for event in told] == ["https://10.96.255.254:443"]
        assert "set --master" in told[0]["advice"]
        assert container.exit_code is None


def test_root_needs_no_more_and_no_less(cluster: Cluster, node: Node) -> None:
    with node.container("root", runAsUser=0, runAsGroup=0) as container:
        await_ready(cluster, container)


def test_the_cleanup_takes_the_tables_away_with_the_same_rights(node: Node) -> None:
    assert all(table in list_rules(node.netns) for table in TABLES)

    with node.container("cleanup", "cleanup") as container:
        wait_for(lambda: container.exit_code is not None, "it ends", timeout_s=120)

    assert container.exit_code == 0, container.log_file.read_text()
    assert not [table for table in TABLES if table in list_rules(node.netns)]


def can_be_watched(cluster: Cluster, path: str) -> bool:
    """Not right after the resource is asked for first: lists are answered then, watches refused with 429."""
    try:
        cluster.api.text(f"{path}?watch=true&timeoutSeconds=1")
    except ApiError:
        return False
    return True


def test_the_controllers_deployment_takes_no_right_of_its_node(
    cluster: Cluster, space: Space, image: Path, kube_binary: Path, tmp_path: Path
) -> None:
    install(cluster.plane, tmp_path)
    cluster.plane.kubectl("apply", "-f", str(DEPLOY / "crds/closeby/servicel2statuses.yaml"))
    for resource in list_resources(NAMESPACE):
        if resource.path.startswith("/apis/"):
            wait_for(lambda: can_be_watched(cluster, resource.path), f"storage for {resource.kind}", timeout_s=120)  # noqa: B023  # in its round
    shop = Shop(cluster.api, space.name)
    shop.pool("first", "192.0.2.112/30")
    account = tmp_path / "account"
    account.mkdir()
    (account / "token").write_text(cluster.plane.service_account_token(NAMESPACE, CONTROLLER))
    shutil.copy(cluster.plane.ca_certificate, account / "ca.crt")
    objects = kustomize(kube_binary, DEPLOY / "controller")
    pod = next(one for one in objects if one["kind"] == "Deployment")["spec"]["template"]["spec"]
    server = {"KUBERNETES_SERVICE_HOST": cluster.world.lan.ipv4, "KUBERNETES_SERVICE_PORT": "6443"}
    given = Given(cluster.daemons[NODE].site.netns, server, {}, account)
    config = oci_config(pod, pod["containers"][0], ["/usr/local/bin/closeby"], given)

    with Container("controller", image, config) as container:
        shop.service("web")
        shop.await_ips("web", "192.0.2.112")
        code = container.stop(60)

    assert code == 0
    assert [event for event in container.events() if event["level"] != "info"] == []
    shop.close()


@pytest.fixture
def sockets(node: Node, tmp_path: Path) -> Path:
    """The folder that the proxy and the announcer share, as a kubelet makes it, and the announcers' key."""
    keys = tmp_path / "keys"
    keys.mkdir()
    (keys / "1").write_text("a key of the tests, long enough")
    folder = tmp_path / "sockets"
    folder.mkdir(mode=0o755)
    tmp_path.parent.chmod(0o755)  # pytest's is root's alone, and who runs in the container is nobody
    tmp_path.chmod(0o755)
    node.folders |= {"keys": keys, "sockets": folder, "announcer": folder}
    return folder


def test_the_announcer_answers_with_no_right_but_packets_and_an_update_moves_nothing(
    cluster: Cluster, space: Space, node: Node, sockets: Path
) -> None:
    for name in ("closeby", "closeby-announcer"):
        with node.part(f"folder-of-{name}", WITH_ANNOUNCER, name, "sockets") as container:
            wait_for(lambda: container.exit_code is not None, "it ends", timeout_s=120)  # in its round
            assert container.exit_code == 0, container.log_file.read_text()
    assert (sockets.stat().st_mode & 0o777, sockets.stat().st_gid, sockets.stat().st_uid) == (0o770, 65532, 0)

    with ExitStack() as running:
        proxy = running.enter_context(node.part("proxy", WITH_ANNOUNCER, "closeby", "closeby"))
        await_ready(cluster, proxy)
        space.add_pods("web", ["south-1"])
        space.add_service("web", type="LoadBalancer")
        ingress = [{"ip": VIP, "ipMode": "VIP"}]
        cluster.api.patch_status("Service", f"{space.name}/web", {"loadBalancer": {"ingress": ingress}})
        announcers = [node.part(f"announcer-{n}", WITH_ANNOUNCER, "closeby-announcer", "announcer") for n in (1, 2)]
        first = running.enter_context(announcers[0])
        await_announcing(first)
        served = {"outside": {"south-1"}}
        cluster.await_served(Target("tcp", VIP, PORT), served)

        second = running.enter_context(announcers[1])
        await_announcing(second)
        assert first.stop(60) == 0
        cluster.await_served(Target("tcp", VIP, PORT), served)
        said = json.loads(second.exec("/usr/local/bin/closeby", "who-announces", VIP, "-o", "json"))
        assert second.stop(60) == 0

    assert said["vips"][0]["owner"] == NODE
    assert [event for event in first.events() + second.events() if event["level"] in {"warning", "error"}] == []


def test_an_announcer_of_the_overlay_for_short_cores_runs_in_real_time_or_says_why_not(
    node: Node, sockets: Path, tmp_path: Path
) -> None:
    sockets.chmod(0o777)
    folder = tmp_path / "overlay"
    folder.mkdir()
    parts = [os.path.relpath(DEPLOY / part, folder.resolve()) for part in (WITH_ANNOUNCER, REAL_TIME)]
    (folder / "kustomization.yaml").write_text(yaml.safe_dump({"resources": parts[:1], "components": parts[1:]}))

    with node.part("hasty", str(folder), "closeby-announcer", "announcer") as container:
        if REAL_TIME_GROUPS.exists():  # this kernel has budgets for groups, and a container's is nothing
            wait_for(lambda: container.exit_code is not None, "it ends", timeout_s=120)
            assert "--realtime-priority: 10: Operation not permitted" in container.log_file.read_text()
            return
        await_announcing(container)
        ask = "import os; print(os.sched_getscheduler(1), os.sched_getparam(1).sched_priority)"
        said = container.exec("/usr/bin/python3.11", "-I", "-S", "-c", ask)

    assert said.split() == [str(os.SCHED_RR), "10"]


def await_announcing(container: Container) -> None:
    """As the startup probe asks."""
    (probe,) = [
        one["startupProbe"]["exec"]["command"]
        for one in yaml.safe_load(ANNOUNCER.read_text())["spec"]["template"]["spec"]["containers"]
    ]

    def is_ready() -> bool:
        assert container.exit_code is None, container.log_file.read_text()
        try:
            container.exec(*probe)
        except AssertionError:
            return False
        return True

    wait_for(is_ready, "the announcer is ready", timeout_s=120)


@pytest.mark.parametrize(
    ("rights", "code", "words"),
    [
        pytest.param({"capabilities": {"drop": ["ALL"]}}, 1, "CAP_NET_RAW", id="no capability"),
    ],
)
def test_an_announcer_without_its_one_right_says_so_and_ends(
    node: Node, sockets: Path, rights: dict[str, Any], code: int, words: str
) -> None:
    sockets.chmod(0o777)
    with node.part("poor", WITH_ANNOUNCER, "closeby-announcer", "announcer", **rights) as container:
        wait_for(lambda: container.exit_code is not None, "it ends", timeout_s=120)

        assert container.exit_code == code
        assert words in container.log_file.read_text()
