"""When to sync next: a pure function of times. All times are monotonic seconds of one clock."""

import msgspec

FIRST_RETRY_S = 0.1


class Pacing(msgspec.Struct, frozen=True):
    """How syncs are spaced."""

    min_gap_s: float = 0.02  # from the end of one sync to the start of the next
    longest_retry_s: float = 30.0
    owners_s: float = 2.0  # that the first write waits for the owners of this node's pods; a GET takes milliseconds


class LastSync(msgspec.Struct, frozen=True):
    """How the last sync ended; `failures` counts the refusals since the last that was good."""

    finished_s: float = float("-inf")
    failures: int = 0


def next_sync_s(pacing: Pacing, last: LastSync) -> float:
    """The earliest time of the next sync: at once when idle, coalesced under load, later and later after refusals."""
    if not last.failures:
        return last.finished_s + pacing.min_gap_s
    return last.finished_s + min(pacing.longest_retry_s, FIRST_RETRY_S * 2.0 ** (min(last.failures, 32) - 1))
