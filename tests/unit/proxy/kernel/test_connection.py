"""Errors in plain words. The socket itself is tested on the kernel."""

import errno
import socket

import pytest

from proxy.kernel.change import KernelError
from proxy.kernel.connection import explain_errno, prepare_socket


@pytest.mark.parametrize(
    ("code", "words"),
    [
        pytest.param(errno.EPERM, "CAP_NET_ADMIN", id="no privilege"),
        pytest.param(errno.EPROTONOSUPPORT, "no nf_tables", id="no netfilter netlink"),
        pytest.param(errno.EOPNOTSUPP, "no nf_tables", id="no nf_tables"),
        pytest.param(errno.EAFNOSUPPORT, "no nf_tables", id="no such family"),
        pytest.param(errno.ENOBUFS, "buffer", id="replies lost"),
        pytest.param(errno.EEXIST, "File exists", id="anything else in the system's words"),
    ],
)
def test_an_operator_understands_it(code: int, words: str) -> None:
    assert words in explain_errno(code)


def test_a_socket_that_takes_no_netlink_options_is_an_error_of_the_kernels_and_closed() -> None:
    other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    with pytest.raises(KernelError, match="no use of a netlink socket: "):
        prepare_socket(other, 1 << 12)

    assert other.fileno() == -1
