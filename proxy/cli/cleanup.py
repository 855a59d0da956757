"""`closeby cleanup`: take our tables away, or what kube-proxy left."""

import sys
from pathlib import Path

import click

from proxy.cli.options import DEFAULT_SOCKET
from proxy.control import check_lock
from proxy.kernel.netlink import NftKernel, host_families
from proxy.leftovers.host import find_running, our_table_is_here, remove_all


@click.command()
@click.option(
    "--control-socket",
    type=click.Path(path_type=Path),
    default=DEFAULT_SOCKET,
    show_default=True,
    help="Of the daemon that must have stopped.",
)
@click.option(
    "--kube-proxy",
    "of_kube_proxy",
    is_flag=True,
    help="Remove what kube-proxy left instead, and nothing of closeby's, which may run meanwhile.",
)
def cleanup(*, control_socket: Path, of_kube_proxy: bool) -> None:
    """Remove exactly what closeby put into the kernel: the tables `ip closeby` and `ip6 closeby`.

    Stop the daemon first: it would put its tables back at once, so this refuses while it runs. Connections to Services
    break, established ones too: the kernel stops translating them. Removing tables that aren't there is no error.

    With --kube-proxy: the tables `ip kube-proxy` and `ip6 kube-proxy`; where iptables is installed, kube-proxy's KUBE-
    chains and the jumps to them, legacy and nft; where ipvsadm and ipset are installed, its virtual servers and sets,
    and the device kube-ipvs0. Nobody else's rules are touched. Stop kube-proxy first, and let closeby be ready.

    \b
    Examples:
      systemctl stop closeby && closeby cleanup
      closeby cleanup --kube-proxy
    """  # noqa: D301 (click reads the backslash)
    if of_kube_proxy:
        _clean_after_kube_proxy()
        return
    check_lock(control_socket)
    with NftKernel(host_families()) as kernel:
        kernel.remove()
    click.echo("Removed the tables ip closeby and ip6 closeby.")


def _clean_after_kube_proxy() -> None:
    """Exit code 1 if kube-proxy runs here, or something could not be removed."""
    if running := find_running():
        pids = ", ".join(map(str, running))
        click.echo(f"closeby: kube-proxy runs here (process {pids}) and would put its rules back: stop it", err=True)
        sys.exit(1)
    if not our_table_is_here():
        click.echo("closeby's tables aren't here: no Service is served on this node until a proxy runs", err=True)
    results = []
    for result in remove_all():
        results.append(result)
        click.echo(f"{'Removed' if result.good else 'closeby: not removed:'} {result.text}", err=not result.good)
    if not results:
        click.echo("kube-proxy left nothing here.")
    if not all(result.good for result in results):
        sys.exit(1)
