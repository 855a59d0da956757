"""EFFECT: how many packets each interface of this namespace has received.

Read only while a wire is silent of all that the filter lets through: whether nobody speaks, or nobody to us.
"""

from pathlib import Path

_FILE = Path("/proc/self/net/dev")
_HEADINGS = 2  # lines
_RECEIVED = 1  # column after the name


def read_received() -> dict[str, int]:
    """Packets by interface; nothing where there is no /proc."""
    try:
        text = _FILE.read_text()
    except OSError:
        return {}
    return parse_received(text)


def parse_received(text: str) -> dict[str, int]:
    """The kernel's table, read."""
    found = {}
    for line in text.splitlines()[_HEADINGS:]:
        name, _colon, numbers = line.partition(":")
        columns = numbers.split()
        if len(columns) > _RECEIVED and columns[_RECEIVED].isdecimal():
            found[name.strip()] = int(columns[_RECEIVED])
    return found
