"""What we pack against what nft makes of the same elements, on the real kernel."""

import ipaddress
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from endpointslice.types import CIDR, IP, Family, Protocol
from proxy.kernel.change import Elements
from proxy.kernel.netlink import NftKernel
from proxy.kernel.ruleset import KERNEL_SETS, LAYOUTS, Data, Field, SetId, SetName, address_bytes
from proxy.planner.keys import pack_index, pack_interfaces, pack_node_port, pack_range, pack_target, pack_vip
from tests.builders import change_between
from tests.netns.kernel_space import Space, open_space

pytestmark = pytest.mark.netns

IPS = {Family.IPV4: (IP("10.0.0.1"), IP("10.244.0.5")), Family.IPV6: (IP("fd00::1"), IP("fd00:244::5"))}
RANGES = {Family.IPV4: ("10.244.1.0/24", "10.244.2.0/23"), Family.IPV6: ("fd00:244:1::/64", "fd00:244:2::/63")}
INTERFACES = ("cni0", "abcdefghijklmno", "veth*", "podlongprefix*")
FAMILY_WORDS = {Family.IPV4: "ip", Family.IPV6: "ip6"}
PROTOCOL_WORDS = {Protocol.TCP: "tcp", Protocol.UDP: "udp", Protocol.SCTP: "sctp"}
SETS = [SetId(family, name) for family in Family for name in KERNEL_SETS]


@pytest.fixture(scope="module")
def ours() -> Iterator[Space]:
    with open_space() as space:
        yield space


@pytest.fixture(scope="module")
def theirs() -> Iterator[Space]:
    with open_space() as space:
        yield space


@pytest.fixture(scope="module")
def kernel(ours: Space) -> NftKernel:
    return ours.open_kernel()


def examples(set_id: SetId) -> tuple[dict[bytes, bytes], list[str]]:
    """A few elements of the set, packed and as nft's text."""
    first, second = IPS[set_id.family]
    packed: dict[bytes, bytes] = {}
    texts: list[str] = []
    layout = LAYOUTS[set_id.name]
    if set_id.name is SetName.ALLOWED_SOURCES:
        vip = pack_vip(first, Protocol.UDP, 53)
        texts = [f"{first} . udp . 53 . {cidr}" for cidr in RANGES[set_id.family]]
        return {vip + pack_range(CIDR(cidr)): b"" for cidr in RANGES[set_id.family]}, texts
    if layout.key == (Field.INTERFACE,):
        return {pack_interfaces(name): b"" for name in INTERFACES}, [f'"{name}"' for name in INTERFACES]
    if layout.interval:
        return {pack_range(cidr): b"" for cidr in RANGES[set_id.family]}, list(RANGES[set_id.family])
    for number, protocol in enumerate(Protocol):
        key = b""
        words: list[str] = []
        for field in layout.key:
            part, word = example_field(field, (second if words else first, protocol, number))
            key += part
            words.append(word)
        data, text = {
            Data.NONE: (b"", ""),
            Data.VERDICT: (b"goto refuse", " : goto refuse") if number else (b"drop", " : drop"),
            Data.ENDPOINT: (pack_target(second, 9000 + number), f" : {second} . {9000 + number}"),
        }[layout.data]
        packed[key] = data
        texts.append(" . ".join(words) + text)
    return packed, texts


def example_field(field: Field, example: tuple[IP, Protocol, int]) -> tuple[bytes, str]:
    """One field of the element with this number, packed and as nft's word."""
    base, protocol, number = example
    if field is Field.ADDRESS:
        address = ipaddress.ip_address(base) + number
        return address.packed, str(address)
    if field is Field.PROTOCOL:
        return pack_node_port(protocol, 1)[:4], PROTOCOL_WORDS[protocol]
    if field is Field.PORT:
        return pack_node_port(protocol, 8000 + number)[4:], str(8000 + number)
    return pack_index(number), str(number)


@pytest.mark.parametrize("set_id", SETS, ids=lambda s: f"{s.family} {s.name}")
def test_the_kernel_holds_the_same_bytes_whether_nft_adds_the_elements_or_we(
    ours: Space, theirs: Space, kernel: NftKernel, set_id: SetId
) -> None:
    packed, texts = examples(set_id)
    family = FAMILY_WORDS[set_id.family]
    theirs.open_kernel().install({})

    kernel.install({set_id: packed})
    theirs.nft(f"add element {family} closeby {set_id.name} {{ {', '.join(texts)} }}\n")

    assert ours.dump_elements(set_id) == theirs.dump_elements(set_id)
    kind = "set" if LAYOUTS[set_id.name].data is Data.NONE else "map"
    listed = ours.list_text(f"{kind} {family} closeby {set_id.name}")
    assert listed == theirs.list_text(f"{kind} {family} closeby {set_id.name}")
    installed = kernel.read()
    assert installed is not None
    assert installed.elements[set_id] == packed


@st.composite
def contents(draw: st.DrawFn) -> dict[SetId, dict[bytes, bytes]]:
    """Random elements of a few sets in both families, from small pools so that changes replace and repeat."""
    found: dict[SetId, dict[bytes, bytes]] = {}
    for family in Family:
        size = address_bytes(family)
        addresses = st.sampled_from([(n << (8 * size - 8) | n).to_bytes(size) for n in range(1, 6)])
        ips = addresses.map(lambda packed: IP(str(ipaddress.ip_address(packed))))
        ports = st.sampled_from([1, 80, 65535])
        protocols = st.sampled_from(Protocol)
        vips = st.builds(pack_vip, ips, protocols, ports)
        node_ports = st.builds(pack_node_port, protocols, ports)
        indexes = st.sampled_from([0, 1, 2, 65535]).map(pack_index)
        targets = st.builds(pack_target, ips, ports)
        verdicts = st.sampled_from(
            [b"drop", b"goto refuse", b"goto pick_1", b"goto pick_2", b"goto local_source_pick_3"]
        )
        found |= {
            SetId(family, SetName.SERVICE_PORTS): draw(st.dictionaries(vips, verdicts)),
            SetId(family, SetName.NO_ENDPOINT_NODE_PORTS): draw(st.dictionaries(node_ports, st.just(b"drop"))),
            SetId(family, SetName.ENDPOINTS): draw(
                st.dictionaries(st.builds(bytes.__add__, vips, indexes), targets, max_size=30)
            ),
            SetId(family, SetName.HAIRPIN): draw(
                st.dictionaries(st.builds(bytes.__add__, addresses, addresses), st.just(b""))
            ),
            SetId(family, SetName.SERVICE_CIDRS): draw(ranges(size)),
        }
    return found


@st.composite
def ranges(draw: st.DrawFn, size: int) -> dict[bytes, bytes]:
    """Ranges that don't overlap; touching ones, and either end of the address space, often."""
    top = (1 << 8 * size) - 1
    picks = st.integers(0, 20) | st.integers(top - 20, top) | st.integers(0, top)
    bounds = sorted(draw(st.sets(picks, max_size=8)))
    pairs = zip(bounds[::2], bounds[1::2], strict=False)
    return {first.to_bytes(size) + last.to_bytes(size): b"" for first, last in pairs}


@settings(max_examples=25)
@given(st.lists(contents(), min_size=2, max_size=3))
def test_whatever_was_there_a_diff_leaves_the_desired_elements(
    kernel: NftKernel, worlds: list[dict[SetId, dict[bytes, bytes]]]
) -> None:
    installed = kernel.install(worlds[0])
    for desired in worlds[1:]:
        kernel.run(change_between(installed.elements, desired), installed)

        read = kernel.read()

        assert read == installed
        assert read is not None
        assert {set_id: read.elements[set_id] for set_id in desired} == desired


@settings(max_examples=5)
@given(st.integers(1, 60_000))
def test_as_many_elements_as_there_are_come_back(kernel: NftKernel, count: int) -> None:
    hairpin, cluster_ips = SetId(Family.IPV6, SetName.HAIRPIN), SetId(Family.IPV4, SetName.CLUSTER_IPS)
    many: dict[SetId, Elements] = {
        hairpin: {number.to_bytes(32): b"" for number in range(count)},
        cluster_ips: {number.to_bytes(4): b"" for number in range(count)},
    }
    installed = kernel.install({})
    kernel.run(change_between({}, many), installed)

    read = kernel.read()

    assert read is not None
    assert {set_id: read.elements[set_id] for set_id in many} == many
