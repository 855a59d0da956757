"""EFFECT: dockerd: the one that runs here, or one of our own in a network namespace without an uplink.

Our own keeps its images in the cache, and its socket, pids and log in `run/` beside them. All its containers are in one
cgroup, so what a crash left is found and ended without a list: nothing else is ever in there.
"""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from e2e.binaries.build import cache_folder
from e2e.controlplane.waiting import wait_for
from e2e.kind.docker import Docker
from e2e.kind.host import Host
from e2e.world.netns import NetnsError, create_namespaces, list_inhabitants, list_namespaces, remove_namespaces, run_ip

_CGROUPS = Path("/sys/fs/cgroup")
_START_S = 60.0
_END_S = 20.0
_ENTER_S = 10.0  # until it is in its namespace, on the busiest machine
_RUNC = Path(__file__).with_name("runc.py")


class DockerdError(Exception):
    """No dockerd runs, and ours can't be started; the text says why."""


def folder() -> Path:
    """What our dockerd and the clusters on it keep."""
    return cache_folder() / "kind"


def own_name() -> str:
    """Of our dockerd's namespace and cgroup; another cache has another one, so two never meet."""
    return f"closeby-kind-{hashlib.sha256(str(folder()).encode()).hexdigest()[:8]}"


def find_docker() -> Docker | None:
    """The dockerd that DOCKER_HOST names, else ours, else the machine's; None if none of them runs."""
    ours = Docker(_socket(), own_name()) if _socket().exists() and list_namespaces(own_name()) else None
    named = Docker() if os.environ.get("DOCKER_HOST") else None
    for docker in (named, ours, Docker()):
        if docker and docker.works("docker", "version"):
            return docker
    return None


def start_docker(host: Host) -> Docker:
    """Start our own. It outlives this process: `stop_docker` ends it. DockerdError."""
    if shutil.which("dockerd") is None:
        raise DockerdError("no dockerd runs here, and there is none to start: `.ci/setup kind` installs it")
    sweep()
    run = folder() / "run"
    run.mkdir(parents=True, exist_ok=True)
    try:
        create_namespaces([own_name()])
        run_ip({own_name(): ["link set lo up"]})
    except NetnsError as error:
        raise DockerdError(str(error)) from error
    docker = Docker(_socket(), own_name())
    # By setsid, so that it is nobody's child; not by `ip netns exec`, which mounts a /sys without the cgroups.
    with (run / "dockerd.log").open("wb") as log:
        start = ["setsid", "--fork", *docker.inside(_command(run, host))]
        subprocess.run(start, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=True)
    began = time.monotonic()

    def is_up() -> bool:
        if docker.works("docker", "version"):
            return True
        if time.monotonic() - began > _ENTER_S and not list_inhabitants([own_name()]):
            raise DockerdError(f"dockerd ended; the last of its log:\n{_tail(run)}")
        return False

    try:
        wait_for(is_up, "dockerd answers", timeout_s=_START_S)
    except TimeoutError as error:
        raise DockerdError(f"{error}; the last of its log:\n{_tail(run)}") from error
    for container in docker.run("docker", "ps", "--all", "--quiet").split():  # of one that crashed
        docker.run("docker", "rm", "--force", "--volumes", container)
    return docker


def stop_docker() -> None:
    """End our own dockerd, with all that it runs, and remove its namespace. Images stay in the cache."""
    pid = _pid_of(folder() / "run" / "dockerd.pid")
    if pid is not None:
        os.kill(pid, signal.SIGTERM)
        try:
            wait_for(lambda: not Path(f"/proc/{pid}").exists(), "dockerd has ended", timeout_s=_END_S)
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
    sweep()


def list_leftovers() -> list[str]:
    """What is there of our dockerd, running or left by a crash: its namespace, cgroups, mounts."""
    return [*list_namespaces(own_name()), *map(str, _cgroup_folders()), *_mounts_below(folder())]


def sweep() -> None:
    """Remove what a dockerd of ours left, however it ended: processes, mounts, cgroups, its namespace."""
    run = folder() / "run"
    for name in ("dockerd.pid", "exec/containerd/containerd.pid"):
        pid = _pid_of(run / name)
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not _kill_cgroup(), "the containers' processes have ended", timeout_s=_END_S)
    for target in _mounts_below(folder()):
        subprocess.run(["umount", "--lazy", target], check=False, capture_output=True)
    for cgroup in _cgroup_folders():
        _remove_cgroup(cgroup)
    remove_namespaces(list_namespaces(own_name()))
    shutil.rmtree(run, ignore_errors=True)


def _command(run: Path, host: Host) -> list[str]:
    command = [
        "dockerd",
        f"--data-root={folder() / 'docker'}",
        f"--exec-root={run / 'exec'}",
        f"--pidfile={run / 'dockerd.pid'}",
        f"--host=unix://{_socket()}",
        "--storage-driver=overlay2",
        "--exec-opt=native.cgroupdriver=cgroupfs",  # no systemd is asked: there may be none
        f"--cgroup-parent=/{own_name()}",
    ]
    if host.no_sys_resource:
        wrapper = run / "runc"
        wrapper.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "{_RUNC}" "$@"\n')
        wrapper.chmod(0o755)
        command += [f"--add-runtime=runc-here={wrapper}", "--default-runtime=runc-here"]
    return command


def _socket() -> Path:
    return folder() / "run" / "docker.sock"


def _tail(run: Path) -> str:
    return "\n".join((run / "dockerd.log").read_text(errors="replace").splitlines()[-15:])


def _pid_of(pid_file: Path) -> int | None:
    """The process that the file names, if it is one of ours: its command line has our folder."""
    try:
        pid = int(pid_file.read_text())
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (OSError, ValueError):
        return None
    return pid if str(folder()).encode() in command else None


def _cgroup_folders() -> list[Path]:
    """Ours, in each hierarchy (v1), or the one (v2)."""
    return [path for path in (_CGROUPS / own_name(), *_CGROUPS.glob(f"*/{own_name()}")) if path.is_dir()]


def _kill_cgroup() -> int:
    """Kill what is left in our cgroups; how many processes that were."""
    pids: set[int] = set()
    for cgroup in _cgroup_folders():
        for procs in cgroup.rglob("cgroup.procs"):
            try:
                pids.update(int(line) for line in procs.read_text().split())
            except OSError:  # removed meanwhile, or a threaded one
                continue
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return len(pids)


def _remove_cgroup(cgroup: Path) -> None:
    """Deepest first; one that is still busy stays, empty as it is."""
    for path in sorted((p for p in cgroup.rglob("*") if p.is_dir()), reverse=True):
        _rmdir(path)
    _rmdir(cgroup)


def _rmdir(path: Path) -> None:
    try:
        path.rmdir()
    except OSError:
        return


def _mounts_below(path: Path) -> list[str]:
    """Deepest first."""
    mounted = (line.split()[1] for line in Path("/proc/mounts").read_text().splitlines())
    return sorted((target for target in mounted if target.startswith(f"{path}/")), reverse=True)
