"""What a Service asks for: addresses, a pool, a key to share by. Pure; a wrong request is a Refusal that says so.

Annotations are MetalLB's, `metallb.io/..`, with twins `closeby.dev/..`; its old prefix `metallb.universe.tf/` counts.
"""

from enum import StrEnum
from typing import NamedTuple

from endpointslice.addresses import family_of, parse_ip
from endpointslice.types import IP
from proxy.addresses.services import IPS_ANNOTATION, POOL_ANNOTATION, PREFIXES, SHARING_ANNOTATION
from proxy.addresses.types import DualStack, Service


class Rule(StrEnum):
    """Why an address isn't given, or isn't kept: the reason of the condition and a part of the Event."""

    # of the request itself
    AMBIGUOUS_REQUEST = "AmbiguousRequest"  # two places ask for different things
    UNREADABLE_ADDRESS = "UnreadableAddress"
    FAMILY_MISMATCH = "FamilyMismatch"  # an address of a family that the Service doesn't have
    NO_CLUSTER_IP = "NoClusterIP"
    NOT_DUAL_STACK = "NotDualStack"  # RequireDualStack, with one ClusterIP
    # of pools
    NO_POOLS = "NoPools"
    NO_SUCH_POOL = "NoSuchPool"
    NOT_IN_A_POOL = "NotInAPool"  # an address that no pool holds
    NOT_IN_ONE_POOL = "NotInOnePool"
    NOT_IN_ASKED_POOL = "NotInAskedPool"  # both an address and another pool are asked for
    POOL_NOT_ALLOWED = "PoolNotAllowed"  # its namespaces or selectors leave the Service out
    NO_POOL_MATCHES = "NoPoolMatches"  # of those that are given out without asking
    FAMILY_NOT_IN_POOL = "FamilyNotInPool"
    POOL_EXHAUSTED = "PoolExhausted"
    AVOIDED_ADDRESS = "AvoidedAddress"  # avoidBuggyIPs
    NODE_ADDRESS = "NodeAddress"  # a Node has it itself
    # of the others
    ADDRESS_IN_USE = "AddressInUse"  # and at least one of the two has no sharing key
    SHARING_KEY_DIFFERS = "SharingKeyDiffers"
    SHARING_PORT_TAKEN = "SharingPortTaken"
    SHARING_BACKENDS_DIFFER = "SharingBackendsDiffer"  # externalTrafficPolicy Local, with other pods or beside Cluster


class Refusal(NamedTuple):
    """One rule, and the words that tell it of this Service."""

    rule: Rule
    what: str


class Request(NamedTuple):
    """What is asked for; empty where nothing is."""

    ips: tuple[IP, ...] = ()
    pool: str = ""
    sharing_key: str = ""


def read_request(service: Service) -> Request | Refusal:
    """What the annotations and spec.loadBalancerIP ask for, checked against the Service itself."""
    pool = _read_annotation(service, POOL_ANNOTATION)
    texts = _read_annotation(service, IPS_ANNOTATION)
    key = _read_annotation(service, SHARING_ANNOTATION)
    for found in (pool, texts, key):
        if isinstance(found, Refusal):
            return found
    if texts and service.load_balancer_ip:
        what = f"both an annotation {IPS_ANNOTATION} and spec.loadBalancerIP are given; leave one of them out"
        return Refusal(Rule.AMBIGUOUS_REQUEST, what)
    ips = _read_ips(str(texts) or service.load_balancer_ip)
    if isinstance(ips, Refusal):
        return ips
    return _check_families(service, ips) or Request(ips, str(pool), str(key))


def sharing_key(service: Service) -> str:
    """The key alone, "" if it is ambiguous: who holds an address shares it also while another request is wrong."""
    key = _read_annotation(service, SHARING_ANNOTATION)
    return "" if isinstance(key, Refusal) else key


def _read_annotation(service: Service, name: str) -> str | Refusal:
    found = {prefix + name: service.annotations.get(prefix + name, "").strip() for prefix in PREFIXES}
    given = {key: text for key, text in found.items() if text}
    if len(set(given.values())) > 1:
        said = " and ".join(f'{key} says "{text}"' for key, text in given.items())
        return Refusal(Rule.AMBIGUOUS_REQUEST, said)
    return next(iter(given.values()), "")


def _read_ips(texts: str) -> tuple[IP, ...] | Refusal:
    ips: list[IP] = []
    for text in (part.strip() for part in texts.split(",")) if texts else ():
        ip = parse_ip(text)
        if ip is None:
            return Refusal(Rule.UNREADABLE_ADDRESS, f'"{text}" is not an address')
        ips.append(ip)
    families = [family_of(ip) for ip in ips]
    if len(set(families)) != len(families):
        return Refusal(Rule.FAMILY_MISMATCH, f"{', '.join(ips)}: more than one address of a family is asked for")
    return tuple(sorted(ips, key=family_of))


def _check_families(service: Service, ips: tuple[IP, ...]) -> Refusal | None:
    own = set(service.families)
    if not own:
        return Refusal(Rule.NO_CLUSTER_IP, "the Service has no ClusterIP")
    if service.dual_stack is DualStack.REQUIRE and len(own) == 1:
        return Refusal(Rule.NOT_DUAL_STACK, f"RequireDualStack, but its ClusterIP is {next(iter(own))} only")
    asked = {family_of(ip) for ip in ips}
    enough = asked == own or (service.dual_stack is DualStack.PREFER and asked < own)
    if asked and not enough:
        said = f"{', '.join(ips)} is asked for, and the Service is {' and '.join(sorted(own))}"
        return Refusal(Rule.FAMILY_MISMATCH, said)
    return None
