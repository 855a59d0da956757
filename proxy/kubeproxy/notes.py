"""What is said at start about settings that don't do here what they do in kube-proxy. Pure."""

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from proxy.kubeproxy.defaults import fill_defaults
from proxy.kubeproxy.fields import EXTERNAL_IPS_GATE, FIELDS, Use
from proxy.kubeproxy.types import KubeProxyConfiguration
from proxy.kubeproxy.values import get_field

# With --config these still count, as in kube-proxy; all else that the file can hold is the file's.
BESIDE_FILE = frozenset({"--hostname-override"})

# How kubeadm writes what nobody set is "0s"; `kube-proxy --write-config-to` writes its defaults out.
_WRITTEN_OUT: Mapping[str, tuple[object, ...]] = {
    "logging.flushFrequency": ("0s", "5s", 5_000_000_000),
    "configSyncPeriod": ("0s", "15m0s"),
    "ipvs.scheduler": ("rr",),
}


class Note(NamedTuple):
    """One line of the log."""

    setting: str
    why: str


def counts_beside_file(flag: str) -> bool:
    """Whether a flag is heard although a file is given: kube-proxy's exceptions are logging and the Node's name."""
    return flag in BESIDE_FILE or any(field.flag == flag and field.path.startswith("logging.") for field in FIELDS)


def note_file(config: KubeProxyConfiguration, flags: Collection[str]) -> Iterator[Note]:
    """Fields of the file that are set and do nothing, then flags that the file silences."""
    absent = KubeProxyConfiguration()
    filled = fill_defaults(absent)
    for field in FIELDS:
        if field.use is Use.IGNORED and get_field(config, field.path) not in _empty(absent, filled, field.path):
            yield Note(field.path, field.says)
    yield from _note_gates(config, "featureGates")
    yield from _note_mode(config)
    yield from _note_networks(config)
    for flag in flags:
        if not counts_beside_file(flag):
            yield Note(flag, "--config is given: the file counts, as in kube-proxy")


def _empty(absent: KubeProxyConfiguration, filled: KubeProxyConfiguration, path: str) -> tuple[object, ...]:
    """The values that say nothing: absent, kube-proxy's default, and how others write these."""
    return (get_field(absent, path), get_field(filled, path), *_WRITTEN_OUT.get(path, ("0s",)))


def note_flags(config: KubeProxyConfiguration, flags: Collection[str]) -> Iterator[Note]:
    """Flags that were given and do nothing."""
    for flag in flags:
        fields = [field for field in FIELDS if field.flag == flag]
        if all(field.use is Use.IGNORED for field in fields):
            yield Note(flag, fields[0].says)
    if "--feature-gates" in flags:
        yield from _note_gates(config, "--feature-gates")
    if "--proxy-mode" in flags:
        yield from _note_mode(config)
    yield from _note_networks(config)


def _note_networks(config: KubeProxyConfiguration) -> Iterator[Note]:
    """What differs from kube-proxy where NodePorts are held to networks."""
    networks = [text.strip() for text in config.node_port_addresses]
    if not any("/" in text for text in networks) or "all" in networks:
        return
    for family, there in (
        ("IPv4", any(":" not in text for text in networks)),
        ("IPv6", any(":" in text for text in networks)),
    ):
        if not there:
            yield Note("nodePortAddresses", f"no {family} network: NodePorts answer on no {family} address")
    if any(text.startswith(("127.", "::1/")) for text in networks):
        yield Note("nodePortAddresses", "NodePorts don't answer on loopback addresses")


def _note_gates(config: KubeProxyConfiguration, setting: str) -> Iterator[Note]:
    others = sorted(config.feature_gates.keys() - {EXTERNAL_IPS_GATE})
    if others:
        yield Note(setting, f"only {EXTERNAL_IPS_GATE} means something here, not {', '.join(others)}")


def _note_mode(config: KubeProxyConfiguration) -> Iterator[Note]:
    if config.mode == "nftables":
        return
    yield Note("mode", f"{config.mode or 'empty'}: closeby always programs nftables, in tables of its own")
    if not config.node_port_addresses:
        yield Note(
            "nodePortAddresses",
            "empty: the Node's first address of each family, as in kube-proxy's nftables mode; "
            "write 0.0.0.0/0 and ::/0 for all, as in its other modes",
        )
