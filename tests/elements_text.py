"""Elements as lines that a person reads, such as `endpoints: 10.96.0.10 TCP 80 #0 -> 10.244.0.1:8080`."""

import ipaddress
import sys
from collections.abc import Iterator, Mapping

from endpointslice.types import Family, Protocol
from proxy.kernel.ruleset import LAYOUTS, Data, Field, SetId, SetName, field_bytes

_PROTOCOLS = {6: Protocol.TCP, 17: Protocol.UDP, 132: Protocol.SCTP}
OF_THE_NODE = frozenset(
    {
        SetName.NODE_ADDRESSES,
        SetName.SERVICE_CIDRS,
        SetName.LOCAL_PODS,
        SetName.CLUSTER_IP_SOURCES,
        SetName.LOCAL_INTERFACES,
        SetName.CLUSTER_IP_INTERFACES,
    }
)
OF_BOTH = frozenset({SetName.EXTERNAL_ADDRESSES, SetName.BINDING_ADDRESSES})  # Services' and the node's own addresses
OF_AFFINITY = frozenset(
    name for name in SetName if any(word in name for word in ("affinit", "bind", "bound", "record", "forget"))
)


def show_elements(elements: Mapping[SetId, Mapping[bytes, bytes]], *, of_the_node: bool = False) -> set[str]:
    """A line for each element of sets that Services, or `of_the_node`, have elements in."""
    return {
        _show(set_id, key, data)
        for set_id, part in elements.items()
        if set_id.name in OF_BOTH or (set_id.name in OF_THE_NODE) == of_the_node
        for key, data in part.items()
    }


def _show(set_id: SetId, key: bytes, data: bytes) -> str:
    layout = LAYOUTS[set_id.name]
    if layout.data is Data.OBJECTS:
        return f"{set_id.name}: {key.decode()} -> {data.decode()}"
    fields = (*layout.key, *layout.key[-1:]) if layout.interval else layout.key
    shown = ("-" if layout.interval and len(layout.key) == 1 else " ").join(_show_fields(set_id.family, fields, key))
    if layout.data is Data.VERDICT:
        shown += f" -> {data.decode()}"
    elif layout.data is Data.ENDPOINT:
        address, port = _show_fields(set_id.family, (Field.ADDRESS, Field.PORT), data)
        shown += f" -> [{address}]:{port}" if ":" in address else f" -> {address}:{port}"
    else:
        assert data == b""
    return f"{set_id.name}: {shown}"


def _show_fields(family: Family, fields: tuple[Field, ...], packed: bytes) -> Iterator[str]:
    for field in fields:
        size = field_bytes(family, field)
        part, packed = packed[:size], packed[size:]
        match field:
            case Field.ADDRESS:
                yield str(ipaddress.ip_address(part))
            case Field.PROTOCOL:
                assert part[1:] == bytes(3)
                yield _PROTOCOLS[part[0]].value
            case Field.PORT:
                assert part[2:] == bytes(2)
                yield str(int.from_bytes(part[:2], "big"))
            case Field.INTERFACE:
                yield part.rstrip(b"\0").replace(b"\xff", b"*").decode()
            case Field.INDEX:
                yield f"#{int.from_bytes(part, sys.byteorder)}"
    assert not packed
