"""Packets in the detect modes that tell pods by the interface where they came in."""

from collections.abc import Iterator

import pytest

from e2e.world.clients import Outcome, Target, probe
from e2e.world.cluster import World
from e2e.world.hosts import NodeSpec, PodSpec
from e2e.world.netns import run_in, run_ip
from endpointslice.types import IP, Family
from proxy.kernel.netlink import NftKernel
from proxy.kernel.ruleset import SetId, SetName
from proxy.planner.keys import pack_interfaces
from tests.netns.north import BOTH, LOCAL, VIPS, Elements, plan_north, vip

pytestmark = pytest.mark.netns

NODE = "north-1"


@pytest.fixture
def world() -> Iterator[World]:
    """Pods' devices on a node are called pod-N here."""
    with World("detect", (NodeSpec(NODE, "north"), NodeSpec("south-1", "south"))) as built:
        built.add_pods([PodSpec("web-n", NODE), PodSpec("web-s", "south-1"), PodSpec("client-s", "south-1", ())])
        built.add_pods([PodSpec("client-n", NODE, ())])
        built.route_outside(["10.96.0.0/16", "fd00:96::/32"], NODE)
        yield built


def by_interface(world: World, pattern: str) -> Elements:
    """What the usual elements become in such a mode."""
    elements = plan_north(world)
    for family in Family:
        elements[SetId(family, SetName.LOCAL_PODS)] = {}
        elements[SetId(family, SetName.CLUSTER_IP_SOURCES)] = {}
        for name in (SetName.LOCAL_INTERFACES, SetName.CLUSTER_IP_INTERFACES):
            elements[SetId(family, name)] = {pack_interfaces(pattern): b""}
    return elements


def install(world: World, elements: Elements) -> None:
    with run_in(world.host(NODE).netns, NftKernel) as kernel:
        kernel.install(elements)


def seen(world: World, client: str, frontend: str, family: Family) -> dict[str, str]:
    """The source that each server sees of one client's connections."""
    (tally,) = probe(world, {client: [Target("tcp", vip(*VIPS[frontend], family), 80, 24)]})[client]
    assert set(tally.outcomes) == {Outcome.ANSWERED}
    return dict(tally.seen.keys())


def own(world: World, client: str, family: Family) -> str:
    host = world.outside if client == "outside" else world.host(client)
    return host.ipv4 if family is Family.IPV4 else host.ipv6


@pytest.mark.parametrize("family", Family)
def test_pods_are_told_by_their_devices_names(world: World, family: Family) -> None:
    install(world, by_interface(world, "pod-*"))

    pod = own(world, "client-n", family)
    outside = own(world, "outside", family)
    assert seen(world, "client-n", "cluster IP", family) == dict.fromkeys(BOTH, pod)  # no masquerading
    assert outside not in seen(world, "outside", "cluster IP", family).values()
    assert seen(world, NODE, "cluster IP", family)["web-s"] == own(world, NODE, family)
    # The short circuit of a frontend with the Local policy: pods and the host reach every endpoint, others those here.
    assert seen(world, "client-n", "external, Local", family) == dict.fromkeys(BOTH, pod)
    assert seen(world, "outside", "external, Local", family) == dict.fromkeys(LOCAL, outside)
    assert set(seen(world, NODE, "external, Local", family)) == BOTH


def test_a_device_that_comes_later_is_a_pods_too_and_one_of_another_name_is_not(world: World) -> None:
    install(world, by_interface(world, "pod-*"))
    world.add_pods([PodSpec("late", NODE, ())])

    assert seen(world, "late", "external, Local", Family.IPV4) == dict.fromkeys(BOTH, own(world, "late", Family.IPV4))

    install(world, by_interface(world, "pod"))  # exactly so
    assert set(seen(world, "late", "external, Local", Family.IPV4)) == LOCAL


@pytest.mark.parametrize("family", Family)
def test_pods_are_told_by_their_bridge(world: World, family: Family) -> None:
    install(world, by_interface(world, "cni0"))
    before = set(seen(world, "client-n", "external, Local", family))

    node, pod = world.nodes[NODE], world.pods["client-n"]
    link = f"pod-{pod.number}"
    lines = ["link add cni0 type bridge mcast_snooping 0", "link set cni0 up", f"link set {link} master cni0"]
    for gateway, ip, size in zip(node.gateways, (pod.host.ipv4, pod.host.ipv6), (32, 128), strict=True):
        nodad = " nodad" if size == 128 else ""
        lines += [f"address del {gateway}/{size} dev {link}", f"address add {gateway}/{size} dev cni0{nodad}"]
        lines.append(f"route replace {ip}/{size} dev cni0")
    run_ip({node.host.netns: lines})

    assert before == LOCAL
    assert set(seen(world, "client-n", "external, Local", family)) == BOTH
    assert set(seen(world, "client-n", "cluster IP", family).values()) == {own(world, "client-n", family)}


def test_masquerade_all_hides_pods_that_an_interface_tells(world: World) -> None:
    elements = by_interface(world, "pod-*")
    elements[SetId(Family.IPV4, SetName.CLUSTER_IP_INTERFACES)] = {}
    install(world, elements)

    sources = seen(world, "client-n", "cluster IP", Family.IPV4)

    assert IP(own(world, "client-n", Family.IPV4)) not in sources.values()
