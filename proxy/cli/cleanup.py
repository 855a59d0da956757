"""`closeby cleanup`: take our tables away."""

from pathlib import Path

import click

from proxy.cli.options import DEFAULT_SOCKET
from proxy.control import check_lock
from proxy.kernel.netlink import NftKernel, host_families


@click.command()
@click.option(
    "--control-socket",
    type=click.Path(path_type=Path),
    default=DEFAULT_SOCKET,
    show_default=True,
    help="Of the daemon that must have stopped.",
)
def cleanup(control_socket: Path) -> None:
    """Remove exactly what closeby put into the kernel: the tables `ip closeby` and `ip6 closeby`.

    Stop the daemon first: it would put its tables back at once, so this refuses while it runs. Connections to Services
    break, established ones too: the kernel stops translating them. Removing tables that aren't there is no error.

    \b
    Example:
      systemctl stop closeby && closeby cleanup
    """  # noqa: D301 (click reads the backslash)
    check_lock(control_socket)
    with NftKernel(host_families()) as kernel:
        kernel.remove()
    click.echo("Removed the tables ip closeby and ip6 closeby.")
