"""kube-proxy's flags for connection tracking."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from proxy.config import parse_duration
from proxy.conntrack.settings import ConntrackSettings

F = TypeVar("F", bound=Callable[..., Any])

_DURATIONS = (
    ("--conntrack-tcp-timeout-established", "24h", "How long an idle TCP connection is kept"),
    ("--conntrack-tcp-timeout-close-wait", "1h", "How long a TCP connection in CLOSE_WAIT is kept"),
    ("--conntrack-udp-timeout", "0s", "How long a UDP flow without an answer is kept"),
    ("--conntrack-udp-timeout-stream", "0s", "How long an idle UDP flow with answers is kept"),
)


def conntrack_options(command: F) -> F:
    """What of the host's connection tracking is set at start."""
    options = [
        click.option(
            "--conntrack-max-per-core",
            type=click.IntRange(min=0),
            default=32_768,
            show_default=True,
            help="Tracked connections per core of the host; 0 leaves nf_conntrack_max as it is.",
        ),
        click.option(
            "--conntrack-min",
            type=click.IntRange(min=0),
            default=131_072,
            show_default=True,
            help="Tracked connections at least, however few cores there are.",
        ),
        *(
            click.option(flag, default=default, show_default=True, help=f"{text}; 0 leaves it to the host.")
            for flag, default, text in _DURATIONS
        ),
        click.option(
            "--conntrack-tcp-be-liberal",
            is_flag=False,
            flag_value="true",
            type=click.BOOL,
            default=False,
            show_default=True,
            help="Accept TCP packets outside of the window, for asymmetric routes.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def build_conntrack(flags: Mapping[str, Any]) -> ConntrackSettings:
    """The settings from the flags' values; ConfigError names the flag."""
    established, close_wait, udp, udp_stream = (
        parse_duration(flag, flags[flag[2:].replace("-", "_")]) for flag, _default, _text in _DURATIONS
    )
    return ConntrackSettings(
        max_per_core=flags["conntrack_max_per_core"],
        min=flags["conntrack_min"],
        tcp_established_timeout_s=established,
        tcp_close_wait_timeout_s=close_wait,
        udp_timeout_s=udp,
        udp_stream_timeout_s=udp_stream,
        tcp_be_liberal=flags["conntrack_tcp_be_liberal"],
    )
