from pathlib import Path

from deploy.image.layers import Layer
from e2e.conformance.images import Layers, plan_images

LAYERS = Layers(*(Layer(Path(name), f"sha256:{name}", "sha256:packed", 1) for name in Layers._fields))
REGISTRY = "images.example/e2e-test-images"


def test_every_tag_of_a_known_image_is_made_and_no_other() -> None:
    tags = [
        f"{REGISTRY}/agnhost:2.63.0",
        f"{REGISTRY}/agnhost:2.55",
        f"{REGISTRY}/kitten:1.8",
        f"{REGISTRY}/agnhost:2.55",
    ]
    assert [image.tag for image in plan_images(tags, LAYERS)] == [
        f"{REGISTRY}/agnhost:2.55",
        f"{REGISTRY}/agnhost:2.63.0",
    ]


def test_what_each_image_runs() -> None:
    names = ("agnhost:1", "nginx:1", "busybox:1", "jessie-dnsutils:1", "regression-issue-74839:1")
    images = {image.tag.rpartition("/")[2]: image for image in plan_images([f"{REGISTRY}/{n}" for n in names], LAYERS)}
    assert images["agnhost:1"].entrypoint == ("/agnhost",)
    assert images["agnhost:1"].command == ("pause",)
    assert images["nginx:1"].entrypoint == ("/agnhost", "netexec", "--http-port=80")
    assert images["busybox:1"].layers == images["jessie-dnsutils:1"].layers == (LAYERS.toolbox, LAYERS.shell)
    assert images["regression-issue-74839:1"].layers == (LAYERS.regression,)
