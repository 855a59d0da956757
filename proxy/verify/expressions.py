"""Rules as the kernel lists them, to what they do: registers are followed, so any order of expressions is understood.

Written for the tables of kube-proxy v1.36.3, as nft 1.0.6 and Linux 6.18 list them. A rule that does anything else is
`Do.UNKNOWN`, never guessed at. Pure; numbers are those of linux/netfilter/nf_tables.h.
"""

from enum import Enum
from typing import NamedTuple

import msgspec

from endpointslice.types import Family
from proxy.kernel.attributes import iter_attributes, parse_attributes, parse_name, parse_number
from proxy.kernel.dumps import parse_data
from proxy.kernel.ruleset import address_bytes

_SOURCE_OFFSET = {Family.IPV4: 12, Family.IPV6: 8}
_DESTINATION_OFFSET = {Family.IPV4: 16, Family.IPV6: 24}
_NETWORK_HEADER, _TRANSPORT_HEADER = 1, 2
_MARK, _INPUT_NAME, _PROTOCOL = 3, 6, 16  # NFT_META_*
_META_FROM = 3  # NFTA_META_SREG: a write
_ADDRESS_TYPE, _OF_SOURCE, _OF_DESTINATION = 3, 1, 2  # NFT_FIB_RESULT_ADDRTYPE, NFTA_FIB_F_SADDR, _DADDR
_EQUAL, _UNEQUAL = 0, 1  # NFT_CMP_*
_INVERTED = 1  # NFT_LOOKUP_F_INV
_DESTINATION_NAT = 1
_PLAIN = frozenset({"counter", "masq", "dynset"})  # they decide nothing about where a packet goes


class Load(Enum):
    """What a register holds."""

    SOURCE = "source"
    DESTINATION = "destination"
    PORT = "port"
    PROTOCOL = "protocol"
    MARK = "mark"
    INTERFACE = "interface"
    SOURCE_IS_LOCAL = "source is local"
    DESTINATION_IS_LOCAL = "destination is local"
    RANDOM = "random"
    VALUE = "value"  # of an immediate, or that a map gave
    OTHER = "other"


class Do(Enum):
    """What a rule does where its conditions hold."""

    GOTO = "goto"
    JUMP = "jump"
    DROP = "drop"
    REJECT = "reject"
    MARK = "mark"
    MAP = "map"  # goes where a verdict map leads
    DNAT = "dnat"
    NOTHING = "nothing"  # that decides where a packet goes
    UNKNOWN = "unknown"


class Match(NamedTuple):
    """One condition."""

    of: Load
    value: bytes = b""  # compared with; of an address the first bytes that count
    mask: bytes = b""
    set: str = ""  # or looked for in this set
    negated: bool = False


class Rule(msgspec.Struct, frozen=True):
    """One rule."""

    do: Do
    matches: tuple[Match, ...] = ()
    target: str = ""  # a chain
    map: str = ""  # that leads on, or to an address and port
    draws: int = 0  # the map is asked for a random number below this; 0: for the packet's own fields
    endpoint: bytes = b""  # address, and port padded to 4 bytes, of a DNAT to a fixed one


class _Held(NamedTuple):
    load: Load
    value: bytes = b""
    mask: bytes = b""
    draws: int = 0
    map: str = ""


_NOTHING_HELD = _Held(Load.OTHER)


def parse_rule(family: Family, expressions: bytes) -> Rule:
    """What the rule of these NFTA_RULE_EXPRESSIONS does."""
    reader = _Reader(family)
    for _kind, first, last in iter_attributes(expressions):
        expression = parse_attributes(expressions, first, last)
        name = parse_name(expression.get(1, b""))
        reader.read(name, parse_attributes(expression.get(2, b"")))
    return Rule(
        do=reader.do,
        matches=tuple(reader.matches),
        target=reader.target,
        map=reader.map,
        draws=reader.draws,
        endpoint=reader.endpoint,
    )


class _Reader:
    """Follows one rule's expressions."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self.do = Do.NOTHING
        self.matches: list[Match] = []
        self.target = ""
        self.map = ""
        self.draws = 0
        self.endpoint = b""
        self._held: dict[int, _Held] = {}

    def read(self, name: str, found: dict[int, bytes]) -> None:
        numbers = {kind: parse_number(value) for kind, value in found.items() if len(value) <= 4}  # noqa: PLR2004
        loaded = self._find_load(name, numbers)
        if loaded is not None:
            self._load(numbers.get(1, 0), loaded)
            return
        match name:
            case "meta":
                self.do = Do.MARK if numbers.get(2) == _MARK else Do.UNKNOWN
            case "bitwise":
                held = self._get(numbers.get(1, 0))
                self._load(numbers.get(2, 0), held._replace(mask=parse_attributes(found.get(4, b"")).get(1, b"")))
            case "cmp":
                self._compare(numbers, parse_attributes(found.get(3, b"")).get(1, b""))
            case "lookup":
                self._look_up(parse_name(found.get(1, b"")), numbers)
            case "immediate":
                self._immediate(numbers.get(1, 0), found.get(2, b""))
            case "nat":
                self._translate(numbers)
            case "reject":
                self.do = Do.REJECT
            case _ if name not in _PLAIN:
                self.do = Do.UNKNOWN

    def _find_load(self, name: str, numbers: dict[int, int]) -> _Held | None:
        """What the expression puts into its register; None: it does something else."""
        match name:
            case "payload":
                return _Held(self._payload(numbers))
            case "meta" if _META_FROM not in numbers:
                loads = {_MARK: Load.MARK, _INPUT_NAME: Load.INTERFACE, _PROTOCOL: Load.PROTOCOL}
                return _Held(loads.get(numbers.get(2, 0), Load.OTHER))
            case "fib":
                return _Held(_fib(numbers))
            case "numgen":
                return _Held(Load.RANDOM, draws=numbers.get(2, 0))
            case "ct":
                return _NOTHING_HELD
        return None

    def _load(self, register: int, held: _Held) -> None:
        self._held[_word(register)] = held

    def _get(self, register: int) -> _Held:
        return self._held.get(_word(register), _NOTHING_HELD)

    def _payload(self, numbers: dict[int, int]) -> Load:
        where = (numbers.get(2, 0), numbers.get(3, 0))
        return {
            (_NETWORK_HEADER, _SOURCE_OFFSET[self.family]): Load.SOURCE,
            (_NETWORK_HEADER, _DESTINATION_OFFSET[self.family]): Load.DESTINATION,
            (_TRANSPORT_HEADER, 2): Load.PORT,
        }.get(where, Load.OTHER)

    def _compare(self, numbers: dict[int, int], value: bytes) -> None:
        held = self._get(numbers.get(1, 0))
        negated = numbers.get(2, 0) == _UNEQUAL
        if numbers.get(2, 0) not in {_EQUAL, _UNEQUAL}:
            self.do = Do.UNKNOWN
        self.matches.append(Match(held.load, value, held.mask, negated=negated))

    def _look_up(self, name: str, numbers: dict[int, int]) -> None:
        held = self._get(numbers.get(2, 0))
        into = numbers.get(3)
        if into is None:
            self.matches.append(Match(held.load, set=name, negated=bool(numbers.get(5, 0) & _INVERTED)))
        elif into == 0:
            self.do, self.map, self.draws = Do.MAP, name, held.draws
        else:
            self._load(into, _Held(Load.VALUE, map=name, draws=held.draws))

    def _immediate(self, register: int, data: bytes) -> None:
        value = parse_data(data)
        if register:
            self._load(register, _Held(Load.VALUE, value))
            return
        word, _, self.target = value.decode(errors="replace").partition(" ")
        self.do = {"goto": Do.GOTO, "jump": Do.JUMP, "drop": Do.DROP}.get(word, Do.UNKNOWN)

    def _translate(self, numbers: dict[int, int]) -> None:
        held = self._get(numbers.get(3, 0))
        port = self._get(numbers.get(5, 0))
        self.do = Do.DNAT
        if numbers.get(1) != _DESTINATION_NAT or held.load is not Load.VALUE:
            self.do = Do.UNKNOWN
        elif held.map:
            self.map, self.draws = held.map, held.draws
        else:
            self.endpoint = held.value[: address_bytes(self.family)] + port.value[:2] + bytes(2)


def _fib(numbers: dict[int, int]) -> Load:
    if numbers.get(2) != _ADDRESS_TYPE:
        return Load.OTHER
    of = {_OF_SOURCE: Load.SOURCE_IS_LOCAL, _OF_DESTINATION: Load.DESTINATION_IS_LOCAL}
    return of.get(numbers.get(3, 0), Load.OTHER)


def _word(register: int) -> int:
    """Which 4 bytes a register begins at: 1 to 4 have 16 bytes each, 8 and up have 4 (linux nf_tables_core.h)."""
    return (register - 1) * 4 if register < 8 else register - 8  # noqa: PLR2004
