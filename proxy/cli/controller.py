"""`closeby controller`: load-balancer addresses for Services, out of pools."""

import re
import secrets
import signal
import socket
from functools import partial
from pathlib import Path
from types import FrameType

import click
import structlog
from prometheus_client import REGISTRY

from endpointslice.types import NodeName
from proxy.addresses.allocate import DEFAULT_CLASS, Classes
from proxy.addresses.controller import Controller, Outside, Place
from proxy.addresses.leader import Elector
from proxy.addresses.lease import Timing
from proxy.addresses.messages import Leading, Stop
from proxy.addresses.metrics import UsageCollector
from proxy.cli.log_options import log_options
from proxy.config import ConfigError, check_sources, parse_bind_address, parse_duration
from proxy.logs import set_up_logs
from proxy.metrics_server import serve_metrics
from proxy.sources.credentials import NO_PROXY_YET, load_in_cluster, load_kubeconfig
from proxy.sources.recorder import EventRecorder, Limit
from proxy.sources.transport import ApiServer

log = structlog.get_logger()

NAMESPACE = "metallb-system"
_METRICS_PORT = 7472
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAMESPACE = re.compile(_LABEL)
_CLASS = re.compile(rf"({_LABEL}(\.{_LABEL})*/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_SHORTEST_S = 1.0  # the API's least
_EVENTS = Limit(burst=512, refill_s=1.0)  # a roll-out of a whole cluster says something of each Service

namespace_option = click.option(
    "--namespace", default=NAMESPACE, show_default=True, help="Where IPAddressPools and L2Advertisements are read."
)


@click.command()
@click.option("--kubeconfig", type=click.Path(path_type=Path), help="Talk to the API server that this file names.")
@click.option("--master", default="", help="The API server's URL, instead of the kubeconfig's or of the pod's.")
@namespace_option
@click.option(
    "--load-balancer-class",
    default=DEFAULT_CLASS,
    show_default=True,
    metavar="NAME",
    help="Serve Services with this spec.loadBalancerClass.",
)
@click.option(
    "--classless/--no-classless", default=True, show_default=True, help="Serve Services without a class, too."
)
@click.option(
    "--lease-duration",
    default="15s",
    show_default=True,
    metavar="DURATION",
    help="How long another replica waits for one that is silent.",
)
@click.option(
    "--metrics-bind-address",
    default=f"0.0.0.0:{_METRICS_PORT}",
    show_default=True,
    metavar="ADDRESS",
    help="Where /metrics and /healthz are served; empty: nowhere.",
)
@log_options
def controller(*, kubeconfig: Path | None, master: str, verbosity: int, log_format: str, **flags: str | bool) -> None:
    """Give Services of type LoadBalancer their addresses, out of IPAddressPools; one replica is active, by a Lease.

    Pools are MetalLB's objects as they are (metallb.io/v1beta1), and so are the annotations of Services:
    metallb.io/loadBalancerIPs, metallb.io/address-pool and metallb.io/allow-shared-ip, each also as closeby.dev/...
    The address is written into status.loadBalancer. What can't be given is told by the condition
    closeby.dev/AddressGranted and by an Event, with the name of the rule: docs/load-balancer.md lists them.

    Nothing is kept but the Services' own status, so it may be restarted at any time. `closeby validate -f FILE` tells
    what is wrong with pools before they are applied.

    \b
    Examples:
      closeby controller                                                 in a pod: deploy/controller
      closeby controller --kubeconfig ~/.kube/config --namespace default
      kubectl get service web -o jsonpath='{.status.conditions}'         why it waits
    """  # noqa: D301 (click reads the backslash)
    place = _read_place(flags)
    timing = Timing(_read_duration("--lease-duration", str(flags["lease_duration"])))
    address = parse_bind_address("--metrics-bind-address", str(flags["metrics_bind_address"]), _METRICS_PORT)
    check_sources(None, kubeconfig)
    set_up_logs(verbosity, log_format)
    api = _open_api(kubeconfig, master)
    usage = UsageCollector()
    if address is not None:
        try:
            serve_metrics(address)
        except OSError as error:
            raise ConfigError(f"--metrics-bind-address: {flags['metrics_bind_address']}: {error.strerror}") from error
        REGISTRY.register(usage)
    _run(place, timing, api, usage)


def _run(place: Place, timing: Timing, api: ApiServer, usage: UsageCollector) -> None:
    """Until SIGTERM or SIGINT."""
    identity = f"{socket.gethostname()}_{secrets.token_hex(4)}"
    recorder = EventRecorder(api, NodeName(identity), limit=_EVENTS)
    elector = Elector(api, place.namespace, identity, timing)
    loop = Controller(place, Outside(api, recorder.tell, elector.leads, usage.show))

    def stop(_number: int, _frame: FrameType | None) -> None:
        loop.inbox.put(Stop())

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    recorder.start()
    elector.start(lambda active: loop.inbox.put(Leading(active)))
    log.info("started", identity=identity, namespace=place.namespace, load_balancer_class=place.classes.name)
    loop.run()
    elector.stop()
    log.info("stopped", addresses="left as they are")


def _open_api(kubeconfig: Path | None, master: str) -> ApiServer:
    if kubeconfig is not None:
        return ApiServer(partial(load_kubeconfig, kubeconfig, master))
    return ApiServer(partial(load_in_cluster, master=master), "" if master else NO_PROXY_YET)


def _read_place(flags: dict[str, str | bool]) -> Place:
    name = str(flags["load_balancer_class"])
    if not _CLASS.fullmatch(name):
        raise ConfigError(f'--load-balancer-class: "{name}" is no name of a class; write it as example.org/name')
    return Place(check_namespace(str(flags["namespace"])), Classes(name, classless=bool(flags["classless"])))


def check_namespace(name: str) -> str:
    """The same; ConfigError if no Namespace can be called so."""
    if not _NAMESPACE.fullmatch(name):
        raise ConfigError(f'--namespace: "{name}" is no name of a Namespace')
    return name


def _read_duration(flag: str, text: str) -> float:
    seconds = parse_duration(flag, text)
    if seconds < _SHORTEST_S:
        raise ConfigError(f"{flag}: {text} is shorter than a second")
    return seconds
