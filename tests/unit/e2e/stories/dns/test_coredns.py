import yaml

from e2e.stories.dns.coredns import render_overlay


def test_the_example_is_applied_with_the_image_that_the_cluster_has() -> None:
    overlay = yaml.safe_load(render_overlay("../example", "registry.test:5000/coredns/coredns:v1.14.2"))

    assert overlay["resources"] == ["../example"]
    assert overlay["images"] == [
        {"name": "coredns/coredns", "newName": "registry.test:5000/coredns/coredns", "newTag": "v1.14.2"}
    ]
