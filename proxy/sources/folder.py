"""A folder of manifests as one world: files to objects, and what differs between two states of it. Pure."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from endpointslice.decode import Changed, Listed
from endpointslice.types import Kind, Skipped, Slice
from proxy.sources.derive import derive_slices
from proxy.sources.documents import Manifest, Wrong

ObjectKey = tuple[Kind, str]
Objects = Mapping[ObjectKey, Changed]


class _Seen(NamedTuple):
    change: Changed
    path: str


def merge_manifests(manifests: Iterable[Manifest], problems: Iterable[Skipped] = ()) -> Objects:
    """Every object of the folder, with derived slices, by kind and name.

    The first file by path wins an object that several define, the first document within a file. What is wrong with a
    file is reported as one Changed without object, named "file:PATH", and `problems` of the folder itself as "file:".
    """
    seen: dict[ObjectKey, _Seen] = {}
    reports: dict[str, list[Skipped]] = {"": list(problems)}
    ordered = sorted(manifests, key=lambda manifest: manifest.path)
    for manifest in ordered:
        report = reports.setdefault(manifest.path, list(manifest.problems))
        for change in manifest.changes:
            first = seen.setdefault((change.kind, change.name), _Seen(change, manifest.path))
            if first.change is not change:
                detail = f"{manifest.path}: already in {first.path}"
                report.append(Skipped(f"{change.kind} {change.name}", Wrong.REPEATED_OBJECT, detail))
    objects = {key: change for key, (change, _) in seen.items()}
    own = {change.object.service for change in objects.values() if isinstance(change.object, Slice)}
    ingredients = (ingredient for manifest in ordered for ingredient in manifest.ingredients)
    for change in derive_slices(ingredients, own):
        objects.setdefault((change.kind, change.name), change)
    for path, report in reports.items():
        if report:
            # No kind is free for files; a ":" is in no Service's name.
            objects[Kind.SERVICE, f"file:{path}"] = Changed(Kind.SERVICE, f"file:{path}", None, tuple(report))
    return objects


def diff_objects(before: Objects, after: Objects) -> tuple[Changed, ...]:
    """The changes that lead from one state to the other."""
    gone = (Changed(kind, name, None) for kind, name in before.keys() - after.keys())
    return (*gone, *(change for key, change in after.items() if before.get(key) != change))


def list_objects(objects: Objects) -> tuple[Listed, ...]:
    """One complete list a kind, the kinds of which there is nothing included."""
    return tuple(Listed(kind, tuple(change for change in objects.values() if change.kind is kind)) for kind in Kind)
