"""EFFECT. Our tables in the kernel: read, install, change, count, remove."""

from collections.abc import Collection, Mapping
from types import TracebackType
from typing import Self

from endpointslice.types import Family
from proxy.kernel.change import Change, Counters, Elements, Installed, KernelError
from proxy.kernel.ruleset import SetId

__all__ = ["KernelError", "NftKernel"]


class NftKernel:
    """Our tables behind one netlink socket, which belongs to one thread; opened at construction, close() frees it."""

    def __init__(self, families: Collection[Family] = (Family.IPV4, Family.IPV6)) -> None:
        self.families = tuple(families)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _t: type[BaseException] | None, _e: BaseException | None, _tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the socket; the tables stay."""

    @property
    def port_id(self) -> int:
        """The netlink port that our transactions come from: what the monitor must not report."""
        raise NotImplementedError

    def read(self) -> Installed | None:
        """What our tables hold. None: absent, of another layout, or rules or sets not ours: install()."""
        raise NotImplementedError

    def install(self, elements: Mapping[SetId, Elements]) -> Installed:
        """One transaction that replaces our tables by fresh ones with these elements."""
        raise NotImplementedError

    def run(self, change: Change, installed: Installed) -> Counters:
        """One transaction; then `installed` includes it. The final counts of the verdict elements it deleted."""
        raise NotImplementedError

    def counters(self, set_id: SetId) -> Mapping[bytes, int]:
        """Packets (new connections) per element of a verdict map with counters."""
        raise NotImplementedError

    def remove(self) -> None:
        """Delete exactly our tables; nothing happens where there are none."""
        raise NotImplementedError
