"""EFFECT: the host's own addresses, by rtnetlink. The only module of the daemon that uses pyroute2 for addresses."""

import threading
from collections.abc import Callable

import structlog
from pyroute2 import IPRoute
from pyroute2.netlink.rtnl import RTMGRP_IPV4_IFADDR, RTMGRP_IPV6_IFADDR

from endpointslice.addresses import parse_ip
from endpointslice.types import IP

log = structlog.get_logger()

_SCOPE_GLOBAL = 0  # RT_SCOPE_UNIVERSE: neither link-local nor host


def list_host_addresses() -> frozenset[IP]:
    """Every address of global scope on any interface of this network namespace."""
    with IPRoute() as route:
        return _global_addresses(route)


def _global_addresses(route: IPRoute) -> frozenset[IP]:
    found: set[IP] = set()
    for message in route.get_addr():
        text = message.get_attr("IFA_LOCAL") or message.get_attr("IFA_ADDRESS")
        ip = parse_ip(text) if isinstance(text, str) else None
        if message["scope"] == _SCOPE_GLOBAL and ip is not None:
            found.add(ip)
    return frozenset(found)


class HostAddressWatch:
    """Posts the host's addresses, once at start and after every change, from a thread of its own."""

    def __init__(self, post: Callable[[frozenset[IP]], None]) -> None:
        self._post = post
        self._thread = threading.Thread(target=self._run, name="host-addresses", daemon=True)

    def start(self) -> None:
        """Begin; the first post follows at once."""
        self._thread.start()

    def _run(self) -> None:
        with IPRoute() as events, IPRoute() as queries:
            events.bind(RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR)
            posted: frozenset[IP] | None = None
            while True:
                addresses = _global_addresses(queries)
                if addresses != posted:
                    posted = addresses
                    self._post(addresses)
                events.get()
