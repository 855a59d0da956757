"""What this machine lacks for kind, found out rather than asked for."""

import re
from pathlib import Path
from typing import NamedTuple

_CAP_SYS_RESOURCE = 1 << 24  # linux/capability.h
_CGROUP_V2 = Path("/sys/fs/cgroup/cgroup.controllers")  # cgroups(7): only the root of a v2 tree has it


class Host(NamedTuple):
    """Each field is a remedy that is needed here."""

    no_sys_resource: bool  # root lacks CAP_SYS_RESOURCE, as in some sandboxes
    cgroup_v1: bool  # kubelets refuse such a machine since v1.35 unless told (KEP-5573)


def look_at_host() -> Host:
    """This machine."""
    status = Path("/proc/self/status").read_text()
    return Host(no_sys_resource=lacks_sys_resource(status), cgroup_v1=not _CGROUP_V2.exists())


def lacks_sys_resource(status: str) -> bool:
    """Whether a /proc/PID/status has a bounding set (capabilities(7)) without CAP_SYS_RESOURCE.

    runc then refuses every privileged container ("unable to apply caps"), and can't lower an oom_score_adj.
    """
    bounding = re.search(r"^CapBnd:\s*([0-9a-f]+)$", status, re.MULTILINE)
    return bounding is not None and not int(bounding[1], 16) & _CAP_SYS_RESOURCE
