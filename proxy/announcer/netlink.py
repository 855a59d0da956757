"""EFFECT: interfaces, addresses and default routes by rtnetlink, at start and after each change, from a thread."""

import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import structlog

from endpointslice.addresses import parse_ip
from proxy.announcer.ethernet import parse_mac
from proxy.announcer.wires import Gateway, Interface
from proxy.lean_imports import bare_package

with bare_package("pyroute2"):
    from pyroute2.iproute import IPRoute
    from pyroute2.netlink.exceptions import NetlinkError
    from pyroute2.netlink.rtnl import (
        RTMGRP_IPV4_IFADDR,
        RTMGRP_IPV4_ROUTE,
        RTMGRP_IPV6_IFADDR,
        RTMGRP_IPV6_ROUTE,
        RTMGRP_LINK,
    )

log = structlog.get_logger()

RETRY_S = 1.0  # after an error of the sockets
_GROUPS = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE
_UP, _BROADCAST, _LOOPBACK, _NOARP, _LOWER_UP = 0x1, 0x2, 0x8, 0x80, 0x10000
_ETHERNET = 1
_TENTATIVE, _OPTIMISTIC, _DAD_FAILED = 0x40, 0x04, 0x08


class Links(NamedTuple):
    """What there is now."""

    interfaces: tuple[Interface, ...]
    gateways: tuple[Gateway, ...]


class LinkWatch:
    """Posts Links, once at start and whenever they have changed."""

    def __init__(self, post: Callable[[Links], None]) -> None:
        self._post = post
        self._posted: Links | None = None

    def start(self) -> None:
        """Post what there is now, and begin to watch; OSError or NetlinkError if the kernel tells nothing."""
        with IPRoute() as route:
            self._post_new(list_links(route))
        threading.Thread(target=self._run, name="links", daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                self._watch()
            except (OSError, NetlinkError) as error:  # such as ENOBUFS, after more changes than the socket holds
                log.warning("links_unwatched", why=str(error), retry_s=RETRY_S)
                time.sleep(RETRY_S)

    def _watch(self) -> None:
        with IPRoute() as events, IPRoute() as queries:
            events.bind(_GROUPS)
            while True:
                self._post_new(list_links(queries))
                while not any(_matters(message) for message in events.get()):
                    pass

    def _post_new(self, links: Links) -> None:
        if links != self._posted:
            self._posted = links
            self._post(links)


def _matters(message: Any) -> bool:  # noqa: ANN401  # pyroute2's own type
    """Routes that aren't default ones come and go by the thousand."""
    is_route = str(message["event"]).endswith("ROUTE")
    return not is_route or message["dst_len"] == 0


def list_links(route: IPRoute) -> Links:
    """Interfaces that answer ARP, with their addresses, and default routes."""
    addresses = _list_addresses(route)
    interfaces = []
    for link in route.get_links():
        flags, mac = link["flags"], parse_mac(str(link.get_attr("IFLA_ADDRESS") or ""))
        usable = flags & _BROADCAST and not flags & (_LOOPBACK | _NOARP) and link["ifi_type"] == _ETHERNET
        if not usable or mac is None or link["index"] not in addresses:
            continue
        carrier = bool(flags & _UP and flags & _LOWER_UP)
        name = str(link.get_attr("IFLA_IFNAME"))
        interfaces.append(Interface(name, link["index"], mac, carrier, tuple(addresses[link["index"]])))
    return Links(tuple(sorted(interfaces)), tuple(sorted(_list_gateways(route))))


def _list_addresses(route: IPRoute) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for message in route.get_addr():
        flags = message.get_attr("IFA_FLAGS") or message["flags"]
        tentative = flags & _DAD_FAILED or (flags & _TENTATIVE and not flags & _OPTIMISTIC)
        text = message.get_attr("IFA_LOCAL") or message.get_attr("IFA_ADDRESS")
        ip = parse_ip(text) if isinstance(text, str) else None
        if ip is not None and not tentative:
            found.setdefault(message["index"], []).append((ip, int(message["prefixlen"])))
    return {index: sorted(addresses) for index, addresses in found.items()}


def _list_gateways(route: IPRoute) -> list[Gateway]:
    found = []
    for message in route.get_default_routes():
        interface, text = message.get_attr("RTA_OIF"), message.get_attr("RTA_GATEWAY")
        ip = parse_ip(text) if isinstance(text, str) else None
        if ip is not None and interface is not None:
            found.append(Gateway(int(interface), ip))
    return found
