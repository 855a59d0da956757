"""EFFECT: makes the right that closeby needs effective, where it is only permitted.

In an image whose user isn't root the interpreter's file capability permits CAP_NET_ADMIN and leaves it to the program
to use it (capabilities(7)): with the file's effective bit the kernel would refuse to run it at all without that
capability, and `closeby plan` needs none. Root has it effective, and nothing is done.
"""

from pathlib import Path

CAP_NET_ADMIN = 12
_STATUS = Path("/proc/self/status")
_VERSION_3 = 0x20080522  # _LINUX_CAPABILITY_VERSION_3: two words a set


def read_sets(status: str) -> tuple[int, int, int]:
    """The permitted, effective and inheritable capabilities that a /proc/PID/status tells, as bits."""
    fields = dict(line.split(":", 1) for line in status.splitlines() if line.startswith("Cap"))
    permitted, effective, inheritable = (int(fields[name], 16) for name in ("CapPrm", "CapEff", "CapInh"))
    return permitted, effective, inheritable


def raise_net_admin() -> None:
    """Make CAP_NET_ADMIN effective for this thread and those that it starts; without it permitted nothing happens."""
    raise_capability(CAP_NET_ADMIN)


def raise_capability(number: int) -> None:
    """The same with another."""
    try:
        status = _STATUS.read_text()
    except OSError:  # without /proc, as in a bare chroot: then it stays as it is
        return
    permitted, effective, inheritable = read_sets(status)
    wanted = effective | permitted & 1 << number
    if wanted != effective:
        set_capabilities(permitted, wanted, inheritable)


def set_capabilities(permitted: int, effective: int, inheritable: int) -> None:
    """capset(2) of this thread; OSError if the kernel refuses, as it does to more than is permitted."""
    import ctypes  # noqa: PLC0415  # root, who needs none of this, starts sooner without

    words = [part >> shift & 0xFFFFFFFF for shift in (0, 32) for part in (effective, permitted, inheritable)]
    header = (ctypes.c_uint32 * 2)(_VERSION_3, 0)
    if ctypes.CDLL(None, use_errno=True).capset(header, (ctypes.c_uint32 * 6)(*words)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, "capset was refused")
