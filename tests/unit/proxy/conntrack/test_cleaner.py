"""When flows are looked at, and for which Services; time is an argument."""

import msgspec
import pytest
from structlog.testing import capture_logs

from endpointslice.snapshot import EMPTY, Snapshot, Touched
from endpointslice.types import IP, Family, Protocol, Service, ServiceName, ServicePort
from proxy.commits import Commit
from proxy.conntrack.cleaner import AGAIN_S, FULL_S, RETRY_S, Cleaner
from proxy.conntrack.coming import Coming
from proxy.conntrack.flows import Judgement, pack_socket
from proxy.conntrack.netlink import Swept
from proxy.kernel.change import Change, KernelError, MapChange
from proxy.kernel.ruleset import SetId, SetName
from proxy.planner.keys import pack_index, pack_target, pack_vip
from tests.builders import service

LATER_S = 100.0  # long after any rest, and before the next look at everything
DNS = ServicePort("dns", Protocol.UDP, 53)


class KeptFlows:
    """Remembers what it was asked, and answers with what is lined up."""

    def __init__(self) -> None:
        self.asked: list[set[bytes]] = []
        self.coming: list[frozenset[bytes]] = []
        self.fresh: list[frozenset[bytes]] = []
        self.answers: list[Swept | KernelError] = []
        self.closed = 0

    def sweep(self, _family: Family, judgement: Judgement, coming: Coming) -> Swept:
        self.coming.append(coming.sockets)
        self.asked.append({*judgement.keep, *judgement.gone})
        self.fresh.append(judgement.fresh)
        answer = self.answers.pop(0) if self.answers else Swept(0, 0, complete=True)
        if isinstance(answer, KernelError):
            raise answer
        return answer

    def close(self) -> None:
        self.closed += 1


def dns(name: str, ip: str) -> Service:
    return service(name, ports=(DNS,), cluster_ips=(IP(ip),))


def to(ip: str) -> bytes:
    return pack_socket(IP(ip), 53)


ONE, TWO, WEB = dns("default/one", "10.96.0.1"), dns("default/two", "10.96.0.2"), service("default/web")
BOTH = {to("10.96.0.1"), to("10.96.0.2")}


def world(*services: Service) -> Snapshot:
    return msgspec.structs.replace(EMPTY, services={one.name: one for one in services})


def touched(*names: str) -> Touched:
    return Touched(frozenset(map(ServiceName, names)), frozenset(), frozenset(), frozenset(), service_cidrs=False)


@pytest.fixture
def flows() -> KeptFlows:
    return KeptFlows()


@pytest.fixture
def cleaner(flows: KeptFlows) -> Cleaner:
    """One that has seen the first commit, of three Services."""
    started = Cleaner([Family.IPV4], lambda: flows)
    started.note(Commit(world(ONE, TWO, WEB), None), 0.0)
    return started


def test_all_flows_are_looked_at_after_the_first_write_and_again_in_a_while(flows: KeptFlows, cleaner: Cleaner) -> None:
    cleaner.work(0.0)
    cleaner.work(AGAIN_S / 2)
    cleaner.work(AGAIN_S)
    cleaner.work(AGAIN_S + FULL_S / 2)
    cleaner.work(AGAIN_S + FULL_S)

    assert flows.asked == [BOTH] * 3


def test_a_change_has_its_own_service_looked_at_now_and_once_more(flows: KeptFlows, cleaner: Cleaner) -> None:
    cleaner.work(AGAIN_S)
    flows.asked.clear()

    cleaner.note(Commit(world(ONE, TWO, WEB), touched("default/two", "default/web")), LATER_S)
    cleaner.work(LATER_S)
    cleaner.work(LATER_S + AGAIN_S)
    cleaner.work(LATER_S + 2 * AGAIN_S)

    assert flows.asked == [{to("10.96.0.2")}] * 2


def test_a_change_of_services_without_udp_ports_is_none(flows: KeptFlows, cleaner: Cleaner) -> None:
    cleaner.work(AGAIN_S)
    flows.asked.clear()

    cleaner.note(Commit(world(ONE, TWO, WEB), touched("default/web")), LATER_S)
    cleaner.work(LATER_S)

    assert flows.asked == []


def test_what_a_write_took_out_of_the_table_is_looked_for(flows: KeptFlows, cleaner: Cleaner) -> None:
    cleaner.work(AGAIN_S)
    flows.asked.clear()
    key = pack_vip(IP("10.96.0.9"), Protocol.UDP, 53) + pack_index(0)
    endpoints = SetId(Family.IPV4, SetName.ENDPOINTS)
    change = Change({endpoints: MapChange({key: pack_target(IP("10.244.0.1"), 53)}, {})})

    cleaner.note(Commit(world(ONE, TWO, WEB), touched(), change=change), LATER_S)
    cleaner.work(LATER_S)

    assert flows.asked == [{to("10.96.0.9")}]


def test_tcp_frontends_of_a_table_made_anew_are_looked_at_and_once_more(flows: KeptFlows, cleaner: Cleaner) -> None:
    cleaner.work(AGAIN_S)
    flows.fresh.clear()
    ports = SetId(Family.IPV4, SetName.SERVICE_PORTS)
    change = Change({ports: MapChange({}, {pack_vip(IP("10.96.0.9"), Protocol.TCP, 80): b"goto pick_1"})})
    flows.answers = [KernelError("no")]

    with capture_logs():
        for touching in (touched("default/web"), None):  # where the table stood, nothing went by untranslated
            cleaner.note(Commit(world(ONE, TWO, WEB), touching, change=change), LATER_S)
        cleaner.work(LATER_S)  # fails
    cleaner.work(LATER_S + AGAIN_S)
    cleaner.work(LATER_S + RETRY_S)
    cleaner.work(LATER_S + FULL_S + RETRY_S)

    assert flows.fresh == [{pack_socket(IP("10.96.0.9"), 80)}] * 3 + [frozenset()]


def test_a_new_node_address_has_all_flows_looked_at(flows: KeptFlows, cleaner: Cleaner) -> None:
    cleaner.work(AGAIN_S)
    flows.asked.clear()

    cleaner.note(Commit(world(ONE, TWO, WEB), touched(), frozenset({IP("192.0.2.1")})), LATER_S)
    cleaner.work(LATER_S)

    assert flows.asked == [BOTH]


def test_a_look_during_which_the_table_was_rebuilt_is_repeated(flows: KeptFlows, cleaner: Cleaner) -> None:
    flows.answers = [Swept(5, 1, complete=False), Swept(5, 1, complete=True)]

    with capture_logs() as lines:
        cleaner.work(0.0)

    assert flows.asked == [BOTH] * 2
    assert [(line["event"], line["deleted"]) for line in lines] == [("conntrack_cleaned", 2)]


def test_a_refusal_is_said_once_and_everything_is_tried_again(flows: KeptFlows, cleaner: Cleaner) -> None:
    flows.answers = [KernelError("not permitted"), KernelError("not permitted")]

    with capture_logs() as lines:
        cleaner.work(0.0)
        cleaner.work(RETRY_S)
        cleaner.work(2 * RETRY_S)
        cleaner.work(3 * RETRY_S)

    assert flows.asked == [BOTH] * 3
    assert flows.closed == 2
    assert [(line["log_level"], line["event"], line["why"]) for line in lines] == [
        ("warning", "conntrack_unavailable", "not permitted")
    ]


def test_what_is_being_written_is_coming_at_a_look_of_before(flows: KeptFlows, cleaner: Cleaner) -> None:
    key = pack_vip(IP("10.96.0.1"), Protocol.UDP, 53) + pack_index(0)
    endpoints = SetId(Family.IPV4, SetName.ENDPOINTS)
    cleaner.writing(Change({endpoints: MapChange({}, {key: pack_target(IP("10.244.0.1"), 53)})}))

    cleaner.work(0.0)

    assert flows.coming == [{pack_socket(IP("10.244.0.1"), 53)}]
