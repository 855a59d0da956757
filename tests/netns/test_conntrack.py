"""UDP flows and what becomes of them when Services change, with packets through the real table.

The pods that leave a Service go on serving here: a flow that is left alone would be answered by them.
"""

import subprocess
from collections.abc import Iterator

import pytest

from e2e.cluster.kernel import nft
from e2e.world.cluster import World
from e2e.world.hosts import NodeSpec, PodSpec
from e2e.world.netns import run_in
from endpointslice.types import Family, Kind, TrafficPolicy
from proxy.kernel.netlink import NftKernel
from tests.netns.flows_world import (
    CLUSTER_IPS,
    NO_ANSWER_S,
    NODE,
    Clients,
    Proxy,
    Talk,
    dns_service,
    dns_slices,
    running,
)
from tests.waiting import until

pytestmark = pytest.mark.netns

PODS = (
    PodSpec("first", "north-1"),
    PodSpec("second", "north-1"),
    PodSpec("far", "south-1"),
    PodSpec("client", "north-1", ()),
)
CLUSTER_IP = CLUSTER_IPS[Family.IPV4]
SLICES = ((Kind.ENDPOINT_SLICE, "default/dns-4"), (Kind.ENDPOINT_SLICE, "default/dns-6"))


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with World("conntrack", (NodeSpec("north-1", "north"), NodeSpec("south-1", "south"))) as built:
        built.add_pods(PODS)
        yield built


@pytest.fixture
def proxy(world: World) -> Iterator[Proxy]:
    with running(world) as one:
        yield one
    with run_in(world.host(NODE).netns, NftKernel) as kernel:
        kernel.remove()


@pytest.fixture
def clients(world: World) -> Iterator[Clients]:
    some = Clients(world)
    with some.opened:
        yield some


@pytest.mark.parametrize("family", Family)
def test_a_flow_follows_when_its_endpoint_leaves(world: World, proxy: Proxy, clients: Clients, family: Family) -> None:
    proxy.list_all(dns_service(), *dns_slices(world, ["first"]))
    talk = clients.talk("client", CLUSTER_IPS[family], 53)
    assert talk.ask() == "first"

    proxy.put(*dns_slices(world, ["second"]))

    talk.until_answered_by("second")


def test_a_flow_through_a_node_port_follows_too(world: World, proxy: Proxy, clients: Clients) -> None:
    proxy.list_all(dns_service(), *dns_slices(world, ["first"]))
    talk = clients.talk("outside", world.host(NODE).ipv4, 30053)
    assert talk.ask() == "first"

    proxy.put(*dns_slices(world, ["second"]))

    talk.until_answered_by("second")


def test_a_flow_to_that_port_of_another_host_is_nobodys_business(world: World, proxy: Proxy, clients: Clients) -> None:
    """kube-proxy looks at the port alone."""
    proxy.list_all(dns_service(), *dns_slices(world, ["first"]))
    talk = clients.talk("client", world.host("outside").ipv4, 30053)
    talk.ask(NO_ANSWER_S)
    assert clients.is_tracked(talk.port)

    proxy.put(*dns_slices(world, ["second"]))

    assert clients.is_tracked(talk.port)


def test_a_flow_goes_with_the_last_endpoint(world: World, proxy: Proxy, clients: Clients) -> None:
    """Report 139628: one-way flows stayed for 13 hours."""
    proxy.list_all(dns_service(), *dns_slices(world, ["first"]))
    talk = clients.talk("client", CLUSTER_IP, 53)
    assert talk.ask() == "first"

    proxy.delete(*SLICES)

    assert talk.ask(NO_ANSWER_S) == ""
    assert not clients.is_tracked(talk.port)


def test_a_flow_goes_with_its_service(world: World, proxy: Proxy, clients: Clients) -> None:
    """Report 141371: it went on to whoever had the pod's address."""
    proxy.list_all(dns_service(), *dns_slices(world, ["first"]))
    talk = clients.talk("client", CLUSTER_IP, 53)
    assert talk.ask() == "first"

    proxy.delete((Kind.SERVICE, "default/dns"), *SLICES)

    assert talk.ask(NO_ANSWER_S) == ""


def test_a_flow_goes_with_its_port(world: World, proxy: Proxy, clients: Clients) -> None:
    proxy.list_all(dns_service(), *dns_slices(world, ["first"]))
    talk = clients.talk("client", CLUSTER_IP, 53)
    assert talk.ask() == "first"

    proxy.put(dns_service(ports=dns_service().ports[1:]))

    assert talk.ask(NO_ANSWER_S) == ""


def test_a_flow_from_before_the_service_finds_its_first_endpoint(world: World, proxy: Proxy, clients: Clients) -> None:
    proxy.list_all()
    talk = clients.talk("client", CLUSTER_IP, 53)
    assert talk.ask(NO_ANSWER_S) == ""
    assert clients.is_tracked(talk.port)  # a black hole: tracked, and never translated

    proxy.put(dns_service(), *dns_slices(world, ["first"]))

    talk.until_answered_by("first")


def test_a_flow_to_an_endpoint_that_came_while_flows_were_looked_at_stays(
    world: World, proxy: Proxy, clients: Clients
) -> None:
    proxy.list_all(dns_service(), *dns_slices(world, ["first"]))
    met: list[tuple[Talk, str]] = []

    def come() -> None:
        if not met:
            proxy.change(*dns_slices(world, ["second"]))
            talk = clients.talk("client", CLUSTER_IP, 53)
            met.append((talk, talk.ask()))

    proxy.before_sweep = come
    before = len(proxy.swept)
    proxy.change(*dns_slices(world, ["first", "far"]))
    until(lambda: len(proxy.swept) >= before + 4)  # the look at what "far" changed, and at what "second" did

    ((talk, answer),) = met
    assert answer == "second"
    assert clients.is_tracked(talk.port), "an answer that is on its way would be lost"


def test_a_flow_stays_whatever_policies_say(world: World, proxy: Proxy, clients: Clients) -> None:
    """Report 126934: flows were cut that were still right."""
    proxy.list_all(dns_service(), *dns_slices(world, ["far"]))
    talk = clients.talk("client", CLUSTER_IP, 53)
    assert talk.ask() == "far"

    proxy.put(
        dns_service(internal_traffic_policy=TrafficPolicy.LOCAL, external_traffic_policy=TrafficPolicy.LOCAL),
        *dns_slices(world, ["far", "first"]),
    )

    assert [talk.ask() for _ in range(5)] == ["far"] * 5
    assert clients.talk("client", CLUSTER_IP, 53).ask() == "first"


def test_a_tcp_connection_is_left_alone(world: World, proxy: Proxy, clients: Clients) -> None:
    proxy.list_all(dns_service(), *dns_slices(world, ["first"]))
    visit = clients.visit("client", CLUSTER_IP, 80)
    talk = clients.talk("client", CLUSTER_IP, 53)
    assert (visit.ask(), talk.ask()) == ("first", "first")

    proxy.put(*dns_slices(world, ["second"]))
    talk.until_answered_by("second")

    assert visit.ask() == "first"


@pytest.mark.parametrize("client", ["client", "outside", NODE])
def test_a_source_port_that_met_no_proxy_works_as_soon_as_there_is_one(
    world: World, clients: Clients, client: str
) -> None:
    """The kernel would take the new connection for the old one, which nobody translated, for two minutes."""
    hooks = ("prerouting", "output")  # somebody must ask for connections, or the kernel tracks none
    chains = [f"chain {hook} {{ type filter hook {hook} priority 0; ct state new accept; }}" for hook in hooks]
    nft(world.host(NODE).netns, f"table ip other {{ {'; '.join(chains)}; }}")
    world.route_outside([CLUSTER_IP], NODE)
    port, web = 40404, (CLUSTER_IP, 80)
    assert clients.try_from(client, port, web, 0.2) is None
    assert clients.is_tracked(port, "tcp")

    with running(world) as proxy:
        proxy.list_all(dns_service(), *dns_slices(world, ["first"]))

        visit = clients.try_from(client, port, web, 60.0)
        assert visit is not None
        assert visit.ask() == "first"
    nft(world.host(NODE).netns, "delete table ip other")
    with run_in(world.host(NODE).netns, NftKernel) as kernel:
        kernel.remove()


def test_a_restart_mends_what_went_wrong_meanwhile_and_cuts_nothing_else(world: World, clients: Clients) -> None:
    """Reports 122740, 125467 and 126130: everything was cut, or what was missed was never repaired."""
    others = {"steady": "10.96.1.21", "moved": "10.96.1.22", "deleted": "10.96.1.23"}
    services = {
        name: dns_service(f"default/{name}", cluster_ips=(ip,), type="ClusterIP", ports=dns_service().ports[:1])
        for name, ip in others.items()
    }
    with running(world) as before:
        slices = [piece for name in others for piece in dns_slices(world, ["first"], f"default/{name}")]
        before.list_all(*services.values(), *slices)
        talks = {name: clients.talk("client", ip, 53) for name, ip in others.items()}
        assert [talk.ask() for talk in talks.values()] == ["first"] * 3

    del services["deleted"]
    with running(world) as after:
        after.list_all(
            *services.values(),
            *dns_slices(world, ["first", "second"], "default/steady"),
            *dns_slices(world, ["second"], "default/moved"),
        )

        talks["moved"].until_answered_by("second")
        assert sum(swept.deleted for swept in after.swept) == 2
        assert [talks["steady"].ask() for _ in range(5)] == ["first"] * 5
        assert talks["deleted"].ask(NO_ANSWER_S) == ""
    with run_in(world.host(NODE).netns, NftKernel) as kernel:
        kernel.remove()


UNPRIVILEGED = """
from endpointslice.types import Family
from proxy.conntrack.coming import Coming
from proxy.conntrack.flows import Judgement
from proxy.conntrack.netlink import FlowTable
from proxy.kernel.change import KernelError
try:
    FlowTable().sweep(Family.IPV4, Judgement({bytes(6): frozenset()}, {}), Coming())
except KernelError as error:
    print(error.reason)
"""


def test_without_privilege_it_is_said_in_words(python: list[str]) -> None:
    """It runs in the caller's namespace, where it may do nothing."""
    done = subprocess.run(
        ["setpriv", "--bounding-set=-all", *python, "-c", UNPRIVILEGED],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout == "not permitted to use conntrack: CAP_NET_ADMIN is needed (run as root)\n", done.stderr
