"""What of a Snapshot there is to announce, and the table that an announcer makes of it."""

from msgspec.structs import replace

from endpointslice.snapshot import EMPTY, Snapshot
from endpointslice.types import (
    IP,
    Family,
    Node,
    NodeName,
    Service,
    ServiceName,
    Slice,
    SliceEndpoint,
    SliceName,
    TrafficDistribution,
    TrafficPolicy,
)
from proxy.announcer.served import list_served, make_table, used_wires
from proxy.l2.candidates import Demand, Options, Why
from proxy.l2.types import Channel, Key, Tier

N1, N2, N3 = NodeName("n1"), NodeName("n2"), NodeName("n3")
VIP, OTHER = IP("192.0.2.10"), IP("198.51.100.10")
WEB = Service(ServiceName("default/web"), (IP("10.96.0.1"),), (), load_balancer_ips=(VIP,))
LOCAL = TrafficPolicy.LOCAL
LAN = Channel("192.0.2.0/24")


def endpoint(last: int, node: str | None, *, ready: bool = True, draining: bool = False) -> SliceEndpoint:
    name = NodeName(node) if node is not None else None
    return SliceEndpoint(IP(f"10.244.0.{last}"), ready and not draining, ready or draining, draining, name)


def snapshot(*services: Service, endpoints: tuple[SliceEndpoint, ...] = (), node: Node | None = None) -> Snapshot:
    slices = {
        service.name: {
            SliceName(f"{service.name}-x"): Slice(
                SliceName(f"{service.name}-x"), service.name, Family.IPV4, (), endpoints
            )
        }
        for service in services
    }
    nodes = {node.name: node} if node is not None else {}
    return replace(EMPTY, services={service.name: service for service in services}, slices=slices, nodes=nodes)


def test_endpoints_are_counted_by_node() -> None:
    world = snapshot(
        WEB,
        endpoints=(
            endpoint(1, "n1"),
            endpoint(2, "n1"),
            endpoint(3, "n2", draining=True),
            endpoint(4, "n3", ready=False),
            endpoint(5, None),
        ),
    )

    assert list_served(world, N1)[VIP].demand == Demand(ready={N1: 2}, draining=frozenset({N2}), elsewhere=True)


def test_a_service_without_a_load_balancer_address_is_nobodys_business() -> None:
    assert not list_served(snapshot(replace(WEB, load_balancer_ips=())), N1)


def test_policies_are_told() -> None:
    close = replace(WEB, external_traffic_policy=LOCAL, traffic_distribution=TrafficDistribution.PREFER_CLOSE)

    demand = list_served(snapshot(close), N1)[VIP].demand

    assert (demand.local, demand.prefer_close) == (True, True)


def test_nodes_that_a_service_asks_for_are_told() -> None:
    asking = replace(WEB, announce_on=frozenset({N2}), prefer_nodes=((N2, 50),))

    served = list_served(snapshot(asking, endpoints=(endpoint(1, "n1"),)), N1)
    vip = make_table(served.values(), [LAN], [N2], Options()).vips[Key(VIP, LAN)]

    assert vip.mine.why is Why.PINNED_ELSEWHERE
    assert [(other.why, other.preference) for other in vip.others] == [(Why.ELIGIBLE, 50)]


def test_two_services_at_one_address_need_a_node_that_serves_both_under_policy_local() -> None:
    web, dns = (
        replace(WEB, name=ServiceName(f"default/{name}"), external_traffic_policy=LOCAL) for name in ("web", "dns")
    )
    one = snapshot(web, endpoints=(endpoint(1, "n1"), endpoint(2, "n2")))
    two = snapshot(dns, endpoints=(endpoint(3, "n2"), endpoint(4, "n3")))
    both = replace(one, services={**one.services, **two.services}, slices={**one.slices, **two.slices})

    assert list_served(both, N1)[VIP].demand.ready == {N2: 2}


def test_a_node_that_is_not_ready_says_so() -> None:
    served = list_served(snapshot(WEB, endpoints=(endpoint(1, "n2"),), node=Node(N1, ready=False)), N1)

    table = make_table(served.values(), [LAN], [], Options())

    assert table.vips[Key(VIP, LAN)].mine.why is Why.NOT_READY


def test_members_and_nodes_with_endpoints_are_candidates() -> None:
    served = list_served(snapshot(WEB, endpoints=(endpoint(1, "n2"),)), N1)

    vip = make_table(served.values(), [LAN], [N1, N3], Options()).vips[Key(VIP, LAN)]

    assert (vip.mine.node, vip.mine.why, vip.mine.tier) == (N1, Why.ELIGIBLE, Tier.NONE)
    assert [(other.node, other.tier) for other in vip.others] == [(N2, Tier.READY), (N3, Tier.NONE)]


def test_an_address_in_no_subnet_of_ours_is_left_out() -> None:
    served = list_served(snapshot(replace(WEB, load_balancer_ips=(OTHER,)), endpoints=(endpoint(1, "n1"),)), N1)

    assert not make_table(served.values(), [LAN], [], Options()).vips
    assert not used_wires(served.values(), [LAN])
