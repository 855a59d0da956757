"""EFFECT. The tables of this network namespace as they are; nothing is written."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from endpointslice.types import Family
from proxy.kernel.attributes import pack_name, parse_attributes, parse_name
from proxy.kernel.batch import Message, Type
from proxy.kernel.change import KernelError
from proxy.kernel.connection import Connection
from proxy.kernel.dumps import Unusable, iter_elements
from proxy.kernel.elements import LIST_SET
from proxy.kernel.netlink import NftKernel, host_families
from proxy.verify import foreign
from proxy.verify.foreign import Foreign
from proxy.verify.own import Elements

_TABLE = 1  # NFTA_*_TABLE: the table's name in every request
_TIMEOUT_S = 60.0
_ATTEMPTS = 3


def read_generation() -> int:
    """A number that every transaction of anybody changes."""
    with closing(Connection()) as connection:
        return connection.generation()


def find_families(table: str) -> tuple[Family, ...]:
    """Those that have a table of that name. KernelError without the right to look."""
    with closing(Connection()) as connection:
        name = pack_name(_TABLE, table)
        return tuple(one for one in host_families() if connection.request(Message(Type.GETTABLE, one, name)))


def read_own_elements(family: Family) -> Elements | None:
    """Our table's; None: it isn't as this version makes it."""
    with NftKernel((family,)) as kernel:
        installed = kernel.read()
        return installed.elements if installed is not None else None


def read_foreign(family: Family) -> Foreign:
    """kube-proxy's table of that family, of one moment if it rests for that long, else as well as can be.

    Endpoints stand in a set for each Service, and the kernel finds sets by going through all of them: 10,000 Services
    take seconds, in which a busy proxy writes again. What doesn't fit together then differs at the next look.
    """
    with closing(Connection()) as connection:
        for _attempt in range(_ATTEMPTS):
            before = connection.generation()
            found = _read_foreign(connection, family)
            if connection.generation() == before and not isinstance(found, Unusable):
                return found
    if isinstance(found, Unusable):
        raise KernelError("kube-proxy's table changed during each attempt to read it", unknown=True)
    return found


def _read_foreign(connection: Connection, family: Family) -> Foreign | Unusable:
    name = pack_name(_TABLE, foreign.TABLE)

    def dump(kind: Type, attributes: bytes) -> Iterator[bytes]:
        return (reply.payload for reply in connection.dump(Message(kind, family, attributes)))

    hooks, chains = foreign.parse_chains(dump(Type.GETCHAIN, b""))
    rules = foreign.parse_rules(family, dump(Type.GETRULE, name))
    shapes = [foreign.parse_shape(payload) for payload in dump(Type.GETSET, name)]
    elements = {}
    for shape in shapes:
        if shape.bindings:
            continue
        payloads = dump(Type.GETSETELEM, name + pack_name(LIST_SET, shape.name))
        found = foreign.pair_elements(shape, list(iter_elements(payloads)))
        if isinstance(found, Unusable):
            return Unusable.REPEATED
        elements[shape.name] = found
    return Foreign(
        family=family,
        hooks=hooks,
        rules={chain: tuple(rules.get(chain, ())) for chain in chains},
        elements=elements,
        timeouts_s={shape.name: shape.timeout_s for shape in shapes if shape.bindings},
    )


def finds_iptables_mode() -> bool:
    """Whether kube-proxy's chains of iptables mode are here, of nf_tables, or of legacy tables if iptables can tell."""
    with closing(Connection()) as connection:
        for reply in connection.dump(Message(Type.GETCHAIN, Family.IPV4, b"")):
            found = parse_attributes(reply.payload)
            if (parse_name(found.get(1, b"")), parse_name(found.get(3, b""))) == ("nat", "KUBE-SERVICES"):
                return True
    names = Path("/proc/thread-self/net/ip_tables_names")  # not there without the module; root's alone
    command = ["iptables-legacy-save", "-t", "nat"]
    if not shutil.which(command[0]):
        return False
    try:
        if "nat" not in names.read_text().split():
            return False
        saved = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return False  # it is for a hint alone
    return ":KUBE-SERVICES " in saved.stdout
