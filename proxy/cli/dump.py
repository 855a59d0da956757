"""`closeby dump`: all that the decisions read, as one file."""

from typing import Any

import click

from proxy.cli.kube_proxy import settings_options
from proxy.cli.loading import load_options, load_state
from proxy.dump import render_dump


@click.command()
@load_options
@click.option("--node", default="", metavar="NAME", help="The node that the dump is of; this host's own by default.")
@settings_options
def dump(**flags: Any) -> None:
    """Print all that the decisions read as one JSON document, which plan and explain take by --dump.

    Without a source it is the running daemon's, as it stands. It holds names, addresses and labels of Services,
    endpoints and nodes, and no Secret.

    \b
    Examples:
      closeby dump > closeby-dump.json
      closeby dump --manifests ./manifests --node node-1 > closeby-dump.json
    """  # noqa: D301 (click reads the backslash)
    loaded, settings = load_state(flags)
    click.echo(render_dump(loaded.snapshot, settings), nl=False)
