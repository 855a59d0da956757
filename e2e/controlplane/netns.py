"""Sockets and commands in a named network namespace, for a control plane that lives in one."""

import socket
from concurrent.futures import ThreadPoolExecutor

from pyroute2 import netns


def command_in(name: str | None, command: list[str]) -> list[str]:
    """The command as run in the namespace; unchanged for None, the caller's own."""
    return ["ip", "netns", "exec", name, *command] if name else command


def connect_in(name: str | None, address: tuple[str, int], timeout_s: float) -> socket.socket:
    """A connected TCP socket. It stays in the namespace where it was made, so any thread may use it."""
    if name is None:
        return socket.create_connection(address, timeout_s)
    with ThreadPoolExecutor(max_workers=1) as thread:  # the namespace belongs to the thread, which ends here
        return thread.submit(_connect_here, name, address, timeout_s).result()


def _connect_here(name: str, address: tuple[str, int], timeout_s: float) -> socket.socket:
    netns.setns(name)
    return socket.create_connection(address, timeout_s)
