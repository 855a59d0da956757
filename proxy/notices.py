"""What the daemon has to say to whoever looks at an object: a Kubernetes Event, where there is an API server."""

from collections.abc import Callable
from typing import NamedTuple


class Notice(NamedTuple):
    """One Event about an object, with kube-proxy's or MetalLB's reasons."""

    reason: str  # "Starting", "FailedToStartServiceHealthcheck"
    action: str
    note: str
    kind: str
    name: str
    namespace: str = ""  # "" for a Node
    warning: bool = False
    api_version: str = "v1"  # of the kind


Tell = Callable[[Notice], None]  # returns at once and never fails: nobody waits for an Event


def tell_nobody(_notice: Notice) -> None:
    """For a source that takes no Events: a folder of manifests."""
