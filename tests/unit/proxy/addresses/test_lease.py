import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endpointslice.decode import DecodeError
from proxy.addresses.lease import Record, Step, Timing, choose_step, decode_lease, render_lease

OURS = Record("me", 15.0, "t0", 3, "7")
THEIRS = OURS._replace(holder="other")
PLACE = ("metallb-system", "closeby-controller")


@pytest.mark.parametrize(
    ("record", "unchanged_s", "step"),
    [
        pytest.param(None, 0.0, Step.CREATE, id="there is none"),
        pytest.param(OURS, 99.0, Step.RENEW, id="ours, however old"),
        pytest.param(THEIRS, 14.9, Step.WAIT, id="another's"),
        pytest.param(THEIRS, 15.0, Step.TAKE, id="another's, silent for its duration"),
        pytest.param(THEIRS._replace(holder=""), 0.0, Step.TAKE, id="given back"),
    ],
)
def test_what_to_do(record: Record | None, unchanged_s: float, step: Step) -> None:
    assert choose_step(record, "me", unchanged_s) is step


@given(st.floats(1.0, 1000.0))
def test_a_holder_stops_writing_before_another_may_begin(duration_s: float) -> None:
    timing = Timing(duration_s)

    assert timing.retry_s < timing.writable_s < timing.duration_s


def test_a_lease_is_read_back_as_it_was_written() -> None:
    lease = render_lease(PLACE, None, "me", 15.0, "now")

    assert decode_lease(json.dumps(lease).encode()) == Record("me", 15.0, "now", 0, "")


def test_a_change_of_hands_is_counted_and_a_renewal_is_none() -> None:
    taken = render_lease(PLACE, THEIRS, "me", 15.0, "now")["spec"]
    kept = render_lease(PLACE, OURS, "me", 15.0, "now")["spec"]
    given_back = render_lease(PLACE, OURS, "", 1.0, "now")

    assert (taken["leaseTransitions"], taken["acquireTime"]) == (4, "now")
    assert (kept["leaseTransitions"], kept["acquireTime"]) == (3, "t0")
    assert given_back["metadata"]["resourceVersion"] == "7"
    assert (given_back["spec"]["holderIdentity"], given_back["spec"]["leaseTransitions"]) == ("", 3)


def test_what_is_no_lease_is_an_error() -> None:
    with pytest.raises(DecodeError):
        decode_lease(b"{}")
    assert decode_lease(b'{"metadata": {}}') == Record("", 0.0, "", 0, "")
