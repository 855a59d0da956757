"""How many Services, with how many endpoints each, and which addresses they have. No I/O."""

import ipaddress
import re
from typing import NamedTuple

NAMESPACE = "bench"
PORT = 80
TARGET_PORT = 8080
ENDPOINTS_CIDR = "10.128.0.0/9"  # every address in it is answered by the one server
_FIRST_SERVICE_IP = int(ipaddress.IPv4Address("10.96.0.16"))  # in the control plane's 10.96.0.0/16
_FIRST_ENDPOINT_IP = int(ipaddress.IPv4Address("10.128.0.1"))
_FIRST_SPARE_IP = int(ipaddress.IPv4Address("10.192.0.1"))
_MOST_SERVICES = 65_000
_MOST_ENDPOINTS = 4_000_000
_MOST_PER_SLICE = 1_000  # the API's limit
_TEXT = re.compile(r"(\d+)x(\d+)")


class Scale(NamedTuple):
    """Services, each with one slice of so many endpoints."""

    services: int
    endpoints: int

    def __str__(self) -> str:
        """As `parse_scale` takes it."""
        return f"{self.services}x{self.endpoints}"


def parse_scale(text: str) -> Scale:
    """`1000x5` is 1,000 Services of 5 endpoints. ValueError says what is wrong."""
    match = _TEXT.fullmatch(text)
    if match is None:
        raise ValueError(f'"{text}" is no scale; write SERVICESxENDPOINTS, such as 1000x5')
    scale = Scale(int(match[1]), int(match[2]))
    if not 1 <= scale.services <= _MOST_SERVICES:
        raise ValueError(f"{scale}: 1 to {_MOST_SERVICES} Services have room in 10.96.0.0/16")
    if not 1 <= scale.endpoints <= _MOST_PER_SLICE or scale.services * scale.endpoints > _MOST_ENDPOINTS:
        raise ValueError(
            f"{scale}: 1 to {_MOST_PER_SLICE} endpoints fit into a slice, and {_MOST_ENDPOINTS} into the range"
        )
    return scale


def service_ip(number: int) -> str:
    """ClusterIP of Service `number`, from 0."""
    return str(ipaddress.IPv4Address(_FIRST_SERVICE_IP + number))


def endpoint_ip(scale: Scale, service: int, index: int) -> str:
    """Address of one endpoint as loaded; no two endpoints share one."""
    return str(ipaddress.IPv4Address(_FIRST_ENDPOINT_IP + service * scale.endpoints + index))


def spare_ip(number: int) -> str:
    """An address that no endpoint has as loaded: change `number` brings it in."""
    return str(ipaddress.IPv4Address(_FIRST_SPARE_IP + number))
