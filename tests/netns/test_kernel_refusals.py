"""What goes wrong with our tables on the real kernel: refused, edited and deleted by others, no privilege."""

import socket
import subprocess

import pytest

from proxy.kernel.change import Change, Installed, KernelError, MapChange
from proxy.kernel.netlink import NftKernel
from proxy.planner.keys import pack_index
from tests.netns.kernel_space import CLUSTER_IPS, DNS, ENDPOINTS, ONE_SERVICE, PORTS, WEB, Space, put

pytestmark = pytest.mark.netns


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


def test_replies_that_found_no_room_leave_the_state_unknown_until_it_is_read(space: Space, kernel: NftKernel) -> None:
    many = {number.to_bytes(12): b"goto pick_1" for number in range(5000)}
    installed = kernel.install({PORTS: many})
    kernel._connection._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)  # noqa: SLF001  # no other way

    with pytest.raises(KernelError, match="buffer was too small") as lost:
        kernel.run(put(PORTS, many, {}), installed)

    assert lost.value.unknown
    read = space.open_kernel().read()
    assert read is not None
    assert read.elements[PORTS] == {}


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


UNPRIVILEGED = """
from endpointslice.types import Family
from proxy.kernel.change import Change, MapChange
from proxy.kernel.connection import Connection
from proxy.kernel.netlink import NftKernel
from proxy.kernel.ruleset import SetId, SetName

ENDPOINTS, PORTS = SetId(Family.IPV6, SetName.ENDPOINTS), SetId(Family.IPV4, SetName.SERVICE_PORTS)
count = Connection().limit_bytes // 60  # an element is larger
endpoints = {number.to_bytes(28): bytes(20) for number in range(count)}
ports = {number.to_bytes(12): b"goto pick_1" for number in range(1000)}
kernel = NftKernel()
installed = kernel.install({PORTS: ports})
change = Change({
    PORTS: MapChange(ports, {number.to_bytes(12): b"goto pick_2" for number in range(500, 1500)}),
    ENDPOINTS: MapChange({}, endpoints),
})
counts = kernel.run(change, installed)
assert kernel.read() == installed
assert installed.elements[ENDPOINTS] == endpoints
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
