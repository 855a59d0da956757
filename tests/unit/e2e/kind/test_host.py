import pytest

from e2e.kind.host import lacks_sys_resource


@pytest.mark.parametrize(
    ("status", "lacks"),
    [
        pytest.param("Name:\tpython\nCapBnd:\t000001ffffffffff\nSeccomp:\t0\n", False, id="root has every capability"),
        pytest.param("CapBnd:\t000001fffeffffff\n", True, id="only CAP_SYS_RESOURCE is missing"),
        pytest.param("CapBnd:\t0000000001000000\n", False, id="it is the only one left"),
        pytest.param("Name:\tpython\n", False, id="a kernel that doesn't tell"),
    ],
)
def test_lacks_sys_resource(status: str, lacks: bool) -> None:  # noqa: FBT001  # a table's column
    assert lacks_sys_resource(status) is lacks
