"""What tests on the real kernel share."""

import sys
from collections.abc import Iterator

import pytest

from proxy.kernel.change import Installed
from proxy.kernel.netlink import NftKernel
from tests.netns.kernel_space import ONE_SERVICE, Space, open_space


@pytest.fixture
def python() -> list[str]:
    """The command of this interpreter, for a program that must run with other rights or in another namespace."""
    return [sys.executable]


@pytest.fixture
def space() -> Iterator[Space]:
    """An empty network namespace."""
    with open_space() as opened:
        yield opened


@pytest.fixture
def kernel(space: Space) -> NftKernel:
    """The writer of our tables in `space`."""
    return space.open_kernel()


@pytest.fixture
def installed(kernel: NftKernel) -> Installed:
    """Our tables in `space` with one Service."""
    return kernel.install(ONE_SERVICE)
