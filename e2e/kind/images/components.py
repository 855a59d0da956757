"""The images of a control plane, of one binary each: what kubeadm and kind expect to find on a node. No I/O."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from deploy.image.archive import Image
from deploy.image.layers import Layer

BIN = "/usr/local/bin"
KUBE_NAMES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler", "kubectl")


class Layers(NamedTuple):
    """What the images are put together from."""

    toolbox: Layer
    kube: Layer  # the one binary of Kubernetes, under all its names
    coredns: Layer
    pause: Layer


def parse_tags(listed: str) -> dict[str, str]:
    """Component -> its tag, from what `kubeadm config images list` prints."""
    return {re.split(r"[/:]", tag)[-2]: tag for tag in listed.split()}


def plan_images(tags: Mapping[str, str], layers: Layers) -> list[Image]:
    """An image for each tag. KeyError: kubeadm wants a component that is not known here."""
    layers_of: dict[str, tuple[Layer, ...]] = {
        "etcd": (layers.kube,),
        "kube-apiserver": (layers.kube,),
        "kube-controller-manager": (layers.kube,),
        "kube-scheduler": (layers.kube,),
        "kube-proxy": (layers.toolbox, layers.kube),  # it runs nft, or iptables
        "coredns": (layers.coredns,),
        "pause": (layers.pause,),
    }
    entrypoints = {"coredns": ("/coredns",), "pause": ("/pause",)}
    return [Image(tag, layers_of[name], entrypoints.get(name, ())) for name, tag in sorted(tags.items())]


def sandbox_image(tags: Mapping[str, str]) -> str:
    """The image that every pod's sandbox is made of."""
    return tags["pause"]


def links_to_kube(names: Sequence[str] = KUBE_NAMES) -> dict[str, str]:
    """The names under which the one binary is called, as symbolic links."""
    return {f"{BIN}/{name}": "kube" for name in names}
