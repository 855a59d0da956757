"""Which notifications are about us. The socket itself is tested on the kernel."""

import pytest

from endpointslice.types import Family
from proxy.kernel.attributes import pack_name, pack_u32
from proxy.kernel.batch import Reply, Type
from proxy.kernel.monitor import touches

OURS = pack_name(1, "closeby")
IPV4, IPV6, INET = 2, 10, 1


def told(kind: int, family: int, payload: bytes) -> Reply:
    return Reply(kind, 0, 0, family, payload)


@pytest.mark.parametrize(
    ("notifications", "ours"),
    [
        pytest.param([told(Type.NEWSETELEM, IPV4, OURS)], True, id="an element added to ours"),
        pytest.param([told(Type.DELTABLE, IPV4, OURS)], True, id="our table deleted"),
        pytest.param([told(Type.NEWRULE, IPV4, pack_name(1, "kube-proxy"))], False, id="another table"),
        pytest.param([told(Type.NEWRULE, IPV4, pack_name(1, "closeby2"))], False, id="a name that begins like ours"),
        pytest.param([told(Type.NEWTABLE, INET, OURS)], False, id="our name in another kind of table"),
        pytest.param([told(Type.NEWRULE, IPV6, OURS)], False, id="a family that we leave alone"),
        pytest.param([told(Type.NEWGEN, IPV4, pack_u32(1, 0x636C6F73) + OURS)], False, id="the end of a transaction"),
        pytest.param(
            [told(Type.NEWRULE, IPV4, pack_name(1, "x")), told(Type.NEWRULE, IPV4, OURS)], True, id="ours among others"
        ),
        pytest.param([told(Type.NEWRULE, IPV4, b"")], False, id="no table named"),
        pytest.param([], False, id="nothing"),
    ],
)
def test_only_our_tables_count(notifications: list[Reply], *, ours: bool) -> None:
    assert touches(notifications, [Family.IPV4]) == ours
