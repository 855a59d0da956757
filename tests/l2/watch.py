"""What clients see of the addresses: who answers, for how long nobody or two do, and what moved."""

from typing import NamedTuple

from proxy.l2.types import Key


class Stretch(NamedTuple):
    """How long a key was answered for by none, or by two."""

    key: Key
    from_s: float
    to_s: float
    answering: tuple[str, ...]


class Watch:
    """A record of who answers a broadcast."""

    def __init__(self) -> None:
        self.now = 100.0
        self.answering: dict[Key, tuple[str, ...]] = {}
        self.since: dict[Key, float] = {}
        self.stretches: list[Stretch] = []
        self.moves: list[tuple[float, Key, str]] = []
        self.owner: dict[Key, str] = {}

    def saw(self, now: float, key: Key, names: tuple[str, ...]) -> None:
        """Who answers now."""
        before = self.answering.get(key)
        if names == before:
            return
        if before is not None and len(before) != 1:
            self.stretches.append(Stretch(key, self.since[key], now, before))
        self.answering[key] = names
        self.since[key] = now
        if len(names) == 1 and self.owner.get(key) != names[0]:
            self.owner[key] = names[0]
            self.moves.append((now, key, names[0]))

    def owner_of(self, key: Key) -> str:
        """Who alone answers now; "" if none does, or two."""
        names = self.answering.get(key, ())
        return names[0] if len(names) == 1 else ""

    def longest_s(self, answering: int, since_s: float) -> float:
        """The longest stretch since then with none, or with two or more, over all addresses."""
        found = [
            stretch.to_s - max(since_s, stretch.from_s)
            for stretch in self.open_stretches()
            if min(len(stretch.answering), 2) == answering and stretch.to_s > since_s
        ]
        return max(found, default=0.0)

    def moved(self, since_s: float) -> list[tuple[Key, str]]:
        """Each change of who alone answers, since then."""
        return [(key, name) for at_s, key, name in self.moves if at_s > since_s]

    def open_stretches(self) -> list[Stretch]:
        """Those that have ended, and those that last."""
        lasting = [
            Stretch(key, self.since[key], self.now, names) for key, names in self.answering.items() if len(names) != 1
        ]
        return self.stretches + lasting
