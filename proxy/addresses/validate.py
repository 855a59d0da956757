"""Manifests judged before they are applied: each object by itself, then pools beside each other. Pure.

The same functions as the controller's say what is valid; only unknown fields are told here alone, since the API server
drops them before the controller could see them.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from endpointslice.metadata import ANNOUNCE_ON, PREFER_NODES
from endpointslice.types import Family
from proxy.addresses import wire
from proxy.addresses.accept import Read, accept_pools
from proxy.addresses.decode import convert_advertisement, convert_pool
from proxy.addresses.known_fields import find_unknown, suggest
from proxy.addresses.plan import GROUP_VERSION
from proxy.addresses.pools import SPREAD_ANNOTATION, is_for
from proxy.addresses.requests import Refusal, read_request
from proxy.addresses.services import (
    IPS_ANNOTATION,
    POOL_ANNOTATION,
    PREFIXES,
    SHARING_ANNOTATION,
    convert_service,
)
from proxy.addresses.types import Advertisement, DualStack, Kind, Pool, Problem
from proxy.yaml_documents import YamlError, iter_yaml

_GROUP = "metallb.io/"
_ANNOUNCERS = (ANNOUNCE_ON, PREFER_NODES)  # theirs; the allocator reads none
_ANNOTATIONS = (
    POOL_ANNOTATION,
    IPS_ANNOTATION,
    SHARING_ANNOTATION,
    "ip-allocated-from-pool",
)  # the last is MetalLB's note
_OTHERS = frozenset({"BGPAdvertisement", "BGPPeer", "BFDProfile", "Community", "ServiceL2Status", "ServiceBGPStatus"})


class Document(NamedTuple):
    """One object of a file."""

    where: str  # "pools.yaml document 2"
    value: object


class Finding(NamedTuple):
    """What is wrong with one object, or remarkable."""

    where: str
    object: str  # "IPAddressPool first"; "" where it has no name
    problem: Problem
    fatal: bool = True  # False: it is taken, but may not do what it was written for

    def __str__(self) -> str:
        return ": ".join(part for part in (self.where, self.object, str(self.problem)) if part)


class Verdict(NamedTuple):
    """Of all files together."""

    findings: tuple[Finding, ...]
    counts: Mapping[str, int]  # objects looked at, by kind


class _Named(NamedTuple):
    where: str
    name: str

    def find(self, kind: str, problem: Problem, *, fatal: bool = True) -> Finding:
        return Finding(self.where, f"{kind} {self.name}".strip(), problem, fatal)


def read_documents(name: str, content: bytes) -> Iterator[Document | Finding]:
    """The objects of a file, those of a List one by one; a Finding where it can't be read any further."""
    number = 0
    try:
        for number, value in enumerate(iter_yaml(content), 1):
            where = f"{name} document {number}"
            if (
                isinstance(value, dict)
                and str(value.get("kind")).endswith("List")
                and isinstance(value.get("items"), list)
            ):
                for index, item in enumerate(value["items"]):
                    yield Document(f"{where} items[{index}]", item)
            elif value is not None:
                yield Document(where, value)
    except YamlError as error:
        yield Finding(f"{name} document {number + 1}", "", Problem("", f"not YAML: {error}"))


def judge(documents: Iterable[Document], namespace: str) -> Verdict:
    """Every object that addresses depend on; others are left out."""
    findings: list[Finding] = []
    counts: dict[str, int] = {}
    pools: dict[str, tuple[_Named, Read]] = {}
    advertisements: list[tuple[_Named, object]] = []
    for document in documents:
        value = document.value
        if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
            findings.append(Finding(document.where, "", Problem("kind", "none given: this is no object")))
            continue
        kind, named = value["kind"], _Named(document.where, _name_of(value))
        if not _is_read(value, kind):
            findings += _say_unread(value, kind, named)
            continue
        counts[kind] = counts.get(kind, 0) + 1
        problems = [*_check_metadata(value, kind, namespace)]
        if named.name:
            problems += _check_object(value, kind, named, pools)
        findings += [named.find(kind, problem) for problem in problems]
        if kind == Kind.ADVERTISEMENT and not problems:
            advertisements.append((named, value))
    findings += _check_together(pools)
    findings += _check_references(advertisements, pools)
    findings += _check_spreading(advertisements, pools)
    return Verdict(tuple(findings), counts)


def _is_read(value: Mapping[str, Any], kind: str) -> bool:
    version = value.get("apiVersion")
    return (kind == Kind.SERVICE and version == "v1") or (
        kind in {Kind.POOL, Kind.ADVERTISEMENT} and version == GROUP_VERSION
    )


def _say_unread(value: Mapping[str, Any], kind: str, named: _Named) -> Iterator[Finding]:
    version = str(value.get("apiVersion"))
    if kind in {Kind.POOL, Kind.ADVERTISEMENT}:
        yield named.find(kind, Problem("apiVersion", f'"{version}" isn\'t read; it must be {GROUP_VERSION}'))
    elif version.startswith(_GROUP) and kind in _OTHERS:
        yield named.find(kind, Problem("", "closeby doesn't read this kind"), fatal=False)


def _name_of(value: Mapping[str, Any]) -> str:
    metadata = value.get("metadata")
    return str(metadata.get("name") or "") if isinstance(metadata, dict) else ""


def _check_metadata(value: Mapping[str, Any], kind: str, namespace: str) -> Iterator[Problem]:
    metadata = value.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("name"):
        yield Problem("metadata.name", "none given")
        return
    own = metadata.get("namespace")
    if kind != Kind.SERVICE and own and own != namespace:
        yield Problem("metadata.namespace", f'"{own}" isn\'t where the controller reads: {namespace} (--namespace)')


def _check_object(
    value: Mapping[str, Any], kind: str, named: _Named, pools: dict[str, tuple[_Named, Read]]
) -> Iterator[Problem]:
    """What is wrong with it by itself; a pool is put among `pools`."""
    try:
        match kind:
            case Kind.POOL:
                yield from find_unknown(value.get("spec"), wire.PoolSpec, "spec")
                read = convert_pool(msgspec.convert(value, wire.Pool)).read
                yield from read.problems
                if named.name in pools:
                    yield Problem("metadata.name", f"{pools[named.name][0].where} has a pool of this name, too")
                pools.setdefault(named.name, (named, read))
            case Kind.ADVERTISEMENT:
                yield from find_unknown(value.get("spec"), wire.AdvertisementSpec, "spec")
                read_one = convert_advertisement(msgspec.convert(value, wire.Advertisement))
                yield from (*read_one.problems, *read_one.remarks)
                yield from _check_annotations(value, (SPREAD_ANNOTATION,))
            case _:
                yield from _check_service(value, named)
    except msgspec.ValidationError as error:
        what, _at, path = str(error).partition(" - at `$.")
        yield Problem(path.rstrip("`"), what)


def _check_service(value: Mapping[str, Any], named: _Named) -> Iterator[Problem]:
    """What its annotations ask for; a manifest has no ClusterIPs yet, so their families aren't judged."""
    service = convert_service(msgspec.convert(value, wire.Service), named.name)
    anything = msgspec.structs.replace(service, families=tuple(Family), dual_stack=DualStack.PREFER)
    found = read_request(anything)
    if service.wants and isinstance(found, Refusal):
        yield Problem("metadata.annotations", f"{found.rule}: {found.what}")
    yield from _check_annotations(
        value, (*_ANNOUNCERS, *(prefix + name for prefix in PREFIXES for name in _ANNOTATIONS))
    )


def _check_annotations(value: Mapping[str, Any], read: Collection[str]) -> Iterator[Problem]:
    """Those of our prefixes that nobody reads on this kind."""
    names = {full.partition("/")[2]: full for full in read}
    for key in value["metadata"].get("annotations") or {}:
        prefix, _slash, name = str(key).partition("/")
        if key in read or f"{prefix}/" not in PREFIXES:
            continue
        place = "; it belongs on an L2Advertisement" if key == SPREAD_ANNOTATION else suggest(name, names)
        yield Problem(f"metadata.annotations[{key}]", f"nobody reads this{place}")


def _check_together(pools: Mapping[str, tuple[_Named, Read]]) -> Iterator[Finding]:
    """Overlaps, of those that are valid by themselves."""
    valid = {name: read for name, (_named, read) in pools.items() if not read.problems}
    for name, problems in accept_pools({}, valid).problems.items():
        yield pools[name][0].find(Kind.POOL, problems[0])


def _check_references(
    advertisements: Iterable[tuple[_Named, object]], pools: Mapping[str, tuple[_Named, Read]]
) -> Iterator[Finding]:
    """Pools that no file has, where the files have any: they may be in the cluster already."""
    for named, value in advertisements:
        for index, name in enumerate(msgspec.convert(value, wire.Advertisement).spec.ip_address_pools or ()):
            if pools and name not in pools:
                what = f'no pool "{name}" is among these files{suggest(name, pools)}'
                yield named.find(Kind.ADVERTISEMENT, Problem(f"spec.ipAddressPools[{index}]", what), fatal=False)


def _check_spreading(
    advertisements: Iterable[tuple[_Named, object]], pools: Mapping[str, tuple[_Named, Read]]
) -> Iterator[Finding]:
    """Advertisements that ask for clients to be spread, beside others that may be for the same addresses and don't."""
    wires = [(named, msgspec.convert(value, wire.Advertisement)) for named, value in advertisements]
    read = [(named, convert_advertisement(one).advertisement) for named, one in wires]
    found = [(named, one) for named, one in read if one is not None]
    field = f"metadata.annotations[{SPREAD_ANNOTATION}]"
    known = [good.pool for _named, good in pools.values() if good.pool is not None]
    for named, one in found:
        for _other, other in found:
            if one.spreads and not other.spreads and (shared := _meet(one, other, known)):
                beside = f"L2Advertisement {other.name} is for {shared}, too, and doesn't ask for this"
                problem = Problem(field, f"{beside}: clients aren't spread")
                yield named.find(Kind.ADVERTISEMENT, problem, fatal=False)


def _meet(one: Advertisement, other: Advertisement, pools: Iterable[Pool]) -> str:
    """What both are for, in words; "": nothing, as far as these files tell. serviceSelectors may still part them."""
    if one.service_selectors and other.service_selectors:
        return ""
    both = sorted(pool.name for pool in pools if is_for(one, pool) and is_for(other, pool))
    both = both or sorted(one.pools & other.pools)
    if both:
        return f"pool {both[0]}"
    named = any(each.pools or each.pool_selectors for each in (one, other))
    return "" if named else "all pools"
