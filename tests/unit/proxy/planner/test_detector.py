"""What tells pods from others, by mode."""

import msgspec
import pytest

from endpointslice.snapshot import EMPTY, Changed, Listed, apply_events
from endpointslice.types import CIDR, IP, Family, Kind, Node, NodeName
from proxy.kernel.ruleset import SetId, SetName
from proxy.planner.detector import Detector, choose_detector, waits_for_pod_cidrs
from proxy.planner.keys import pack_range
from proxy.planner.plan import Client
from proxy.planner.planner import Moment, Planner, plan_all
from proxy.planner.settings import Detect, Settings
from tests.builders import a_slice, service, slice_endpoint

N1 = NodeName("n1")
CLUSTER = (CIDR("10.244.0.0/16"), CIDR("fd00:10:244::/56"))
OWN = (CIDR("10.244.1.0/24"), CIDR("fd00:10:244:1::/64"))
NODE = Node(N1, pod_cidrs=OWN)
BY_NODE = Settings(N1, CLUSTER, detect=Detect.NODE_CIDR)
AT_ONCE = Moment({}, frozenset(), 0.0)


@pytest.mark.parametrize(
    ("settings", "node", "detector"),
    [
        pytest.param(Settings(N1, CLUSTER), NODE, Detector(CLUSTER), id="ClusterCIDR: the flag's networks"),
        pytest.param(Settings(N1), NODE, Detector(), id="ClusterCIDR: none given"),
        pytest.param(BY_NODE, NODE, Detector(OWN), id="NodeCIDR: the Node's, not the flag's"),
        pytest.param(BY_NODE, Node(N1), Detector(), id="NodeCIDR: the Node has none yet"),
        pytest.param(BY_NODE, None, Detector(), id="NodeCIDR: no Node"),
        pytest.param(
            Settings(N1, detect=Detect.BRIDGE_INTERFACE, interface="cni0"),
            NODE,
            Detector(interfaces=("cni0",)),
            id="BridgeInterface",
        ),
        pytest.param(
            Settings(N1, detect=Detect.INTERFACE_NAME_PREFIX, interface="veth"),
            NODE,
            Detector(interfaces=("veth*",)),
            id="InterfaceNamePrefix",
        ),
    ],
)
def test_the_detector_by_mode(settings: Settings, node: Node | None, detector: Detector) -> None:
    assert choose_detector(settings, node) == detector


@pytest.mark.parametrize(
    ("detector", "families"),
    [
        pytest.param(Detector(), set(), id="nothing tells"),
        pytest.param(Detector((CIDR("10.244.0.0/16"),)), {Family.IPV4}, id="one family's network"),
        pytest.param(Detector(CLUSTER), set(Family), id="both families'"),
        pytest.param(Detector(interfaces=("cni0",)), set(Family), id="an interface tells in both"),
    ],
)
def test_in_which_families_pods_are_told(detector: Detector, families: set[Family]) -> None:
    assert detector.families == families


@pytest.mark.parametrize(
    ("settings", "node", "waits"),
    [
        pytest.param(BY_NODE, Node(N1), True, id="NodeCIDR without podCIDRs"),
        pytest.param(BY_NODE, NODE, False, id="NodeCIDR with them"),
        pytest.param(Settings(N1), Node(N1), False, id="another mode"),
    ],
)
def test_what_waits_for_pod_cidrs(settings: Settings, node: Node, waits: object) -> None:
    snapshot, _ = apply_events(EMPTY, [Changed(Kind.NODE, "n1", node)])

    assert waits_for_pod_cidrs(settings, snapshot) is waits


def test_pod_cidrs_that_come_plan_everything_anew_and_those_that_go_stay() -> None:
    planner = Planner(BY_NODE)
    pods = SetId(Family.IPV4, SetName.LOCAL_PODS)
    snapshot, touched = apply_events(
        EMPTY, [Changed(Kind.NODE, "n1", Node(N1)), Changed(Kind.SERVICE, "default/web", service())]
    )
    planner.update(snapshot, touched, AT_ONCE)
    before = dict(planner.desired.elements[pods])

    snapshot, touched = apply_events(snapshot, [Changed(Kind.NODE, "n1", NODE)])
    planner.update(snapshot, touched, AT_ONCE)
    with_cidrs = dict(planner.desired.elements[pods])
    snapshot, touched = apply_events(snapshot, [Listed(Kind.NODE, ())])
    planner.update(snapshot, touched, AT_ONCE)

    assert (before, with_cidrs) == ({}, {pack_range(OWN[0]): b""})
    assert planner.desired.elements[pods] == with_cidrs


def test_a_family_without_a_network_keeps_every_source() -> None:
    settings = Settings(N1, (CIDR("10.244.0.0/16"),))
    six = msgspec.structs.replace(a_slice([slice_endpoint("fd00::1")], "default/web-6"), family=Family.IPV6)
    both = service(cluster_ips=(IP("10.96.0.10"), IP("fd00:96::10")))
    objects = [Changed(Kind.SERVICE, "default/web", both), Changed(Kind.ENDPOINT_SLICE, "default/web-6", six)]
    objects.append(Changed(Kind.ENDPOINT_SLICE, "default/web-1", a_slice([slice_endpoint()])))
    snapshot, _ = apply_events(EMPTY, objects)

    (plan,) = plan_all(snapshot, settings)

    clients = {port.family: [answer.client for answer in port.frontends[0].answers] for port in plan.ports}
    assert clients == {Family.IPV4: [Client.OUTSIDE, Client.THIS_NODE], Family.IPV6: [Client.ANY]}
