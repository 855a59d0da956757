"""As an administrator I restart the controller, run two, lose the API server: no address moves or is given twice."""

import copy
import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from e2e.addresses import NAMESPACE, ControllerProcess, Shop, install
from e2e.controlplane.api import Object
from e2e.controlplane.cluster import ControlPlane
from e2e.controlplane.settings import Settings
from e2e.controlplane.waiting import wait_for

pytestmark = pytest.mark.e2e

Start = Callable[..., ControllerProcess]
_SHOPS = itertools.count(1)


@pytest.fixture(scope="module")
def own_plane(kube_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """One of our own: a story stops it."""
    with ControlPlane(
        kube_binary, tmp_path_factory.mktemp("plane"), Settings(controllers=("namespace-controller",))
    ) as it:
        yield it


@pytest.fixture(scope="module")
def kubeconfig(own_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(own_plane, tmp_path_factory.mktemp("controller"))


@pytest.fixture
def start(kubeconfig: Path, tmp_path: Path) -> Iterator[Start]:
    """Starts a replica; all end with the story."""
    started: list[ControllerProcess] = []

    def start(name: str) -> ControllerProcess:
        started.append(ControllerProcess(name, kubeconfig, tmp_path))
        return started[-1]

    yield start
    for one in started:
        one.terminate()
        assert "Traceback" not in one.log()


@pytest.fixture
def shop(own_plane: ControlPlane) -> Iterator[Shop]:
    made = Shop(own_plane.api, f"replica-{next(_SHOPS)}")
    yield made
    made.close()


def fill(shop: Shop, count: int) -> dict[str, list[str]]:
    """Services, newest name first, and the addresses that they get."""
    names = [f"s{n}" for n in range(count)]
    for name in reversed(names):
        shop.service(name)
    wait_for(lambda: all(shop.ips(name) for name in names), "everybody has an address")
    held = {name: shop.ips(name) for name in names}
    assert len({ip for ips in held.values() for ip in ips}) == count
    return held


def test_a_restart_keeps_every_address_and_writes_nothing(shop: Shop, start: Start) -> None:
    shop.pool("first", "203.0.113.0/27")
    first = start("first")
    held = fill(shop, 12)
    versions = {name: shop.api.get("Service", f"{shop.name}/{name}")["metadata"]["resourceVersion"] for name in held}
    assert first.terminate() == 0

    second = start("second")
    wait_for(second.leads, "it leads")
    shop.service("new")
    wait_for(lambda: shop.ips("new"), "a new Service has an address")

    assert {name: shop.ips(name) for name in held} == held
    assert shop.ips("new")[0] not in {ip for ips in held.values() for ip in ips}
    now = {name: shop.api.get("Service", f"{shop.name}/{name}")["metadata"]["resourceVersion"] for name in held}
    assert now == versions


def test_one_of_two_is_active_and_the_other_takes_over(shop: Shop, start: Start, own_plane: ControlPlane) -> None:
    shop.pool("first", "203.0.113.0/27")
    one = start("one")
    wait_for(one.leads, "the first leads")
    two = start("two")
    held = fill(shop, 4)
    assert not two.leads()
    assert two.events("answered") == []

    one.kill()  # the Lease stays as it is until its time is up
    wait_for(two.leads, "the second took over")
    shop.service("new")
    wait_for(lambda: shop.ips("new"), "it gives addresses")

    assert {name: shop.ips(name) for name in held} == held
    lease = own_plane.api.get("Lease", f"{NAMESPACE}/closeby-controller")["spec"]
    assert lease["holderIdentity"] == two.events("leading")[0]["identity"]
    three = start("three")
    assert two.terminate() == 0  # gives the Lease back
    wait_for(three.leads, "and so on")


def test_an_outage_of_the_api_server_changes_nothing(shop: Shop, start: Start, own_plane: ControlPlane) -> None:
    shop.pool("first", "203.0.113.0/27")
    one = start("one")
    held = fill(shop, 3)

    own_plane.stop_apiserver()
    wait_for(lambda: not one.leads(), "it knows that it may be replaced")
    own_plane.start_apiserver()
    wait_for(one.leads, "it leads again")
    shop.service("new")
    wait_for(lambda: shop.ips("new"), "it gives addresses")

    assert {name: shop.ips(name) for name in held} == held


def test_without_rights_it_says_what_it_lacks_and_goes_on_once_it_has_them(
    shop: Shop, start: Start, own_plane: ControlPlane
) -> None:
    shop.pool("first", "203.0.113.0/27")
    binding = own_plane.api.get("ClusterRoleBinding", "closeby:controller")
    own_plane.api.delete("ClusterRoleBinding", "closeby:controller")
    try:
        wait_for(
            lambda: not may_list_services(own_plane, binding["subjects"][0]), "the server has forgotten its rights"
        )
        one = start("one")
        wait_for(
            lambda: any("services is forbidden" in line["error"] for line in one.events("watch_lost")),
            "it tells of Services",
        )
    finally:
        own_plane.api.apply(
            {key: binding[key] for key in ("apiVersion", "kind", "roleRef", "subjects")}
            | {"metadata": {"name": "closeby:controller"}}
        )
    shop.service("web")

    wait_for(lambda: shop.ips("web"), "the Service has an address")


def may_list_services(plane: ControlPlane, account: Object) -> bool:
    """As the server's authorizer knows by now."""
    what = {"verb": "list", "resource": "services"}
    who = f"system:serviceaccount:{account['namespace']}:{account['name']}"
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": who, "resourceAttributes": what},
    }
    answer = plane.api.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    return bool(answer["status"]["allowed"])


@pytest.fixture
def plain_definition(own_plane: ControlPlane) -> Iterator[None]:
    """As MetalLB's own: a pool's status has no conditions."""
    name = "ipaddresspools.metallb.io"
    versions = own_plane.api.get("CustomResourceDefinition", name)["spec"]["versions"]
    plain = copy.deepcopy(versions)
    del plain[0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]["conditions"]
    own_plane.api.patch("CustomResourceDefinition", name, {"spec": {"versions": plain}})
    yield
    own_plane.api.patch("CustomResourceDefinition", name, {"spec": {"versions": versions}})


@pytest.mark.usefixtures("plain_definition")
def test_metallbs_own_definition_is_enough_and_its_status_is_not_written_again_and_again(
    shop: Shop, start: Start
) -> None:
    shop.pool("first", "203.0.113.0/27")
    one = start("one")
    fill(shop, 2)
    wait_for(lambda: shop.pool_object("first").get("status", {}).get("assignedIPv4") == 2, "the pool counts them")
    shop.service("last")
    wait_for(lambda: shop.pool_object("first")["status"]["assignedIPv4"] == 3, "and this one")

    def is_silent() -> bool:
        written = len(one.events("answered"))  # a line comes after what it tells of, so one may be on its way
        time.sleep(3)  # what would be written again would be so at once
        return len(one.events("answered")) == written

    wait_for(is_silent, "it writes no more")
    assert "conditions" not in shop.pool_object("first")["status"]
    assert one.events("write_failed") == []
