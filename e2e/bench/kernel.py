"""EFFECT: what the kernel holds in a proxy's namespace, asked cheaply: no listener, no `nft`, no dump while waiting."""

import time
from collections.abc import Callable
from ipaddress import IPv4Address

from e2e.bench.scale import PORT, Scale, service_ip
from e2e.world.netns import run_in
from endpointslice.types import Family
from proxy.kernel.attributes import iter_attributes, pack_attribute, pack_name, pack_nest
from proxy.kernel.batch import Message, Type
from proxy.kernel.connection import Connection

_POLL_S = 0.002
_TABLE = 1  # NFTA_TABLE_NAME and NFTA_SET_ELEM_LIST_TABLE
_LIST_SET = 2
_LIST_ELEMENTS = 3
_ONE = 1  # NFTA_LIST_ELEM, NFTA_SET_ELEM_KEY and NFTA_DATA_VALUE
_TCP = 6


class KernelView:
    """nf_tables in one network namespace; used by one thread at a time."""

    def __init__(self, netns: str) -> None:
        self._connection = run_in(netns, Connection)  # a socket stays in the namespace that it was made in

    def close(self) -> None:
        """Close the socket."""
        self._connection.close()

    def generation(self) -> int:
        """Grows with every transaction in the namespace."""
        return self._connection.generation()

    def has_service(self, table: str, services: str, number: int) -> bool:
        """Whether the map has the ClusterIP and port of Service `number`."""
        key = IPv4Address(service_ip(number)).packed + bytes((_TCP, 0, 0, 0)) + PORT.to_bytes(2, "big") + b"\0\0"
        element = pack_nest(_LIST_ELEMENTS, pack_nest(_ONE, pack_nest(_ONE, pack_attribute(_ONE, key))))
        where = pack_name(_TABLE, table) + pack_name(_LIST_SET, services)
        return self._connection.request(Message(Type.GETSETELEM, Family.IPV4, where + element)) is not None

    def count_elements(self, table: str, name: str) -> int:
        """How many elements a set or map has; 0 if there is none."""
        where = pack_name(_TABLE, table) + pack_name(_LIST_SET, name)
        total = 0
        for reply in self._connection.dump(Message(Type.GETSETELEM, Family.IPV4, where)):
            for kind, first, last in iter_attributes(reply.payload):
                if kind == _LIST_ELEMENTS:
                    total += sum(1 for _ in iter_attributes(reply.payload, first, last))
        return total

    def remove_table(self, table: str) -> None:
        """Delete a table in both families, where it is there."""
        name = pack_name(_TABLE, table)
        for family in Family:
            if self._connection.request(Message(Type.GETTABLE, family, name)) is not None:
                self._connection.transact([Message(Type.DELTABLE, family, name)])

    def wait_for_services(
        self, where: tuple[str, str], scale: Scale, check: Callable[[], None], timeout_s: float
    ) -> float:
        """Monotonic time at which every Service was there, to 2 ms; `where` is the table and its map.

        `check` is called now and then, and raises if waiting is of no use. TimeoutError.
        """
        table, services = where
        deadline = time.monotonic() + timeout_s
        seen = self.generation()
        while True:
            now = time.monotonic()
            generation = self.generation()
            if generation != seen and self.has_service(table, services, scale.services - 1):
                if self.count_elements(table, services) >= scale.services:
                    return now
            elif now > deadline:
                raise TimeoutError(f"{table}: {scale.services} Services weren't in the kernel within {timeout_s:g} s")
            check()
            time.sleep(_POLL_S)
