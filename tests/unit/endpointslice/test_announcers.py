"""What a Service's annotations ask of its announcers."""

import pytest

from endpointslice.announcers import Announcers, read_announcers
from endpointslice.metadata import Annotations
from endpointslice.types import NodeName, Skipped

N1, N2 = NodeName("n1"), NodeName("n2")


@pytest.mark.parametrize(
    ("annotations", "found"),
    [
        pytest.param(None, Announcers(), id="no annotations"),
        pytest.param(Annotations(), Announcers(), id="none of ours"),
        pytest.param(Annotations(announce_on=" n1 ,n2,, "), Announcers(frozenset({N1, N2})), id="only these"),
        pytest.param(Annotations(prefer_nodes="n2, n1 = 5"), Announcers(preferred=((N1, 5), (N2, 100))), id="weights"),
        pytest.param(Annotations(prefer_nodes="n1=5,n1=7"), Announcers(preferred=((N1, 7),)), id="named twice"),
    ],
)
def test_what_is_read(annotations: Annotations | None, found: Announcers) -> None:
    skipped: list[Skipped] = []

    assert (read_announcers(annotations, "Service a/b", skipped), skipped) == (found, [])


@pytest.mark.parametrize("part", ["n1=0", "n1=101", "n1=x", "n1=-1", "=5", "n1=1000", "n1=²"])
def test_what_makes_no_sense_is_skipped_with_its_reason_and_the_rest_counts(part: str) -> None:
    skipped: list[Skipped] = []

    found = read_announcers(Annotations(prefer_nodes=f"{part}, n2=9"), "Service a/b", skipped)

    assert found == Announcers(preferred=((N2, 9),))
    assert [(one.object, one.reason) for one in skipped] == [("Service a/b", "bad-weight")]
    assert part in skipped[0].detail
