"""`closeby run`: the daemon."""

from pathlib import Path
from typing import Any

import click

from proxy.cli.conntrack import build_conntrack, conntrack_options
from proxy.cli.options import DEFAULT_SOCKET, build_settings, settings_options, source_options
from proxy.config import Config, check_sources, parse_bind_address, parse_duration
from proxy.logs import set_up_logs


class _Verbosity(click.ParamType[int]):
    """A number; `-v=4`, as Go's flags are written, is taken as well."""

    name = "integer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value).removeprefix("=")
        if not text.isdecimal():
            self.fail(f"{text!r} is not a number from 0 up", param, ctx)
        return int(text)


@click.command("run")
@source_options
@click.option("--master", default="", help="The API server's URL; overrides the kubeconfig's.")
@click.option("--hostname-override", default="", metavar="NAME", help="The Node's name; the host's own by default.")
@settings_options
@conntrack_options
@click.option(
    "--healthz-bind-address",
    default="0.0.0.0:10256",
    show_default=True,
    help="Where /healthz, /livez and /readyz answer; empty for nowhere.",
)
@click.option(
    "--metrics-bind-address",
    default="127.0.0.1:10249",
    show_default=True,
    help="Where /metrics and /proxyMode answer; empty for nowhere.",
)
@click.option(
    "--bind-address-hard-fail",
    type=bool,
    is_flag=False,
    flag_value=True,
    default=False,
    help="End if a server's address is taken; otherwise it is tried again every 5 s.",
)
@click.option(
    "--min-sync-period",
    default="20ms",
    show_default=True,
    help="The least time between two writes; changes in between are written as one.",
)
@click.option(
    "--sync-period", default="30s", show_default=True, help="The longest time until a refused write is tried again."
)
@click.option(
    "--control-socket",
    type=click.Path(path_type=Path),
    default=DEFAULT_SOCKET,
    show_default=True,
    help="Where `closeby dump` asks; for root only.",
)
@click.option(
    "--log-format",
    type=click.Choice(["auto", "json", "console"]),
    default="auto",
    show_default=True,
    help="How log lines look; auto is console on a terminal.",
)
@click.option("-v", "--v", "verbosity", type=_Verbosity(), default=0, help="4 and above shows each decision.")
def run(**flags: Any) -> None:
    """Run the node's proxy until SIGTERM; the rules stay in place when it stops.

    The source is the cluster that this pod runs in, the API server of --kubeconfig, or the folder of --manifests.

    \b
    Examples:
      closeby run --manifests ./manifests --hostname-override node-1
      closeby run --kubeconfig /etc/kubernetes/proxy.conf --cluster-cidr 10.244.0.0/16
    """  # noqa: D301 (click reads the backslash)
    from proxy.daemon import Daemon  # noqa: PLC0415 (the other commands need not wait for its imports)

    config = build_config(flags)
    set_up_logs(config.verbosity, config.log_format)
    Daemon(config).run()


def build_config(flags: dict[str, Any]) -> Config:
    """The whole configuration; ConfigError names the flag that is wrong."""
    manifests: Path | None = flags["manifests"]
    kubeconfig: Path | None = flags["kubeconfig"]
    check_sources(manifests, kubeconfig)
    return Config(
        settings=build_settings(
            flags["hostname_override"],
            cluster_cidr=flags["cluster_cidr"],
            nodeport_addresses=flags["nodeport_addresses"],
            same_node=flags["same_node_for_daemon_sets"],
        ),
        manifests=manifests,
        kubeconfig=kubeconfig,
        master=flags["master"],
        healthz=parse_bind_address("--healthz-bind-address", flags["healthz_bind_address"], 10256),
        metrics=parse_bind_address("--metrics-bind-address", flags["metrics_bind_address"], 10249),
        bind_address_hard_fail=flags["bind_address_hard_fail"],
        min_sync_period_s=parse_duration("--min-sync-period", flags["min_sync_period"]),
        sync_period_s=parse_duration("--sync-period", flags["sync_period"]),
        control_socket=flags["control_socket"],
        verbosity=flags["verbosity"],
        log_format=flags["log_format"],
        conntrack=build_conntrack(flags),
    )
