"""What this machine lacks for kind, found out rather than asked for."""

import re
from pathlib import Path
from typing import NamedTuple

_CAP_SYS_RESOURCE = 1 << 24  # linux/capability.h
_INSTANCES = Path("/proc/sys/fs/inotify/max_user_instances")
_ENOUGH = 1024  # eight nodes were seen to take 121 of the usual 128; kube-proxy ends with "too many open files" then
_CGROUP_V2 = Path("/sys/fs/cgroup/cgroup.controllers")  # cgroups(7): only the root of a v2 tree has it


class Host(NamedTuple):
    """Each field is a remedy that is needed here."""

    no_sys_resource: bool  # root lacks CAP_SYS_RESOURCE, as in some sandboxes
    cgroup_v1: bool  # kubelets refuse such a machine since v1.35 unless told (KEP-5573)


def look_at_host() -> Host:
    """This machine."""
    status = Path("/proc/self/status").read_text()
    return Host(no_sys_resource=lacks_sys_resource(status), cgroup_v1=not _CGROUP_V2.exists())


def allow_watching() -> bool:
    """Raise the kernel's limit of inotify instances for each user, which all nodes share; False if that isn't allowed.

    It stays raised: what else runs here gets no less. inotify(7)
    """
    if int(_INSTANCES.read_text()) >= _ENOUGH:
        return True
    try:
        _INSTANCES.write_text(str(_ENOUGH))
    except OSError:  # /proc/sys may be read-only in a container
        return False
    return True


def lacks_sys_resource(status: str) -> bool:
    """Whether a /proc/PID/status has a bounding set (capabilities(7)) without CAP_SYS_RESOURCE.

    runc then refuses every privileged container ("unable to apply caps"), and can't lower an oom_score_adj.
    """
    bounding = re.search(r"^CapBnd:\s*([0-9a-f]+)$", status, re.MULTILINE)
    return bounding is not None and not int(bounding[1], 16) & _CAP_SYS_RESOURCE
