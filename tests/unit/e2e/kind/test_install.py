import yaml

from e2e.kind.install import render_overlay


def test_the_overlay_says_where_the_api_server_is_without_a_service() -> None:
    overlay = yaml.safe_load(render_overlay("../deploy/overlays/kind", "shop-control-plane"))
    assert overlay["resources"] == ["../deploy/overlays/kind"]
    (generated,) = overlay["configMapGenerator"]
    assert (generated["name"], generated["behavior"]) == ("closeby", "merge")
    assert generated["literals"] == ["apiServer=https://shop-control-plane:6443"]
