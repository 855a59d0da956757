"""What has happened so far as the state doesn't keep it: for who asks what this node owns."""

from collections.abc import Callable

from endpointslice.types import NodeName
from proxy.announcer.ownership import Origin, Story
from proxy.l2.actions import Note, Report
from proxy.l2.state import Member
from proxy.l2.types import Key

ORIGINS = frozenset({Note.TAKEN, Note.LAST_RESORT, Note.RECEIVED})
HEALS = frozenset({Note.MEMBER_BACK, Note.MAJORITY_BACK})


class Chronicle:
    """Written by the announcer's loop; its story may be read by any thread."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """`wake` is called when what this node owns may have changed; it returns at once."""
        self._wake = wake
        self._origins: dict[Key, Origin] = {}
        self._heals = 0

    @property
    def story(self) -> Story:
        """What the state doesn't keep."""
        return Story(self._origins, self._heals)

    def note_held(self, key: Key, *, held: bool) -> None:
        """This node answers for the address from now on, or does so no more."""
        if not held:
            self._origins.pop(key, None)
        self._wake()

    def note(self, report: Report, member: Member | None) -> None:
        """Keep what the state doesn't; `member` is the one that it is about."""
        note, key = report.note, report.key
        if key is not None and note in ORIGINS:
            self._origins[key] = Origin(note.value, member.node if member is not None else NodeName(""))
        self._heals += note in HEALS
        if key is not None or note in HEALS:
            self._wake()
