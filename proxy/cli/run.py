"""`closeby run`: the daemon."""

from pathlib import Path
from typing import Any, NamedTuple

import click
import structlog

from endpointslice.daemonsets import Mode
from proxy.cli.kube_proxy import config_option, flag_texts, kube_proxy_options, read_file, read_ports
from proxy.cli.options import DEFAULT_SOCKET, manifests_option, same_node_option
from proxy.config import Config, ConfigError, check_sources
from proxy.head_start import start_source
from proxy.kubeproxy.configure import Own, build_config, name_by_flag, name_in_file
from proxy.kubeproxy.defaults import fill_defaults
from proxy.kubeproxy.notes import Note, counts_beside_file, note_file, note_flags
from proxy.kubeproxy.types import KubeProxyConfiguration
from proxy.kubeproxy.values import set_flags
from proxy.logs import set_up_logs
from proxy.memory import prepare_memory

log = structlog.get_logger()


class _Verbosity(click.ParamType[str]):
    """A number's text; `-v=4`, as Go's flags are written, is taken as well."""

    name = "integer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value).removeprefix("=")
        if not text.isdecimal():
            self.fail(f"{text!r} is not a number from 0 up", param, ctx)
        return text


@click.command("run")
@config_option("Take kube-proxy's settings from this KubeProxyConfiguration (YAML or JSON) instead of its flags.")
@manifests_option
@click.option("--master", default="", help="The API server's URL, instead of the kubeconfig's or of the pod's.")
@click.option("--hostname-override", default="", metavar="NAME", help="The Node's name; the host's own by default.")
@same_node_option
@kube_proxy_options
@click.option(
    "--min-sync-period",
    default="",
    metavar="DURATION",
    help="The least time between two writes; changes in between are written as one.  [default: 20ms]",
)
@click.option(
    "--sync-period",
    default="",
    metavar="DURATION",
    help="The longest time until a refused write is tried again.  [default: 30s]",
)
@click.option(
    "--control-socket",
    type=click.Path(path_type=Path),
    default=DEFAULT_SOCKET,
    show_default=True,
    help="Where `closeby dump` asks; for root only.",
)
@click.option(
    "--announcer-socket",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Tell `closeby announce` on this node, at this socket, which load-balancer addresses the kernel serves.",
)
@click.option(
    "--pool-namespace",
    default="metallb-system",
    metavar="NAME",
    show_default=True,
    help="Where IPAddressPools and L2Advertisements are, for an announcer; the controller's --namespace.",
)
@click.option(
    "--proc-sys",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=Path("/proc/sys"),
    show_default=True,
    help="Where conntrack settings are written; in a container, a mount of the host's.",
)
@click.option(
    "--log-format",
    type=click.Choice(["auto", "json", "console"]),
    help="How log lines look; auto is console on a terminal.  [default: auto]",
)
@click.option("-v", "--v", type=_Verbosity(), help="4 and above shows each decision.  [default: 0]")
@click.option(
    "--write-config-to",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write what --config or the flags say, with all defaults, to this file, and end.",
)
@click.option(
    "--init-only", is_flag=True, help="Set the kernel's conntrack settings, which takes more rights, and end."
)
@click.option("--cleanup", is_flag=True, hidden=True)
def run(**flags: Any) -> None:
    """Run the node's proxy until SIGTERM; the rules stay in place when it stops.

    The source is the cluster that this pod runs in, the API server of --kubeconfig, or the folder of --manifests.
    kube-proxy's command lines and configuration files work unchanged: docs/configuration.md lists what does what.

    \b
    Examples:
      closeby run --manifests ./manifests --hostname-override node-1
      closeby run --kubeconfig /etc/kubernetes/proxy.conf --cluster-cidr 10.244.0.0/16
      closeby run --config /var/lib/kube-proxy/config.conf --hostname-override node-1
    """  # noqa: D301 (click reads the backslash)
    asked = read_settings(flags)
    set_up_logs(asked.config.verbosity, asked.config.log_format)
    for note in asked.notes:
        log.info("setting_noted", setting=note.setting, why=note.why)
    if flags["write_config_to"] is not None:
        _write_config(flags["write_config_to"], asked.source)
    elif flags["init_only"]:
        from proxy.sysctls import apply_conntrack_settings  # noqa: PLC0415  # for the rare case

        apply_conntrack_settings(asked.config.conntrack, asked.config.proc_sys)
    else:
        _run_daemon(asked, flags["config_file"])


class Asked(NamedTuple):
    """What a command line and its file ask for."""

    config: Config
    notes: tuple[Note, ...]
    source: KubeProxyConfiguration
    content: bytes = b""  # of the file


def read_settings(flags: dict[str, Any]) -> Asked:
    """From the command's parameters; ConfigError names the flag, or the file with line and field."""
    if flags["cleanup"]:
        raise ConfigError("--cleanup: run `closeby cleanup` for that")
    texts = flag_texts(flags)
    file: Path | None = flags["config_file"]
    turned_off = read_ports(flags, texts)
    if file is None:
        source = set_flags(KubeProxyConfiguration(), texts)
        kubeconfig = source.client_connection.kubeconfig
        check_sources(flags["manifests"], Path(kubeconfig) if kubeconfig else None)
        own = _read_own(flags)._replace(turned_off=turned_off)
        return Asked(build_config(source, own, name_by_flag), tuple(note_flags(source, texts)), source)
    from proxy.kubeproxy.file import parse_config  # noqa: PLC0415  # flags alone need no YAML

    content = read_file(file)
    source = parse_config(str(file), content)
    notes = tuple(note_file(source, texts))
    source = set_flags(source, {flag: text for flag, text in texts.items() if counts_beside_file(flag)})
    name = name_in_file(file)
    config = build_config(source, _read_own(flags), name)
    check_sources(config.manifests, config.kubeconfig, name=name("clientConnection.kubeconfig"))
    return Asked(config, notes, source, content)


def _read_own(flags: dict[str, Any]) -> Own:
    return Own(
        manifests=flags["manifests"],
        master=flags["master"],
        hostname_override=flags["hostname_override"],
        same_node=Mode(flags["same_node_for_daemon_sets"]),
        control_socket=flags["control_socket"],
        announcer_socket=flags["announcer_socket"],
        pool_namespace=flags["pool_namespace"],
        log_format=flags["log_format"] or "",
        min_sync_period=flags["min_sync_period"],
        sync_period=flags["sync_period"],
        proc_sys=flags["proc_sys"],
    )


def _write_config(file: Path, source: KubeProxyConfiguration) -> None:
    from proxy.kubeproxy.file import render_config  # noqa: PLC0415  # needs YAML

    try:
        file.write_text(render_config(fill_defaults(source)))
    except OSError as error:
        raise ConfigError(f"--write-config-to: {file}: {error.strerror}") from error


def _run_daemon(asked: Asked, file: Path | None) -> None:
    prepare_memory()
    started = start_source(asked.config)
    # Imported while the API server answers: half of all that the daemon imports.
    from proxy.daemon import Daemon  # noqa: PLC0415
    from proxy.kubeproxy.watch import ConfigFileWatch  # noqa: PLC0415

    daemon = Daemon(asked.config, started)
    if file is not None:
        ConfigFileWatch(file, asked.content, daemon.end).start()
    daemon.run()
