"""`closeby announce`: the node's announcer."""

from pathlib import Path
from typing import Any

import click

from endpointslice.addresses import parse_ip
from endpointslice.types import IP, NodeName
from proxy.announcer.beat_sockets import Ports
from proxy.announcer.config import Config
from proxy.announcer.keyring import KeyFileError, read_keys
from proxy.announcer.priority import PriorityError, run_in_real_time
from proxy.announcer.process import Process
from proxy.announcer.rights import RightsError, drop_rights
from proxy.cli.announcer_options import control_option
from proxy.cli.log_options import log_options
from proxy.config import ConfigError, default_hostname, parse_bind_address, parse_duration
from proxy.l2.candidates import Options
from proxy.l2.types import PROFILES, MinorityHold, Settings, WithoutMajority
from proxy.logs import set_up_logs
from proxy.metrics_server import serve_metrics

FEED_SOCKET = Path("/run/closeby/announcer-feed.sock")
_METRICS_PORT = 7476
_PORT = 7477
_MOST_PORT = 65532
_MOST_PRIORITY = 99


@click.command()
@click.option("--hostname-override", default="", metavar="NAME", help="The Node's name; the host's own by default.")
@click.option(
    "--keys",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("/etc/closeby/announcer-keys"),
    show_default=True,
    help="Folder of a mounted Secret: files 1, 2, .. with a key of 16 bytes or more each; the highest is the newest.",
)
@click.option(
    "--proxy-socket",
    type=click.Path(path_type=Path),
    default=FEED_SOCKET,
    show_default=True,
    help="Where `closeby run --announcer-socket` on this node tells what it serves.",
)
@control_option
@click.option(
    "--memory",
    type=click.Path(path_type=Path),
    default=Path("/run/closeby/announcer.json"),
    show_default=True,
    help="What the next start of this boot is left: who the members are, and what this node held.",
)
@click.option(
    "--profile",
    type=click.Choice(sorted(PROFILES)),
    default="default",
    show_default=True,
    help="How fast a lost node is noticed: default 200 ms times 5, fast 100 ms times 3, calm 1 s times 5.",
)
@click.option("--grace", default="30s", show_default=True, metavar="DURATION", help="How long a drained node forwards.")
@click.option(
    "--without-majority",
    type=click.Choice([choice.value for choice in WithoutMajority]),
    default=WithoutMajority.LAST_RESORT.value,
    show_default=True,
    help="Whether addresses of the dead are taken where no majority is left; never: they stay dark.",
)
@click.option(
    "--minority-hold",
    type=click.Choice([choice.value for choice in MinorityHold]),
    default=MinorityHold.KEEP.value,
    show_default=True,
    help="What an owner without a majority does where the gateway answers no echo.",
)
@click.option(
    "--leave-cordoned",
    is_flag=True,
    help="A cordoned node gives its addresses away and takes none; else a cordon changes nothing.",
)
@click.option(
    "--stay-not-ready",
    is_flag=True,
    help="A node that isn't Ready keeps its addresses; else it gives them to Ready ones after half a minute.",
)
@click.option(
    "--ignore-exclude-label",
    is_flag=True,
    help="Nodes labelled node.kubernetes.io/exclude-from-external-load-balancers announce like others.",
)
@click.option(
    "--experimental-spread-clients",
    is_flag=True,
    help='Addresses of L2Advertisements annotated closeby.dev/spread-clients="true" are answered for by several nodes.',
)
@click.option(
    "--realtime-priority",
    type=click.IntRange(0, _MOST_PRIORITY),
    default=0,
    show_default=True,
    help="Of SCHED_RR, over all usual processes, for nodes short of cores; needs CAP_SYS_NICE. 0: as usual.",
)
@click.option(
    "--gateway", multiple=True, metavar="IP", help="The router of its subnet, where no default route says so."
)
@click.option("--peer", multiple=True, metavar="IP", help="Another node's address, for messages on the node network.")
@click.option(
    "--port", type=click.IntRange(1, _MOST_PORT), default=_PORT, show_default=True, help="The first of four UDP ports."
)
@click.option(
    "--metrics-bind-address",
    default=f"127.0.0.1:{_METRICS_PORT}",
    show_default=True,
    metavar="ADDRESS",
    help="Where /metrics is served; empty: nowhere.",
)
@click.option(
    "--ready-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Made once this process answers for its addresses, also in the place of one before: an update waits for it.",
)
@log_options
def announce(**flags: Any) -> None:
    """Answer ARP and NDP for load-balancer addresses, each from one node, until SIGTERM.

    The announcers of all nodes hear each other on the addresses' own subnets, and decide who answers; a node that is
    lost is replaced in about a second. What there is to announce comes from the proxy on this node (`closeby run
    --announcer-socket`), so nothing is announced before the kernel serves it. No API server is asked.

    It needs CAP_NET_RAW and drops every other right. SIGTERM is a restart: nothing moves, others wait for three
    seconds. To empty a node use `closeby drain`. `closeby who-announces` tells who owns what, and why.

    \b
    Examples:
      kubectl -n kube-system create secret generic closeby-announcer --from-literal=1="$(openssl rand -hex 32)"
      closeby announce --keys /etc/closeby/announcer-keys
      closeby announce --profile fast --gateway 192.0.2.1
    """  # noqa: D301 (click reads the backslash)
    set_up_logs(flags["verbosity"], flags["log_format"])
    config = _read_config(flags)
    address = parse_bind_address("--metrics-bind-address", flags["metrics_bind_address"], _METRICS_PORT)
    try:
        if flags["realtime_priority"]:
            run_in_real_time(flags["realtime_priority"])
        drop_rights()
    except (PriorityError, RightsError) as error:
        raise click.ClickException(str(error)) from error
    process = _make_process(config)
    if address is not None:
        try:
            serve_metrics(address, process.health.is_alive, shared=True)
        except OSError as error:
            raise ConfigError(f"--metrics-bind-address: {flags['metrics_bind_address']}: {error.strerror}") from error
    process.run()


def _make_process(config: Config) -> Process:
    try:
        return Process(config)
    except OSError as error:
        if error.filename is not None:
            raise ConfigError(f"--ready-file: {error.filename}: {error.strerror}") from error
        raise ConfigError(f"--port: {config.ports.first}: {error.strerror}") from error


def _read_config(flags: dict[str, Any]) -> Config:
    try:
        read_keys(flags["keys"])
    except KeyFileError as error:
        raise ConfigError(f"--keys: {error}") from error
    return Config(
        settings=Settings(
            node=NodeName(default_hostname(flags["hostname_override"])),
            timing=PROFILES[flags["profile"]],
            without_majority=WithoutMajority(flags["without_majority"]),
            minority_hold=MinorityHold(flags["minority_hold"]),
            grace_s=parse_duration("--grace", flags["grace"]),
        ),
        keys=flags["keys"],
        proxy_socket=_socket_path("--proxy-socket", flags["proxy_socket"]),
        control_socket=_socket_path("--announcer-control", flags["announcer_control"]),
        memory=flags["memory"],
        ports=Ports(flags["port"]),
        peers=_read_ips("--peer", flags["peer"]),
        gateways=_read_ips("--gateway", flags["gateway"]),
        options=Options(
            leaves_cordoned=flags["leave_cordoned"],
            leaves_not_ready=not flags["stay_not_ready"],
            ignores_exclude_label=flags["ignore_exclude_label"],
            shares=flags["experimental_spread_clients"],
        ),
        ready_file=flags["ready_file"],
    )


def _read_ips(flag: str, texts: tuple[str, ...]) -> tuple[IP, ...]:
    found = []
    for text in texts:
        ip = parse_ip(text)
        if ip is None:
            raise ConfigError(f'{flag}: "{text}" is not an address; write it as 192.0.2.1 or 2001:db8::1')
        found.append(ip)
    return tuple(found)


def _socket_path(flag: str, path: Path) -> Path:
    most = 107  # sun_path
    if len(str(path).encode()) > most:
        raise ConfigError(f"{flag}: {path}: longer than the {most} bytes of a socket's path")
    return path
