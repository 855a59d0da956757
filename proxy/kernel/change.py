"""What we hold to be in the kernel, what we ask of it, and how it refuses.

Rules for this file: values and pure functions only.
"""

from collections.abc import Mapping

import msgspec

from endpointslice.types import Family
from proxy.kernel.ruleset import SetId

# Key to data as the kernel holds them; a verdict is ASCII ("goto pick_3", "drop"), a plain set's data is b"".
Elements = Mapping[bytes, bytes]

# Packets per verdict element; in a nat hook: new connections.
Counters = Mapping[tuple[SetId, bytes], int]


class MapChange(msgspec.Struct, frozen=True):
    """Elements to delete from and to add to one set; a key in both is replaced."""

    delete: Elements
    add: Elements


class Change(msgspec.Struct, frozen=True):
    """What one transaction changes. Pick chains that the adds lead to need no mention."""

    sets: Mapping[SetId, MapChange]


class Installed(msgspec.Struct):
    """The kernel's content as last confirmed. Changed only after the kernel agreed."""

    elements: dict[SetId, dict[bytes, bytes]]
    chains: set[tuple[Family, str]]  # the pick chains that exist


class KernelError(Exception):
    """The kernel refused, and applied nothing; with `unknown` set, it is not known what it applied: read back."""

    def __init__(self, reason: str, *, unknown: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.unknown = unknown


def apply_change(installed: Installed, change: Change) -> None:
    """Bring `installed` to what the kernel holds once it has agreed to `change` (pick chains aside)."""
    for set_id, part in change.sets.items():
        elements = installed.elements.setdefault(set_id, {})
        for key in part.delete:
            elements.pop(key, None)
        elements.update(part.add)
