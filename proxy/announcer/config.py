"""All that `closeby announce` is told."""

from pathlib import Path

import msgspec

from endpointslice.types import IP
from proxy.announcer.beat_sockets import Ports
from proxy.l2.candidates import Options
from proxy.l2.types import Settings


class Config(msgspec.Struct, frozen=True):
    """From its command line."""

    settings: Settings
    keys: Path
    proxy_socket: Path
    control_socket: Path
    memory: Path
    ports: Ports
    peers: tuple[IP, ...] = ()
    gateways: tuple[IP, ...] = ()
    options: Options = Options()
    ready_file: Path | None = None  # None: nobody is told
