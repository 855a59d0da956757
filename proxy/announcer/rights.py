"""EFFECT: the rights of the announcer's process: packets of its own making, and nothing else."""

import ctypes
from pathlib import Path

from proxy.privilege import read_sets, set_capabilities

CAP_NET_RAW = 13
_STATUS = Path("/proc/self/status")
_PR_SET_NO_NEW_PRIVS = 38


class RightsError(Exception):
    """CAP_NET_RAW isn't there."""


def drop_rights() -> None:
    """Keep CAP_NET_RAW alone, for this thread and those that it starts, and get no more by any program's file.

    UDP ports are above 1024, joining groups and reading netlink need no right. RightsError if it isn't permitted.
    """
    permitted, _effective, _inheritable = read_sets(_STATUS.read_text())
    wanted = 1 << CAP_NET_RAW
    if not permitted & wanted:
        raise RightsError("closeby announce needs CAP_NET_RAW: run it as root, or give its container that capability")
    set_capabilities(wanted, wanted, 0)
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
