"""EFFECT: the host's own addresses, by rtnetlink. The only module of the daemon that uses pyroute2 for addresses."""

import threading
import time
from collections.abc import Callable

import structlog
from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.netlink.rtnl import RTMGRP_IPV4_IFADDR, RTMGRP_IPV6_IFADDR

from endpointslice.addresses import parse_ip
from endpointslice.types import IP

log = structlog.get_logger()

RETRY_S = 1.0  # after an error of the sockets
_SCOPE_GLOBAL = 0  # RT_SCOPE_UNIVERSE: neither link-local nor host


class HostAddressWatch:
    """Posts the addresses of global scope, once at start, and after every change from a thread of its own."""

    def __init__(self, post: Callable[[frozenset[IP]], None]) -> None:
        self._post = post
        self._posted: frozenset[IP] | None = None
        self._thread = threading.Thread(target=self._run, name="host-addresses", daemon=True)

    def start(self) -> None:
        """Post what there is now, so that whoever writes next knows it, and begin to watch."""
        try:
            self._post_new(list_addresses())
        except (OSError, NetlinkError) as error:
            log.warning("host_addresses_unwatched", why=str(error), retry_s=0.0)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                self._watch()
            except (OSError, NetlinkError) as error:  # such as ENOBUFS, after more changes than the socket holds
                log.warning("host_addresses_unwatched", why=str(error), retry_s=RETRY_S)
                time.sleep(RETRY_S)

    def _watch(self) -> None:
        with IPRoute() as events, IPRoute() as queries:
            events.bind(RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR)
            while True:
                self._post_new(_list_addresses(queries))
                events.get()

    def _post_new(self, addresses: frozenset[IP]) -> None:
        if addresses != self._posted:
            self._posted = addresses
            self._post(addresses)


def list_addresses() -> frozenset[IP]:
    """The addresses of global scope, now."""
    with IPRoute() as route:
        return _list_addresses(route)


def _list_addresses(route: IPRoute) -> frozenset[IP]:
    found: set[IP] = set()
    for message in route.get_addr():
        text = message.get_attr("IFA_LOCAL") or message.get_attr("IFA_ADDRESS")
        ip = parse_ip(text) if isinstance(text, str) else None
        if message["scope"] == _SCOPE_GLOBAL and ip is not None:
            found.add(ip)
    return frozenset(found)
