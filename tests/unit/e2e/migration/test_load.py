"""What a move cost, summed."""

from e2e.migration.load import Flow, count
from e2e.world.clients import Outcome, Record


def record(took_s: float, outcome: Outcome, resent: int = 0) -> tuple[str, Record]:
    return "client to 10.96.0.1:80", Record(0, 1.0, took_s, outcome, "here", "10.244.1.2", resent)


def test_everything_that_a_user_notices_counts_once() -> None:
    cost = count(
        [
            record(0.01, Outcome.ANSWERED),
            record(1.02, Outcome.ANSWERED, resent=1),
            record(1.9, Outcome.ANSWERED),  # of a busy machine
            record(2.0, Outcome.TIMED_OUT),
            record(0.1, Outcome.REFUSED),
            record(0.1, Outcome.REFUSED),
        ],
        [Flow("here", 10, 0, 0, ""), Flow("here", 10, 1, 2, ""), Flow("there", 3, 0, 0, "closed by the server")],
    )

    assert cost.failed == {"client to 10.96.0.1:80: timed-out": 1, "client to 10.96.0.1:80: refused": 2}
    assert (cost.attempts, cost.resent, cost.flows, cost.broken, cost.lost, cost.moved) == (6, 1, 3, 1, 1, 2)
    assert cost.total == 8


def test_nothing_noticed_is_nothing() -> None:
    assert count([record(0.01, Outcome.ANSWERED)], [Flow("here", 10, 0, 0, "")]).total == 0
