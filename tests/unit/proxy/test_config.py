"""Flags: what they mean, and that a wrong one is named in plain words."""

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from proxy.config import (
    BindAddress,
    ConfigError,
    check_sources,
    default_hostname,
    parse_bind_address,
    parse_cluster_cidrs,
    parse_duration,
    parse_node_port_addresses,
)

FLAG = "--some-flag"


def parse_bind(flag: str, text: str) -> BindAddress | None:
    return parse_bind_address(flag, text, 10256)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("1s", 1.0, id="seconds"),
        pytest.param("20ms", 0.02, id="milliseconds"),
        pytest.param("1m30s", 90.0, id="minutes and seconds"),
        pytest.param("1.5h", 5400.0, id="a fraction"),
        pytest.param("250us", 0.00025, id="microseconds"),
        pytest.param("0", 0.0, id="nothing, without a unit"),
        pytest.param("0s", 0.0, id="nothing, with one"),
    ],
)
def test_a_duration(text: str, seconds: float) -> None:
    assert parse_duration(FLAG, text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        pytest.param("0.0.0.0:10256", BindAddress("", 10256), id="kube-proxy's default: both families"),
        pytest.param("[::]:9000", BindAddress("", 9000), id="all of IPv6: both families"),
        pytest.param(":9000", BindAddress("", 9000), id="only a port: both families"),
        pytest.param("127.0.0.1:0", BindAddress("127.0.0.1", 0), id="any free port"),
        pytest.param("[2001:db8::1]:9000", BindAddress("2001:db8::1", 9000), id="an IPv6 address in brackets"),
        pytest.param("192.0.2.1", BindAddress("192.0.2.1", 10256), id="an address alone has the default port"),
        pytest.param("::1", BindAddress("::1", 10256), id="an IPv6 address alone"),
        pytest.param("[::1]", BindAddress("::1", 10256), id="an IPv6 address alone, in brackets"),
        pytest.param("", None, id="nothing: no server"),
    ],
)
def test_a_bind_address(text: str, address: BindAddress | None) -> None:
    assert parse_bind(FLAG, text) == address


@pytest.mark.parametrize(
    ("text", "cidrs"),
    [
        pytest.param("", (), id="none"),
        pytest.param("10.244.0.0/16", ("10.244.0.0/16",), id="one"),
        pytest.param("10.244.1.2/16, fd00:10:244::/56", ("10.244.0.0/16", "fd00:10:244::/56"), id="one of each family"),
    ],
)
def test_cluster_cidrs(text: str, cidrs: tuple[str, ...]) -> None:
    assert parse_cluster_cidrs(FLAG, text) == cidrs


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        pytest.param("", ("primary",), id="nothing is primary"),
        pytest.param("primary", ("primary",), id="primary"),
        pytest.param("192.0.2.0/24, 2001:db8::/64", ("192.0.2.0/24", "2001:db8::/64"), id="networks"),
        pytest.param("all", ("0.0.0.0/0", "::/0"), id="all of both families"),
    ],
)
def test_node_port_addresses(text: str, addresses: tuple[str, ...]) -> None:
    assert parse_node_port_addresses(FLAG, text) == addresses


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        pytest.param(parse_duration, "20", id="a duration without a unit"),
        pytest.param(parse_duration, "", id="an empty duration"),
        pytest.param(parse_duration, "1s fast", id="a duration with something behind it"),
        pytest.param(parse_duration, "-1s", id="a negative duration"),
        pytest.param(parse_bind, "localhost:80", id="a name to bind to"),
        pytest.param(parse_bind, "127.0.0.1:65536", id="a port out of range"),
        pytest.param(parse_bind, "127.0.0.1:http", id="a port by name"),
        pytest.param(parse_bind, "nonsense", id="no address at all"),
        pytest.param(parse_cluster_cidrs, "10.244.0.0/33", id="a network that is too long"),
        pytest.param(parse_cluster_cidrs, "10.244.0.0", id="a network without a length"),
        pytest.param(parse_cluster_cidrs, "10.244.0.0/16,10.245.0.0/16", id="two networks of one family"),
        pytest.param(parse_node_port_addresses, "localhost", id="the one address that NodePorts never have"),
        pytest.param(parse_node_port_addresses, "eth0", id="an interface as address"),
        pytest.param(parse_node_port_addresses, "primary,10.0.0.0/8", id="primary mixed with networks"),
    ],
)
def test_a_wrong_flag_is_named_with_its_text(parse: Callable[[str, str], object], text: str) -> None:
    with pytest.raises(ConfigError) as wrong:
        parse(FLAG, text)

    message = str(wrong.value)
    assert message.startswith(f"{FLAG}: ")
    assert f'"{text}"' in message


def test_only_the_wrong_network_of_several_is_quoted() -> None:
    with pytest.raises(ConfigError, match=r'--nodeport-addresses: "here" is not a network; write it as'):
        parse_node_port_addresses("--nodeport-addresses", "10.0.0.0/8, here")


def test_the_nodes_name_is_the_override_or_the_hosts_in_lower_case() -> None:
    assert default_hostname(" Node-1 ") == "node-1"
    assert default_hostname("") == socket.gethostname().lower()


def test_sources_that_are_there_are_fine(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.touch()

    check_sources(None, None)
    check_sources(tmp_path, None)
    check_sources(None, file)


@pytest.mark.parametrize(
    ("manifests", "kubeconfig", "message"),
    [
        pytest.param("absent", None, "--manifests: .*absent is not a directory", id="a folder that isn't there"),
        pytest.param("file", None, "--manifests: .*file is not a directory", id="a file as folder"),
        pytest.param(None, "absent", "--kubeconfig: .*absent does not exist", id="a kubeconfig that isn't there"),
        pytest.param(None, ".", "--kubeconfig: .* is not a file", id="a folder as kubeconfig"),
        pytest.param(".", "file", "--manifests and --kubeconfig: give one source", id="two sources"),
    ],
)
def test_sources_that_cannot_be_read(
    tmp_path: Path, manifests: str | None, kubeconfig: str | None, message: str
) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(ConfigError, match=message):
        check_sources(*(None if name is None else tmp_path / name for name in (manifests, kubeconfig)))
