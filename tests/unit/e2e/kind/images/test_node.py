from pathlib import Path

from e2e.kind.images.node import Programs, edit_containerd_config, image_tag

CONFIG = """\
version = 2
[proxy_plugins]
[proxy_plugins."other"]
  address = "/run/other.sock"

[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = "overlayfs"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "images.example/pause:3.10"
"""


def test_containerd_gets_the_sandbox_image_that_is_there_and_one_snapshotter() -> None:
    assert edit_containerd_config(CONFIG, "images.example/pause:3.10.2") == (
        'version = 2\n[plugins."io.containerd.grpc.v1.cri".containerd]\n  snapshotter = "overlayfs"\n'
        '[plugins."io.containerd.grpc.v1.cri"]\n  sandbox_image = "images.example/pause:3.10.2"\n'
    )


def test_another_build_of_a_program_is_another_image() -> None:
    programs = Programs(*(Path(f"/cache/{name}/v1-abc/{name}") for name in Programs._fields))
    rebuilt = programs._replace(coredns=Path("/cache/coredns/v1-def/coredns"))
    assert image_tag(programs) == image_tag(programs)
    assert image_tag(programs) != image_tag(rebuilt)
