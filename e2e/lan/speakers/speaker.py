"""What the rig asks of whoever moves the VIP."""

from collections.abc import Sequence
from typing import Protocol

from e2e.lan.members import Member


class Speaker(Protocol):
    """One daemon a node. Every method returns when it was done, not when it took effect; all may be called again."""

    @property
    def name(self) -> str:
        """Of the speaker and its settings, as the tables' columns say."""

    @property
    def heartbeats(self) -> Sequence[str]:
        """What nft matches its heartbeats by, in the bridge family; the rig cuts these and nothing else."""

    def missing(self) -> str | None:
        """What it lacks to run on this machine, as a sentence; None if nothing."""

    def start(self, node: Member) -> None:
        """Run on the node, unless it does."""

    def end(self, node: Member) -> None:
        """SIGTERM, as an update sends it; returns when it is gone."""

    def restart(self, node: Member) -> None:
        """What an update does to one node; the next daemon is ready then, if it can tell."""

    def drain(self, node: Member) -> None:
        """Give away, planned, what the node owns."""

    def kill(self, node: Member) -> None:
        """SIGKILL to all of the node's processes."""

    def stop(self, node: Member) -> None:
        """SIGSTOP."""

    def cont(self, node: Member) -> None:
        """SIGCONT."""

    def lose_api(self) -> None:
        """The API server is away for all nodes, until `close`; nothing for a speaker that asks none."""

    def close(self) -> None:
        """Nothing of it runs anywhere, and no node keeps what it configured."""
