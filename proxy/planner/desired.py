"""What the kernel's sets should hold, by owner, and the change that brings the kernel there.

An owner is a Service, or the node itself. Maps hold one value a key, which `Claims` sees to; plain sets may get one key
from several owners (a pod's address in two Services' hairpin elements), so those are counted.
"""

from collections.abc import Iterable, Mapping

from proxy.kernel.change import Change, MapChange
from proxy.kernel.ruleset import SetId
from proxy.planner.fragments import Fragment, Label, Labels

Key = tuple[SetId, bytes]


class Desired:
    """Elements by set, and the keys that may differ from the kernel's since the last confirmed change."""

    def __init__(self) -> None:
        self.elements: dict[SetId, dict[bytes, bytes]] = {}
        self.labels: Labels = {}
        self._fragments: dict[str, Fragment] = {}
        self._owners: dict[Key, int] = {}  # only for keys with more than one
        self._dirty: set[Key] = set()
        self._relabelled: set[Key] = set()  # same data, but its counter counts something else from now on
        self._counted: Labels = {}  # what the counters in the kernel count, where that is about to end

    def replace(self, fragments: Mapping[str, tuple[Fragment, Labels]]) -> None:
        """Give each owner named its new elements; all old ones go before any new comes, so keys can change hands."""
        before: dict[Key, Label] = {}
        for owner in fragments:
            before.update(self._remove(owner))
        for owner, (fragment, labels) in fragments.items():
            self._add(owner, fragment)
            self.labels.update(labels)
        self._relabelled.update(key for key, label in before.items() if self.labels.get(key, label) != label)
        self._counted = before | self._counted

    def _remove(self, owner: str) -> dict[Key, Label]:
        labels: dict[Key, Label] = {}
        for set_id, key, _data in self._fragments.pop(owner, ()):
            where = (set_id, key)
            self._dirty.add(where)
            owners = self._owners.get(where, 1)
            if owners > 2:  # noqa: PLR2004 (two owners are the least that are counted)
                self._owners[where] = owners - 1
            elif self._owners.pop(where, None) is None:
                del self.elements[set_id][key]
            if (label := self.labels.pop(where, None)) is not None:
                labels[where] = label
        return labels

    def _add(self, owner: str, fragment: Fragment) -> None:
        for set_id, key, data in fragment:
            elements = self.elements.setdefault(set_id, {})
            if key in elements:
                self._owners[set_id, key] = self._owners.get((set_id, key), 1) + 1
            elements[key] = data
            self._dirty.add((set_id, key))
        if fragment:
            self._fragments[owner] = fragment

    def doubt(self, installed: Mapping[SetId, Mapping[bytes, bytes]]) -> None:
        """Compare every key at the next `pending`: what the kernel holds was not what we believed."""
        for elements_by_set in (installed, self.elements):
            for set_id, elements in elements_by_set.items():
                self._dirty.update((set_id, key) for key in elements)

    def pending(self, installed: Mapping[SetId, Mapping[bytes, bytes]]) -> Change:
        """The change from `installed` to the desired elements, over the keys that may differ."""
        deletes: dict[SetId, dict[bytes, bytes]] = {}
        adds: dict[SetId, dict[bytes, bytes]] = {}
        for set_id, key in self._dirty:
            held = installed.get(set_id, {}).get(key)
            wanted = self.elements.get(set_id, {}).get(key)
            again = (set_id, key) in self._relabelled
            if held is not None and (held != wanted or again):
                deletes.setdefault(set_id, {})[key] = held
            if wanted is not None and (held != wanted or again):
                adds.setdefault(set_id, {})[key] = wanted
        return Change({i: MapChange(deletes.get(i, {}), adds.get(i, {})) for i in _set_ids(deletes, adds)})

    def counted(self, key: Key) -> Label | None:
        """What the element's counter in the kernel counted until the change that `pending` gave."""
        return self._counted.get(key) or self.labels.get(key)

    def confirm(self) -> None:
        """The kernel agreed to what `pending` gave."""
        self._dirty.clear()
        self._relabelled.clear()
        self._counted.clear()


def _set_ids(*parts: Iterable[SetId]) -> list[SetId]:
    return sorted({set_id for part in parts for set_id in part})
