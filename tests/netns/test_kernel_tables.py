"""Our tables on the real kernel: installed, read, changed, counted, removed; refused, edited and deleted by others."""

import socket
import subprocess
from collections.abc import Iterator

import pytest

from e2e.world.netns import run_in, run_ip
from endpointslice.types import IP, Family, Protocol
from proxy.kernel.attributes import pack_name
from proxy.kernel.batch import Message, Type
from proxy.kernel.change import Change, Elements, Installed, KernelError, MapChange
from proxy.kernel.connection import Connection
from proxy.kernel.netlink import NftKernel
from proxy.kernel.picks import pick_rules
from proxy.kernel.ruleset import SetId, SetName, key_bytes
from proxy.planner.keys import pack_index, pack_target, pack_vip
from tests.netns.kernel_space import BOTH, Space, open_space

pytestmark = pytest.mark.netns

PORTS = SetId(Family.IPV4, SetName.SERVICE_PORTS)
ENDPOINTS = SetId(Family.IPV4, SetName.ENDPOINTS)
CLUSTER_IPS = SetId(Family.IPV4, SetName.CLUSTER_IPS)
WEB = pack_vip(IP("10.96.0.1"), Protocol.TCP, 80)
DNS = pack_vip(IP("10.96.0.10"), Protocol.UDP, 53)
ONE_SERVICE: dict[SetId, Elements] = {
    PORTS: {WEB: b"goto pick_2"},
    ENDPOINTS: {WEB + pack_index(index): pack_target(IP(f"10.244.0.{index + 2}"), 8080) for index in range(2)},
    SetId(Family.IPV6, SetName.CLUSTER_IPS): {bytes(16): b""},
}


@pytest.fixture
def space() -> Iterator[Space]:
    with open_space() as opened:
        yield opened


@pytest.fixture
def kernel(space: Space) -> NftKernel:
    return space.open_kernel()


@pytest.fixture
def installed(kernel: NftKernel) -> Installed:
    return kernel.install(ONE_SERVICE)


def put(set_id: SetId, delete: Elements, add: Elements) -> Change:
    return Change({set_id: MapChange(delete, add)})


def test_no_table_is_nothing_to_read(kernel: NftKernel) -> None:
    assert kernel.read() is None


def test_what_was_installed_is_read_back_by_another_process(space: Space, installed: Installed) -> None:
    assert installed.chains == {(Family.IPV4, "pick_2")}
    assert space.open_kernel().read() == installed


def test_the_daemon_started_again_installs_over_its_own_tables(kernel: NftKernel, installed: Installed) -> None:
    again = kernel.install({PORTS: {DNS: b"goto pick_1"}})

    assert kernel.read() == again
    assert again.elements[PORTS] == {DNS: b"goto pick_1"}
    assert installed != again


def test_a_change_adds_replaces_deletes_and_makes_its_chains(kernel: NftKernel, installed: Installed) -> None:
    change = Change(
        {
            PORTS: MapChange({WEB: b"goto pick_2"}, {WEB: b"goto pick_3", DNS: b"goto pick_700"}),
            ENDPOINTS: MapChange({WEB + pack_index(0): b""}, {WEB + pack_index(2): pack_target(IP("10.244.0.9"), 1)}),
        }
    )

    kernel.run(change, installed)

    assert installed.elements[PORTS] == {WEB: b"goto pick_3", DNS: b"goto pick_700"}
    assert installed.chains == {(Family.IPV4, f"pick_{n}") for n in (2, 3, 700)}
    assert kernel.read() == installed


def test_an_empty_change_asks_nothing_of_the_kernel(kernel: NftKernel, installed: Installed) -> None:
    assert kernel.run(Change({}), installed) == {}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(
            Change(
                {
                    CLUSTER_IPS: MapChange({}, {bytes(4): b""}),
                    PORTS: MapChange({DNS: b"goto pick_2"}, {}),
                    ENDPOINTS: MapChange({}, {DNS + pack_index(0): bytes(8)}),
                }
            ),
            "delsetelem ip closeby service_ports: No such file or directory",
            id="a delete of what isn't there",
        ),
        pytest.param(
            Change(
                {
                    PORTS: MapChange({}, {DNS: b"goto pick_9"}),
                    ENDPOINTS: MapChange({}, {WEB + pack_index(0): bytes(8)}),
                    CLUSTER_IPS: MapChange({}, {bytes(4): b""}),
                }
            ),
            "newsetelem ip closeby endpoints: File exists",
            id="an add of a key that has other data",
        ),
        pytest.param(
            put(PORTS, {}, {DNS: b"goto nowhere"}),
            "newsetelem ip closeby service_ports: No such file or directory",
            id="a verdict to a chain that isn't there",
        ),
    ],
)
def test_a_batch_that_fails_in_its_middle_leaves_everything_and_is_reported(
    kernel: NftKernel, installed: Installed, change: Change, words: str
) -> None:
    before = kernel.read()

    with pytest.raises(KernelError) as refused:
        kernel.run(change, installed)

    assert words in refused.value.reason
    assert not refused.value.unknown
    assert installed == before
    assert kernel.read() == before


def test_the_next_change_is_not_confused_by_the_refusal_of_the_last(kernel: NftKernel, installed: Installed) -> None:
    for _attempt in range(3):
        with pytest.raises(KernelError):
            kernel.run(put(PORTS, {DNS: b""}, {}), installed)
        kernel.run(put(CLUSTER_IPS, {}, {bytes(4): b""}), installed)
        kernel.run(put(CLUSTER_IPS, {bytes(4): b""}, {}), installed)

    assert kernel.read() == installed


def test_an_install_that_is_refused_leaves_the_tables_of_before(kernel: NftKernel, installed: Installed) -> None:
    with pytest.raises(KernelError):
        kernel.install({PORTS: {DNS: b"goto nowhere"}})

    assert kernel.read() == installed


def test_five_thousand_failing_messages_are_one_refusal_with_the_first_reason(space: Space, kernel: NftKernel) -> None:
    kernel.install({})
    connection = run_in(space.name, Connection)
    missing = [
        Message(Type.DELTABLE, Family.IPV4, pack_name(1, "nobodys")),
        *(
            Message(Type.DELSETELEM, Family.IPV4, pack_name(1, "closeby") + pack_name(2, "hairpin"))
            for _ in range(5000)
        ),
    ]

    with pytest.raises(KernelError, match="deltable ip nobodys: No such file") as refused:
        connection.transact(missing)

    assert not refused.value.unknown
    connection.close()


def test_a_table_deleted_between_two_changes_is_reported_and_made_again(
    space: Space, kernel: NftKernel, installed: Installed
) -> None:
    space.nft("delete table ip closeby")

    with pytest.raises(KernelError, match="No such file or directory"):
        kernel.run(put(CLUSTER_IPS, {}, {bytes(4): b""}), installed)

    assert kernel.read() is None
    assert kernel.install(ONE_SERVICE) == kernel.read()


@pytest.mark.parametrize(
    "edit",
    [
        "flush ruleset",
        "add rule ip closeby refuse accept",
        "insert rule ip6 closeby prerouting accept",
        "flush chain ip closeby pick_2",
        "add rule ip closeby pick_2 accept",
        "add chain ip closeby theirs { type filter hook input priority 0; policy drop; }",
        "add set ip closeby theirs { typeof ip daddr; }",
        "add table ip closeby { flags dormant; }",
        "delete chain ip closeby LAYOUT",
    ],
)
def test_an_edit_of_rules_by_someone_else_is_found_and_mended(
    space: Space, kernel: NftKernel, installed: Installed, edit: str
) -> None:
    layout = next(word for word in space.list_text("chains").split() if word.startswith("layout_"))
    space.nft(edit.replace("LAYOUT", layout))

    assert kernel.read() is None
    assert kernel.install(ONE_SERVICE) == installed
    assert kernel.read() == installed


def test_an_edit_of_elements_by_someone_else_is_read(space: Space, kernel: NftKernel, installed: Installed) -> None:
    space.nft(
        "add element ip closeby cluster_ips { 10.96.0.7 }\n"
        "delete element ip closeby service_ports { 10.96.0.1 . tcp . 80 }\n"
    )

    read = kernel.read()

    assert read is not None
    assert read.elements[CLUSTER_IPS] == {b"\x0a\x60\0\7": b""}
    assert read.elements[PORTS] == {}
    assert read.elements[ENDPOINTS] == installed.elements[ENDPOINTS]


def test_a_table_of_our_name_that_is_not_ours_is_replaced(space: Space, kernel: NftKernel) -> None:
    space.nft("table ip closeby {\nset service_ports { typeof ip daddr; }\n}\n")

    assert kernel.read() is None
    assert kernel.install(ONE_SERVICE) == kernel.read()


def test_a_catch_all_element_is_none_of_ours(space: Space, kernel: NftKernel, installed: Installed) -> None:
    space.nft("add element ip closeby no_endpoint_node_ports { * : drop }")

    assert kernel.read() is None
    assert kernel.install(ONE_SERVICE) == installed


def test_removal_takes_exactly_ours(space: Space, kernel: NftKernel, installed: Installed) -> None:
    assert installed
    space.nft("add table ip other\nadd chain ip other closeby\nadd table inet closeby\n")

    kernel.remove()
    kernel.remove()

    assert space.list_text("tables").split("\n") == ["table ip other", "table inet closeby", ""]


def test_a_family_that_was_not_asked_for_is_left_alone(space: Space, installed: Installed) -> None:
    assert installed
    only_v4 = space.open_kernel([Family.IPV4])

    v4 = only_v4.install(ONE_SERVICE)

    assert {set_id.family for set_id in v4.elements} == {Family.IPV4}
    assert only_v4.read() == v4
    only_v4.remove()
    assert space.list_text("tables") == "table ip6 closeby\n"


def test_nft_lists_our_tables_and_edits_others_beside_them(
    space: Space, kernel: NftKernel, installed: Installed
) -> None:
    kernel.run(put(PORTS, {}, {DNS: b"goto pick_9"}), installed)

    space.nft("table ip other {\nset s { typeof ip saddr; }\n}\nadd element ip other s { 10.0.0.1 }")

    assert "10.96.0.10 . 17 . 53 counter packets 0 bytes 0 : goto pick_9" in space.list_text(
        "map ip closeby service_ports"
    )
    assert "10.96.0.10" in space.list_text("ruleset")
    assert kernel.read() == installed


@pytest.mark.parametrize("family", BOTH)
@pytest.mark.parametrize(
    ("prefix", "key", "endpoints"),
    [
        ("pick", "{ip} daddr . meta l4proto . th dport", "endpoints"),
        ("node_port_pick", "meta l4proto . th dport", "node_port_endpoints"),
        ("local_source_pick", "{ip} daddr . meta l4proto . th dport", "local_source_endpoints"),
        ("local_source_node_port_pick", "meta l4proto . th dport", "local_source_node_port_endpoints"),
    ],
)
def test_a_pick_chain_is_what_nft_makes_of_its_text_in_an_empty_namespace(
    space: Space, family: Family, prefix: str, key: str, endpoints: str
) -> None:
    ip = "ip" if family is Family.IPV4 else "ip6"
    key = key.format(ip=ip)
    rules = "".join(f"dnat {ip} to {key} . numgen random mod {n} map @{endpoints}\n" for n in (7, 1))
    space.nft(
        f"table {ip} closeby {{\n"
        f"map {endpoints} {{ typeof {key} . numgen random mod 65536 : {ip} daddr . th dport; }}\n"
        f"chain {prefix}_7 {{\n{rules}drop\n}}\n}}\n"
    )
    listed = space.list_text(f"chain {ip} closeby {prefix}_7")
    connection = run_in(space.name, Connection)

    compiled = [reply.payload for reply in connection.dump(Message(Type.GETRULE, family, b""))]

    connection.close()
    assert [rule in payload for rule, payload in zip(pick_rules(family, f"{prefix}_7"), compiled, strict=True)] == [
        True
    ] * 3
    kernel = space.open_kernel()
    set_id = SetId(family, SetName.NODE_PORTS if "node" in prefix else SetName.SERVICE_PORTS)
    installed = kernel.install({})
    kernel.run(put(set_id, {}, {bytes(key_bytes(set_id)): f"goto {prefix}_7".encode()}), installed)
    assert space.list_text(f"chain {ip} closeby {prefix}_7") == listed


def test_counters_count_connections_and_their_last_value_comes_with_the_delete(space: Space) -> None:
    run_ip({space.name: ["link set lo up", "address add 10.244.0.2/32 dev lo", "route add 10.96.0.0/24 dev lo"]})
    kernel = space.open_kernel()
    installed = kernel.install(
        {PORTS: {DNS: b"goto pick_1"}, ENDPOINTS: {DNS + pack_index(0): pack_target(IP("10.244.0.2"), 5353)}}
    )

    def send(flows: int) -> None:
        for _flow in range(flows):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
                for _packet in range(3):
                    client.sendto(b"?", ("10.96.0.10", 53))

    run_in(space.name, lambda: send(5))
    assert kernel.counters(PORTS) == {DNS: 5}
    replaced = kernel.run(put(PORTS, {DNS: b"goto pick_1"}, {DNS: b"goto pick_3"}), installed)
    assert kernel.counters(PORTS) == {DNS: 0}
    run_in(space.name, lambda: send(2))
    deleted = kernel.run(put(PORTS, {DNS: b"goto pick_3"}, {}), installed)

    assert replaced == {(PORTS, DNS): 5}
    assert deleted == {(PORTS, DNS): 2}
    assert kernel.counters(PORTS) == {}


def test_ten_thousand_deleted_verdicts_come_back_with_their_counts(kernel: NftKernel) -> None:
    many: Elements = {number.to_bytes(12): b"goto pick_1" for number in range(10_000)}
    installed = kernel.install({PORTS: many})

    counts = kernel.run(put(PORTS, many, {}), installed)

    assert counts == {(PORTS, key): 0 for key in many}


UNPRIVILEGED = """
from endpointslice.types import Family
from proxy.kernel.change import Change, MapChange
from proxy.kernel.connection import Connection
from proxy.kernel.netlink import NftKernel
from proxy.kernel.ruleset import SetId, SetName

ENDPOINTS, PORTS = SetId(Family.IPV6, SetName.ENDPOINTS), SetId(Family.IPV4, SetName.SERVICE_PORTS)
count = Connection().limit_bytes // 60  # an element is larger
endpoints = {number.to_bytes(28): bytes(20) for number in range(count)}
others = {number.to_bytes(28): bytes(20) for number in range(count, 2 * count)}
ports = {number.to_bytes(12): b"goto pick_1" for number in range(1000)}
kernel = NftKernel()
installed = kernel.install({PORTS: ports, ENDPOINTS: endpoints})
change = Change({
    PORTS: MapChange(ports, {number.to_bytes(12): b"goto pick_2" for number in range(500, 1500)}),
    ENDPOINTS: MapChange({number.to_bytes(28): bytes(20) for number in range(1000)}, others),
})
counts = kernel.run(change, installed)
assert kernel.read() == installed
assert len(installed.elements[ENDPOINTS]) == 2 * count - 1000
assert len(counts) == 1000
print("split", count)
"""


def test_without_privilege_a_batch_too_large_for_the_socket_is_split(python: list[str]) -> None:
    """In a user namespace of its own (rootless kind), where SO_SNDBUFFORCE is refused."""
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--net", *python, "-c", UNPRIVILEGED],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("split ")


def test_without_cap_net_admin_the_error_says_so(python: list[str]) -> None:
    program = "from proxy.kernel.netlink import NftKernel\nNftKernel().read()"
    done = subprocess.run(
        ["setpriv", "--bounding-set=-all", *python, "-c", program], capture_output=True, text=True, check=False
    )

    assert "KernelError: getgen ip: not permitted to use nftables: CAP_NET_ADMIN is needed" in done.stderr
