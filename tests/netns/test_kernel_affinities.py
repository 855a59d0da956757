"""What Service ports with affinity have of their own, on the real kernel and beside both versions of nft."""

import subprocess

import pytest

from e2e.world.netns import command_in, run_in
from endpointslice.types import Family, Protocol
from proxy.kernel.affinities import name_affinity
from proxy.kernel.base import Rule, parse_rule
from proxy.kernel.batch import Message, Type
from proxy.kernel.change import Change, Elements, Installed, MapChange
from proxy.kernel.compile import affinity_text, render_text
from proxy.kernel.connection import Connection
from proxy.kernel.netlink import NftKernel
from proxy.kernel.ruleset import SetId, SetName
from tests.netns.kernel_space import Space, put
from tests.netns.newer_nft import newer_nft

pytestmark = pytest.mark.netns

NAME = name_affinity("default/web", "http", Protocol.TCP)
K = NAME.decode()
NODE_PORT = b"\6\0\0\0\x75\x30\0\0"  # TCP 30000
AFFINITIES = SetId(Family.IPV4, SetName.AFFINITIES)
CHAINS = """
chain sticky_{k} {{
	meta l4proto {protocol} dnat {ip} to {ip} saddr map @affinity_{k}
}}
chain record_{k} {{
	meta l4proto {protocol} update @affinity_{k} {{ {ip} saddr : {ip} daddr . {protocol} dport }} accept
}}
chain forget_{k} {{
	meta l4proto {protocol} delete @affinity_{k} {{ {ip} saddr : {ip} daddr . {protocol} dport }}
	drop
}}
"""


def one_affinity(family: Family, protocol: Protocol = Protocol.TCP) -> dict[SetId, Elements]:
    """A NodePort with affinity, and one endpoint."""
    target = bytes([10, 0, 0, 1] if family is Family.IPV4 else [*bytes(15), 1]) + b"\x1f\x90\0\0"
    return {
        SetId(family, SetName.AFFINITIES): {NAME: f"{protocol} 10800".encode()},
        SetId(family, SetName.AFFINITY_NODE_PORTS): {NODE_PORT: b"jump sticky_" + NAME},
        SetId(family, SetName.RECORD_NODE_PORTS): {NODE_PORT: b"goto record_" + NAME},
        SetId(family, SetName.FORGET_NODE_PORTS): {NODE_PORT: b"goto forget_" + NAME},
        SetId(family, SetName.NODE_PORT_BOUND_ENDPOINTS): {NODE_PORT + target: b""},
        SetId(family, SetName.BOUND_ENDPOINTS): {target[:-4] + NODE_PORT + target: b""},
    }


@pytest.fixture
def both(kernel: NftKernel) -> Installed:
    """A NodePort with affinity in both families."""
    return kernel.install({**one_affinity(Family.IPV4), **one_affinity(Family.IPV6)})


def dump_rules(space: Space, family: Family) -> list[Rule]:
    """The rules of the affinity's chains, as the kernel gives them, by chain."""
    connection = run_in(space.name, Connection)
    replies = [*connection.dump(Message(Type.GETRULE, family, b""))]
    connection.close()
    rules = [rule for reply in replies if (rule := parse_rule(reply.payload)) and K in rule.chain]
    return sorted(rules, key=lambda rule: rule.chain)


@pytest.mark.parametrize("protocol", Protocol)
@pytest.mark.parametrize("family", Family)
def test_rules_are_what_nft_makes_of_their_text(space: Space, family: Family, protocol: Protocol) -> None:
    """nft 1.0.6 dies of the IPv6 text (assertion in netlink_gen_expr), so there the newer one is asked."""
    ip = "ip" if family is Family.IPV4 else "ip6"
    text = render_text(affinity_text(), family).replace(f"affinity_template_{protocol.lower()}", f"affinity_{K}")
    text += f"table {ip} closeby {{ {CHAINS.format(ip=ip, k=K, protocol=protocol.lower())} }}\n"
    command = ["nft"] if family is Family.IPV4 else newer_nft()
    if command is None:
        pytest.skip("no newer nft: python -m tests.netns.newer_nft fetches it")
    subprocess.run(command_in(space.name, [*command, "-f", "-"]), input=text, text=True, check=True)
    theirs = dump_rules(space, family)

    space.open_kernel().install(one_affinity(family, protocol))

    assert dump_rules(space, family) == theirs
    assert len(theirs) == 4


def test_what_was_installed_is_read_back(space: Space, both: Installed) -> None:
    assert space.open_kernel().read() == both


def test_both_versions_of_nft_list_all_of_it(space: Space, both: Installed) -> None:
    assert both
    for command in filter(None, (["nft"], newer_nft())):
        listed = subprocess.check_output(command_in(space.name, [*command, "-n", "list", "ruleset"]), text=True)
        assert f"dnat ip6 to ip6 saddr map @affinity_{K}" in listed
        assert f"update @affinity_{K} {{ ip saddr : ip daddr . tcp dport }} accept" in listed
        assert f"delete @affinity_{K} {{ ip6 saddr : ip6 daddr . tcp dport }}" in listed
        assert f"6 . 30000 : goto record_{K}" in listed
        assert "10.0.0.1 . 6 . 30000 . 10.0.0.1 . 8080" in listed


def test_bindings_survive_a_change_of_the_time_out(space: Space, kernel: NftKernel, both: Installed) -> None:
    space.nft(f"add element ip closeby affinity_{K} {{ 192.0.2.1 : 10.0.0.1 . 8080 }}")

    kernel.run(put(AFFINITIES, {NAME: b"TCP 10800"}, {NAME: b"TCP 7"}), both)

    assert kernel.read() == both
    listed = space.list_text(f"map ip closeby affinity_{K}")
    assert "timeout 7s" in listed
    assert "192.0.2.1" in listed


def test_it_goes_in_one_transaction_with_what_led_there_and_with_its_bindings(
    space: Space, kernel: NftKernel, both: Installed
) -> None:
    space.nft(f"add element ip closeby affinity_{K} {{ 192.0.2.1 : 10.0.0.1 . 8080 }}")

    kernel.run(Change({set_id: MapChange(dict(part), {}) for set_id, part in both.elements.items() if part}), both)

    assert kernel.read() == both
    assert K not in space.list_text("ruleset")
    kernel.run(Change({set_id: MapChange({}, part) for set_id, part in one_affinity(Family.IPV4).items()}), both)
    assert kernel.read() == both
    assert "192.0.2.1" not in space.list_text(f"map ip closeby affinity_{K}")


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(f"flush chain ip closeby sticky_{K}", id="a chain flushed"),
        pytest.param(f"add rule ip6 closeby forget_{K} accept", id="a rule added"),
        pytest.param("add chain ip closeby sticky_0123456789abcdef", id="a chain of an affinity that isn't"),
    ],
)
def test_an_edit_by_others_is_seen(space: Space, kernel: NftKernel, both: Installed, edit: str) -> None:
    assert kernel.read() == both

    space.nft(edit)

    assert kernel.read() is None
