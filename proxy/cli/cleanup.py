"""`closeby cleanup`: take our tables away."""

import click

from proxy.kernel.netlink import NftKernel


@click.command()
def cleanup() -> None:
    """Remove exactly what closeby put into the kernel: the tables `ip closeby` and `ip6 closeby`.

    Stop the daemon first: it puts its tables back within a second. Connections to Services break, established ones
    too: the kernel stops translating them. Removing tables that aren't there is no error.
    """
    with NftKernel() as kernel:
        kernel.remove()
    click.echo("Removed the tables ip closeby and ip6 closeby.")
