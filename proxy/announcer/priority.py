"""EFFECT: the announcer's place in the queue for a core: one that gets none for a second counts as lost."""

import os
import resource

from proxy.privilege import raise_capability

_CAP_SYS_NICE = 23
_MOST_S = 5  # of computing without a wait: a loop that spins is ended, so that it doesn't keep a core from everybody


class PriorityError(Exception):
    """The kernel refuses."""


def run_in_real_time(priority: int) -> None:
    """SCHED_RR at 1 to 99 for this thread and all that it starts, over every process of the usual kind (sched(7)).

    What computes for five seconds on end without waiting for anything is killed (RLIMIT_RTTIME). PriorityError.
    """
    raise_capability(_CAP_SYS_NICE)
    try:
        limit = _MOST_S * 1_000_000
        resource.setrlimit(resource.RLIMIT_RTTIME, (limit, limit))
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(priority))
    except PermissionError as error:
        needs = "it needs CAP_SYS_NICE, and a control group that may have real-time threads"
        raise PriorityError(f"--realtime-priority: {priority}: {error.strerror}: {needs}") from error
