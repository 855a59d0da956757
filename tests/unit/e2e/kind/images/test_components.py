from pathlib import Path

import pytest

from deploy.image.layers import Layer
from e2e.kind.images.components import Layers, parse_tags, plan_images, sandbox_image

LISTED = """\
images.example/kube-apiserver:v1.36.3
images.example/kube-proxy:v1.36.3
images.example/coredns/coredns:v1.14.2
images.example/pause:3.10.2
images.example/etcd:3.6.8-0
"""
LAYERS = Layers(*(Layer(Path(name), f"sha256:{name}", "sha256:packed", 1) for name in Layers._fields))


def test_tags_go_by_the_components_last_name() -> None:
    tags = parse_tags(LISTED)
    assert tags.keys() == {"kube-apiserver", "kube-proxy", "coredns", "pause", "etcd"}
    assert tags["coredns"] == "images.example/coredns/coredns:v1.14.2"
    assert sandbox_image(tags) == "images.example/pause:3.10.2"


def test_every_tag_becomes_an_image_of_its_binary() -> None:
    images = {image.tag: image for image in plan_images(parse_tags(LISTED), LAYERS)}
    assert images.keys() == set(LISTED.split())
    assert images["images.example/etcd:3.6.8-0"].layers == (LAYERS.kube,)
    assert images["images.example/kube-proxy:v1.36.3"].layers == (LAYERS.toolbox, LAYERS.kube)
    assert images["images.example/pause:3.10.2"].entrypoint == ("/pause",)


def test_a_component_that_is_not_known_is_refused() -> None:
    with pytest.raises(KeyError, match="kube-novelty"):
        plan_images(parse_tags("images.example/kube-novelty:v1"), LAYERS)
