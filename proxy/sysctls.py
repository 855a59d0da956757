"""The kernel's conntrack settings, written at start where they differ from what is wanted.

As kube-proxy does, but a setting that can't be written is a warning, not the end: in a network namespace of its own
nf_conntrack_max belongs to the host, /proc/sys is read-only in an unprivileged container, and without the module
nf_conntrack there is nothing to set.
Who may program a network namespace (CAP_NET_ADMIN) may write its settings too, without being root. In a container only
the read-only mount of /proc/sys is in the way: a second mount of the host's /proc/sys/net and `--proc-sys` are enough.
"""

import errno
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import structlog

from proxy.conntrack.settings import ConntrackSettings

log = structlog.get_logger()

MOST_ENTRIES = 1_048_576  # kube-proxy's cap since 2026, whatever the cores
ENTRIES_PER_BUCKET = 4  # kube-proxy's ratio of nf_conntrack_max to the hash size
PROC_SYS = Path("/proc/sys")
_NETFILTER = "net/netfilter/"


class Sysctl(NamedTuple):
    """A number to write, unless it is there already."""

    path: str  # below /proc/sys
    value: int
    at_least: bool = False  # a larger one is left alone


def choose_max(settings: ConntrackSettings, cores: int) -> int:
    """nf_conntrack_max; 0: leave it. The cap is asked first, so it beats a larger minimum, as in kube-proxy."""
    if settings.max_per_core <= 0:
        return 0
    scaled = settings.max_per_core * cores
    return MOST_ENTRIES if scaled > MOST_ENTRIES else max(scaled, settings.min)


def plan_sysctls(settings: ConntrackSettings, cores: int) -> tuple[Sysctl, ...]:
    """What to write, in this order; fractions of a second are cut off."""
    most = choose_max(settings, cores)
    wanted = (
        Sysctl(_NETFILTER + "nf_conntrack_max", most),
        Sysctl(_NETFILTER + "nf_conntrack_buckets", most // ENTRIES_PER_BUCKET, at_least=True),
        Sysctl(_NETFILTER + "nf_conntrack_tcp_timeout_established", int(settings.tcp_established_timeout_s)),
        Sysctl(_NETFILTER + "nf_conntrack_tcp_timeout_close_wait", int(settings.tcp_close_wait_timeout_s)),
        Sysctl(_NETFILTER + "nf_conntrack_udp_timeout", int(settings.udp_timeout_s)),
        Sysctl(_NETFILTER + "nf_conntrack_udp_timeout_stream", int(settings.udp_stream_timeout_s)),
        Sysctl(_NETFILTER + "nf_conntrack_tcp_be_liberal", int(settings.tcp_be_liberal)),
    )
    return tuple(sysctl for sysctl in wanted if sysctl.value > 0)


def write_sysctls(sysctls: Iterable[Sysctl], proc_sys: Path = PROC_SYS) -> None:
    """Write those that differ; each that can't be written is one line in the log."""
    for path, value, at_least in sysctls:
        name = path.rpartition("/")[2]
        file = proc_sys / path
        try:
            held = int(file.read_text())
            if held == value or (at_least and held > value):
                continue
            file.write_text(str(value))
        except (OSError, ValueError) as error:
            log.warning("sysctl_not_set", sysctl=name, wanted=value, why=_explain(error))
        else:
            log.info("sysctl_set", sysctl=name, value=value, before=held)


def _explain(error: OSError | ValueError) -> str:
    match error:
        case FileNotFoundError():
            return "there is no such setting: the kernel has no nf_conntrack, or its module isn't loaded"
        case OSError(errno=errno.EROFS):
            return (
                "read-only in this container: mount the host's /proc/sys/net and name it by --proc-sys, or set it there"
            )
        case OSError(errno=errno.EACCES | errno.EPERM):
            return "not permitted: it takes CAP_NET_ADMIN, in the host's own network namespace"
        case OSError(errno=errno.EOPNOTSUPP):
            return "it belongs to the host's own network namespace"
        case OSError(strerror=text):
            return str(text)
        case _:
            return str(error)


def apply_conntrack_settings(settings: ConntrackSettings, proc_sys: Path = PROC_SYS) -> None:
    """Write the settings of this host, for as many cores as it has."""
    write_sysctls(plan_sysctls(settings, os.cpu_count() or 1), proc_sys)
