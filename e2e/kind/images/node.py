"""EFFECT: kind's node image without a registry: Debian, the files of kind's own base image, and our Go programs.

The files are read from the kind module's source at build time; the steps follow what its Dockerfile and
`kind build node-image` do, with Debian's containerd and runc in place of newer ones.
"""

import hashlib
import io
import json
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from deploy.image import archive, layers
from deploy.image.archive import PATH, write_archive
from deploy.image.layers import pack_programs
from e2e.binaries.build import build, kubernetes_versions, source_of, version_of
from e2e.controlplane.waiting import wait_for
from e2e.kind.docker import Docker
from e2e.kind.images import components, roots
from e2e.kind.steps import Steps

_REPOSITORY = "closeby.test/kind-node"
_RECIPE = (Path(__file__), Path(components.__file__), Path(archive.__file__), Path(layers.__file__))
_CONTAINERD_S = 60.0
_PINNED = "io.cri-containerd.pinned=pinned"  # no kubelet short of disk may remove such an image
_STORAGE_CLASS = """\
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: standard
  annotations: {storageclass.kubernetes.io/is-default-class: "true"}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
"""
# As kind's Dockerfile: nothing starts but what a node needs. Debian enables its own timers besides.
_SETUP = """
set -eu
rm -f /lib/systemd/system/multi-user.target.wants/* /etc/systemd/system/*.wants/*
rm -f /lib/systemd/system/local-fs.target.wants/* /lib/systemd/system/basic.target.wants/*
rm -f /lib/systemd/system/sockets.target.wants/*udev* /lib/systemd/system/sockets.target.wants/*initctl*
rm -f /lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service
rm -f /lib/systemd/system/containerd.service
echo ReadKMsg=no >> /etc/systemd/journald.conf
systemctl enable kubelet.service containerd.service undo-mount-hacks.service
systemctl mask systemd-binfmt.service
mkdir -p /etc/kubernetes/manifests /etc/containerd /opt/cni
ln -s /usr/lib/cni /opt/cni/bin
ctr oci spec | jq '.hooks.createContainer += [{"path": "/kind/bin/mount-product-files.sh"}] | del(.process.rlimits)' \\
    > /etc/containerd/cri-base.json
"""


class Programs(NamedTuple):
    """Our binaries; their paths tell their versions."""

    kube: Path
    coredns: Path
    pause: Path
    crictl: Path
    kind: Path


def build_programs(console: Console) -> Programs:
    """All that a cluster needs, built if need be."""
    return Programs(*(build(name, console) for name in Programs._fields))


def image_tag(programs: Programs) -> str:
    """Names all that goes into the image, so that an image of this name needs no rebuild."""
    digest = hashlib.sha256(f"{roots.recipe()} {[str(path.parent.name) for path in programs]}".encode())
    for file in _RECIPE:
        digest.update(file.read_bytes())
    return f"{_REPOSITORY}:{version_of('k8s.io/kubernetes')}-{digest.hexdigest()[:12]}"


def make_node_image(docker: Docker, programs: Programs, cache: Path, console: Console, steps: Steps) -> str:
    """The tag of the image, in dockerd; made now if it isn't there. CommandError, DebianError, BuildError."""
    tag = image_tag(programs)
    if docker.works("docker", "image", "inspect", tag):
        return tag
    kind_source = source_of("sigs.k8s.io/kind", console)
    debian = roots.make_roots(cache, steps)
    base = f"{_REPOSITORY}:base-{roots.recipe()}"
    if not docker.works("docker", "image", "inspect", base):
        with steps("import of the root file system"):
            docker.run("docker", "import", str(debian.node), base)
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        images = Path(scratch) / "images.tar"
        with steps("images of the control plane"):
            tags = _write_images(Path(scratch), images, programs, debian)
        with steps("node image"), _container(docker, base) as container:
            overlay = Path(scratch) / "overlay.tar"
            _write_overlay(overlay, programs, kind_source, components.sandbox_image(tags))
            with overlay.open("rb") as tar:
                docker.run_on(tar, "docker", "cp", "-", f"{container}:/")
            docker.run("docker", "exec", container, "bash", "-c", _SETUP)
            _preload(docker, container, images)
            entrypoint = json.dumps(["/usr/local/bin/entrypoint", "/sbin/init"])
            docker.run("docker", "commit", "--change", f"ENTRYPOINT {entrypoint}", container, tag)
    _remove_earlier(docker, {tag, base})
    return tag


def _remove_earlier(docker: Docker, kept: set[str]) -> None:
    """Remove the images of earlier recipes, 600 MB each, that no cluster uses; not those of another Kubernetes."""
    here = version_of("k8s.io/kubernetes")
    others = tuple(f"{_REPOSITORY}:{version}-" for version in kubernetes_versions() if version != here)
    listed = docker.run("docker", "images", "--format={{.Repository}}:{{.Tag}}", _REPOSITORY)
    for tag in set(listed.split()) - kept:
        if not tag.startswith(others):
            docker.works("docker", "rmi", tag)


def _write_images(scratch: Path, path: Path, programs: Programs, debian: roots.Roots) -> dict[str, str]:
    """Write the archive; component -> tag."""
    version = version_of("k8s.io/kubernetes")
    kubeadm = (str(programs.kube), "kubeadm", "config", "images", "list", f"--kubernetes-version={version}")
    tags = components.parse_tags(subprocess.run(kubeadm, check=True, capture_output=True, text=True).stdout)
    kube = {f"{components.BIN}/kube": programs.kube}
    layers = components.Layers(
        debian.toolbox,
        pack_programs(scratch / "kube", kube, components.links_to_kube()),
        pack_programs(scratch / "coredns", {"/coredns": programs.coredns}, {}),
        pack_programs(scratch / "pause", {"/pause": programs.pause}, {}),
    )
    write_archive(path, components.plan_images(tags, layers))
    return tags


@contextmanager
def _container(docker: Docker, image: str) -> Iterator[str]:
    """A container of the image that does nothing, removed afterwards. What it runs with, the commit keeps."""
    flags = ("--detach", "--privileged", "--network=none", "--stop-signal=SIGRTMIN+3", "--env=container=docker")
    path = f"--env=PATH={PATH}"
    container = docker.run("docker", "run", *flags, path, "--entrypoint=sleep", image, "infinity").strip()
    try:
        yield container
    finally:
        docker.run("docker", "rm", "--force", "--volumes", container)


def _preload(docker: Docker, container: str, images: Path) -> None:
    """Put the images into the containerd of the node-to-be, packed: a node unpacks those that it runs."""
    docker.run("docker", "exec", "--detach", container, "containerd")
    answers = ("docker", "exec", container, "ctr", "version")
    wait_for(lambda: docker.works(*answers), "containerd answers", timeout_s=_CONTAINERD_S)
    load = ("ctr", "--namespace=k8s.io", "images", "import", "--no-unpack", "-")
    with images.open("rb") as tar:
        docker.run_on(tar, "docker", "exec", "--interactive", container, *load)
    ctr = "ctr --namespace=k8s.io images"
    pin = f"{ctr} list --quiet | xargs -I{{}} {ctr} label {{}} {_PINNED}"
    docker.run("docker", "exec", container, "sh", "-c", pin)
    docker.run("docker", "exec", container, "pkill", "containerd")


def _write_overlay(path: Path, programs: Programs, kind_source: Path, sandbox: str) -> None:
    """A tar of the files that are laid over Debian."""
    with tarfile.open(path, "w") as tar:
        base = kind_source / "images" / "base" / "files"
        for file in sorted(base.rglob("*")):
            if file.is_file():
                name = str(file.relative_to(base))
                program = "/bin/" in f"/{name}"
                content = file.read_bytes()
                if name == "etc/containerd/config.toml":
                    content = edit_containerd_config(content.decode(), sandbox).encode()
                _add(tar, name, content, 0o755 if program else 0o644)
        _add(tar, "usr/bin/kube", programs.kube.read_bytes(), 0o755)
        _add(tar, "usr/local/bin/crictl", programs.crictl.read_bytes(), 0o755)
        _add(tar, "kind/version", version_of("k8s.io/kubernetes").encode(), 0o644)
        _add(tar, "kind/manifests/default-storage.yaml", _STORAGE_CLASS.encode(), 0o644)
        for name in ("kubeadm", "kubelet", "kubectl"):
            _link(tar, f"usr/bin/{name}", "kube")
        for name in ("containerd", "containerd-shim-runc-v2", "ctr"):
            _link(tar, f"usr/local/bin/{name}", f"/usr/bin/{name}")
        _link(tar, "usr/sbin/init", "/lib/systemd/systemd")


def edit_containerd_config(config: str, sandbox: str) -> str:
    """The configuration of kind's containerd, for an older one: our sandbox image, and no second snapshotter."""
    kept = re.sub(r"^\[proxy_plugins.*?(?=^\[plugins)", "", config, count=1, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r'sandbox_image = ".*"', f'sandbox_image = "{sandbox}"', kept)


def _add(tar: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    tar.addfile(entry, io.BytesIO(content))


def _link(tar: tarfile.TarFile, name: str, target: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = tarfile.SYMTYPE, target
    tar.addfile(entry)
