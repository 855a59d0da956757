"""What the kernel's sets should hold, by owner, and the change that brings the kernel there.

An owner is a Service, or the node itself. Maps hold one value a key, which `Claims` sees to; plain sets may get one key
from several owners (a pod's address in two Services' hairpin elements), so those are counted.
"""

from collections.abc import Iterable, Iterator, Mapping

from proxy.kernel.change import Change, MapChange
from proxy.kernel.ruleset import LAYOUTS, SetId
from proxy.planner.fragments import Fragment, Label, Labels, Rendered

Key = tuple[SetId, bytes]


class Desired:
    """Elements by set, and the keys that may differ from the kernel's since the last confirmed change."""

    def __init__(self) -> None:
        self.elements: dict[SetId, dict[bytes, bytes]] = {}
        self.labels: Labels = {}  # replaced when it changes, so whoever was given it may keep it
        self._keys: dict[str, tuple[SetId | bytes, ...]] = {}  # by owner: a set, its keys, the next set, ..
        self._owners: dict[Key, int] = {}  # only for keys with more than one
        self._dirty: dict[SetId, set[bytes]] = {}
        self._confirmed = False  # the kernel has agreed once
        self._counted: Labels = {}  # what counters in the kernel count, where that may have ended

    def replace(self, owners: Iterable[str], rendered: Iterable[Rendered]) -> None:
        """Give the owners their new elements; all old ones go before any new comes, so keys can change hands.

        An owner without a `Rendered` has none from now on. The rendered are taken one by one.
        """
        before: dict[Key, Label] = {}
        after: dict[Key, Label] = {}
        for owner in owners:
            self._remove(owner, before)
        for owner, fragment, labels in rendered:
            self._add(owner, fragment)
            after.update(labels)
        if before != after:
            self.labels = self.labels.copy()
            for where in before.keys() - after.keys():
                del self.labels[where]
            self.labels.update(after)
            if self._confirmed:  # else those labels were never the kernel's
                self._counted = before | self._counted

    def _remove(self, owner: str, labels: dict[Key, Label]) -> None:
        """Take the owner's elements away; their labels are added to `labels`."""
        for where in _where(self._keys.pop(owner, ())):
            set_id, key = where
            self._dirty.setdefault(set_id, set()).add(key)
            owners = self._owners.get(where, 1)
            if owners > 2:  # noqa: PLR2004 (two owners are the least that are counted)
                self._owners[where] = owners - 1
            elif self._owners.pop(where, None) is None:
                del self.elements[set_id][key]
            if LAYOUTS[set_id.name].counter and (label := self.labels.get(where)) is not None:
                labels[where] = label

    def _add(self, owner: str, fragment: Fragment) -> None:
        keys: list[SetId | bytes] = []
        for set_id, part in fragment.items():
            elements = self.elements.get(set_id)
            if elements is None:
                elements = self.elements[set_id] = {}
            if not elements.keys().isdisjoint(part):
                for key in elements.keys() & part.keys():
                    self._owners[set_id, key] = self._owners.get((set_id, key), 1) + 1
            elements.update(part)
            self._dirty.setdefault(set_id, set()).update(part)
            keys.append(set_id)
            keys.extend(part)
        if keys:
            self._keys[owner] = tuple(keys)

    def doubt(self, installed: Mapping[SetId, Mapping[bytes, bytes]]) -> None:
        """Compare every key at the next `pending`: what the kernel holds was not what we believed."""
        for elements_by_set in (installed, self.elements):
            for set_id, elements in elements_by_set.items():
                self._dirty.setdefault(set_id, set()).update(elements)

    def pending(self, installed: Mapping[SetId, Mapping[bytes, bytes]]) -> Change:
        """The change from `installed` to the desired elements, over the keys that may differ."""
        again = {where for where, label in self._counted.items() if self.labels.get(where, label) != label}
        sets: dict[SetId, MapChange] = {}
        for set_id, keys in sorted(self._dirty.items()):
            held = installed.get(set_id, {})
            wanted = self.elements.get(set_id, {})
            changed = [key for key in keys if held.get(key) != wanted.get(key) or (set_id, key) in again]
            if changed:
                delete = {key: held[key] for key in changed if key in held}
                add = {key: wanted[key] for key in changed if key in wanted}
                sets[set_id] = MapChange(delete, add)
        return Change(sets)

    def counted(self, key: Key) -> Label | None:
        """What the element's counter in the kernel counted until the change that `pending` gave."""
        return self._counted.get(key) or self.labels.get(key)

    def confirm(self) -> None:
        """The kernel agreed to what `pending` gave."""
        self._confirmed = True
        self._dirty.clear()
        self._counted.clear()


def _where(keys: Iterable[SetId | bytes]) -> Iterator[Key]:
    """Each key with the set that stands before it; kept flat, ten thousand owners' keys take a third of the memory."""
    set_ids: list[SetId] = []
    for part in keys:
        if isinstance(part, bytes):
            yield set_ids[-1], part
        else:
            set_ids.append(part)
