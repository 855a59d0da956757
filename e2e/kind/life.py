"""EFFECT: what `up` and `down` do, in order, and what they leave when a step fails."""

from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from deploy.image.debian import DebianError
from e2e.binaries.build import version_of
from e2e.kind.cluster import Cluster, list_clusters
from e2e.kind.config import Proxy, Wanted
from e2e.kind.daemon import DockerdError, find_docker, folder, start_docker, stop_docker
from e2e.kind.docker import CommandError, Docker
from e2e.kind.host import allow_watching, look_at_host
from e2e.kind.images.node import Programs, build_programs, make_node_image
from e2e.kind.install import install_closeby
from e2e.kind.steps import Steps, steps_on
from e2e.world.netns import NetnsError

_PULL_S = 300.0


class Ask(NamedTuple):
    """What `up` is asked for."""

    name: str = "kind"
    workers: int = 2
    proxy: Proxy = Proxy.NONE
    node_image: str | None = None  # None: the published one, else one built here
    archives: tuple[Path, ...] = ()  # images to import into every node
    manifests: tuple[Path, ...] = ()  # applied in order, before the proxy
    keep_logs: Path | None = None


def bring_up(ask: Ask, console: Console) -> Cluster:
    """A running cluster. On an error its logs are in a folder that the console names, and the cluster stays."""
    steps = steps_on(console)
    programs = build_programs(console)
    host = look_at_host()
    if not allow_watching():
        console.print("few inotify instances are allowed, so nodes may run out of them: fs.inotify.max_user_instances")
    docker = find_docker()
    if docker is None:
        with steps("dockerd, in a network namespace of its own"):
            docker = start_docker(host)
    image = ask.node_image or _node_image(docker, programs, console, steps)
    cluster = Cluster(docker, programs, ask.name)
    try:
        cluster.create(Wanted(ask.name, ask.workers, ask.proxy, image), host, steps)
        for archive in ask.archives:
            with steps(f"import of {archive.name}"):
                cluster.load(archive)
        for manifests in ask.manifests:
            with steps(f"{manifests}"):
                cluster.apply(manifests)
        if ask.proxy is Proxy.CLOSEBY:
            install_closeby(cluster, steps)
        if ask.manifests or ask.proxy is not Proxy.NONE:
            with steps("Services work"):
                cluster.await_services()
    except (CommandError, NetnsError, TimeoutError):
        keep_logs(cluster, ask.keep_logs or folder() / "logs" / ask.name, console)
        raise
    if ask.keep_logs:
        keep_logs(cluster, ask.keep_logs, console)
    return cluster


def bring_down(name: str | None, console: Console) -> None:
    """Remove the cluster (None: all), and our dockerd with the last one. What is gone already doesn't matter."""
    docker = find_docker()
    if docker is None:
        stop_docker()  # nothing answers: what a crash left, if anything
        console.print("no dockerd runs; what one of ours may have left is removed")
        return
    programs = build_programs(console)
    running = list_clusters(docker, programs.kind)
    for cluster in running if name is None else [name]:
        with steps_on(console)(f"kind delete cluster {cluster}"):
            Cluster(docker, programs, cluster).delete()
    if docker.netns and not set(running) - ({name} if name else set(running)):
        with steps_on(console)("dockerd ends"):
            stop_docker()


def find_cluster(name: str, console: Console) -> Cluster:
    """The running cluster of that name. DockerdError if there is none."""
    for cluster in list_running(console):
        if cluster.name == name:
            return cluster
    raise DockerdError(f"no cluster {name} runs; `python -m e2e.kind up` makes one")


def list_running(console: Console) -> list[Cluster]:
    """Every cluster that runs."""
    docker = find_docker()
    if docker is None:
        return []
    programs = build_programs(console)
    return [Cluster(docker, programs, name) for name in list_clusters(docker, programs.kind)]


def _node_image(docker: Docker, programs: Programs, console: Console, steps: Steps) -> str:
    """Kind's published image of the very version, where this dockerd can pull; else one made here."""
    published = f"kindest/node:{version_of('k8s.io/kubernetes')}"
    if docker.works("docker", "image", "inspect", published):
        return published
    if docker.netns is None:  # our own has no uplink
        try:
            with steps(f"docker pull {published}"):
                docker.run("docker", "pull", "--quiet", published, limit_s=_PULL_S)
        except CommandError as error:
            reason = str(error).splitlines()[-1]
            console.print(f"{published} can't be pulled, so one is built here: {reason}", soft_wrap=True)
        else:
            return published
    cache = folder() / "images"
    cache.mkdir(parents=True, exist_ok=True)
    try:
        return make_node_image(docker, programs, cache, console, steps)
    except (CommandError, DebianError) as error:
        raise DebianError(f"no node image could be built: {error}") from error


def keep_logs(cluster: Cluster, target: Path, console: Console) -> None:
    """Write everything of a cluster into a folder, and say where it is."""
    cluster.write_logs(target)
    console.print(f"logs of all components: {target}", soft_wrap=True)
