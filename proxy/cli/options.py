"""Flags that several commands share, named as kube-proxy's where it has them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from endpointslice.daemonsets import Mode

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_SOCKET = Path("/run/closeby/closeby.sock")


manifests_option = click.option(
    "--manifests",
    type=click.Path(path_type=Path),
    help="Read Services, slices, Nodes and DaemonSets from the YAML and JSON files of this folder, and watch it.",
)
same_node_option = click.option(
    "--same-node-for-daemon-sets",
    type=click.Choice([mode.value for mode in Mode]),
    default=Mode.AUTO.value,
    show_default=True,
    help="PreferClose means the same node for a Service whose pods are one DaemonSet's: if the DaemonSet "
    "covers its nodes, always, or never.",
)


def source_options(command: F) -> F:
    """--manifests and --kubeconfig."""
    kubeconfig = click.option(
        "--kubeconfig", type=click.Path(path_type=Path), help="Talk to the API server that this file names."
    )
    return manifests_option(kubeconfig(command))
