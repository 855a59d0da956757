"""EFFECT: runs a pod's container from an image file by runc, with what a kubelet and containerd would give it.

What Kubernetes makes of a securityContext is followed as of v1.36 and containerd 2: the capabilities that are added are
bounding, permitted and effective, and not inheritable (CVE-2022-24769); /proc/sys is read-only. Not here: cgroups,
seccomp and AppArmor, which need a kubelet.
"""

import json
import re
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

_READ_ONLY = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]
_MASKED = ["/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/scsi", "/sys/firmware"]
_NAMESPACES = ("pid", "ipc", "uts", "mount")
_VARIABLE = re.compile(r"\$\((\w+)\)")
_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


class Given(NamedTuple):
    """What a kubelet adds to a pod."""

    netns: str  # a named one: the host's
    environment: Mapping[str, str]  # values of the variables that refer to fields and ConfigMaps
    folders: Mapping[str, Path]  # by the volume's name: of ConfigMaps and Secrets, and in place of the host's own
    account: Path  # token and ca.crt


def unpack(image: Path, rootfs: Path) -> dict[str, Any]:
    """The image's tree, with its file capabilities, and its configuration."""
    rootfs.mkdir()
    with tarfile.open(image) as tar:

        def read(name: str) -> bytes:
            file = tar.extractfile(name)
            assert file is not None
            return file.read()

        (manifest,) = json.loads(read("manifest.json"))
        for layer in manifest["Layers"]:
            command = ["tar", "--xattrs", "--xattrs-include=*", "-xzp", "-C", str(rootfs)]
            subprocess.run(command, input=read(layer), check=True)
        config: dict[str, Any] = json.loads(read(manifest["Config"]))
    return config


def oci_config(
    pod: Mapping[str, Any], container: Mapping[str, Any], entrypoint: list[str], given: Given
) -> dict[str, Any]:
    """The runtime's configuration (OCI runtime specification 1.0) of one container of a pod."""
    rights = {**pod.get("securityContext", {}), **container.get("securityContext", {})}
    capabilities = [f"CAP_{name}" for name in rights.get("capabilities", {}).get("add", ())]
    environment = {"PATH": "/usr/local/bin:/usr/bin", **given.environment}
    arguments = [
        _VARIABLE.sub(lambda match: environment[match[1]], argument)
        for argument in [*container.get("command", entrypoint), *container.get("args", ())]
    ]
    return {
        "ociVersion": "1.0.2",
        "process": {
            "terminal": False,
            "user": {"uid": rights["runAsUser"], "gid": rights["runAsGroup"]},
            "args": arguments,
            "env": [f"{name}={value}" for name, value in environment.items()],
            "cwd": "/",
            "capabilities": dict.fromkeys(("bounding", "permitted", "effective"), capabilities),
            "noNewPrivileges": not rights.get("allowPrivilegeEscalation", True),
        },
        "root": {"path": "rootfs", "readonly": rights.get("readOnlyRootFilesystem", False)},
        "mounts": [*_system_mounts(), *_pod_mounts(pod, container, given)],
        "linux": {
            "namespaces": [{"type": name} for name in _NAMESPACES]
            + [{"type": "network", "path": f"/run/netns/{given.netns}"}],
            "readonlyPaths": _READ_ONLY,
            "maskedPaths": _MASKED,
        },
    }


def _mount(destination: str, kind: str, source: str, *options: str) -> dict[str, Any]:
    return {"destination": destination, "type": kind, "source": source, "options": list(options)}


def _system_mounts() -> list[dict[str, Any]]:
    return [
        _mount("/proc", "proc", "proc"),
        _mount("/dev", "tmpfs", "tmpfs", "nosuid", "mode=755", "size=65536k"),
        _mount("/sys", "sysfs", "sysfs", "nosuid", "noexec", "nodev", "ro"),
    ]


def _pod_mounts(pod: Mapping[str, Any], container: Mapping[str, Any], given: Given) -> list[dict[str, Any]]:
    volumes = {volume["name"]: volume for volume in pod.get("volumes", ())}
    mounts = []
    for mount in container.get("volumeMounts", ()):
        volume, path = volumes[mount["name"]], mount["mountPath"]
        access = "ro" if mount.get("readOnly") else "rw"
        if "emptyDir" in volume:
            mounts.append(_mount(path, "tmpfs", "tmpfs", "nosuid", "nodev", "mode=0777", "size=1m"))
        elif "hostPath" in volume and mount["name"] not in given.folders:
            mounts.append(_mount(path, "bind", volume["hostPath"]["path"], "rbind", "rprivate", access))
        else:
            mounts.append(_mount(path, "bind", str(given.folders[mount["name"]]), "rbind", "rprivate", access))
    if pod.get("automountServiceAccountToken", True):
        mounts.append(_mount(_ACCOUNT, "bind", str(given.account), "rbind", "rprivate", "ro"))
    return mounts


class Container:
    """A running container; used as a context manager, needs root. `folder` has the bundle and the log."""

    def __init__(self, name: str, folder: Path, config: Mapping[str, Any]) -> None:
        """`folder` holds the image's tree as `rootfs`."""
        self._name = name
        self._folder = folder
        self._config = config
        self.log_file = folder / f"{name}.log"

    def __enter__(self) -> Self:
        (self._folder / "config.json").write_text(json.dumps(self._config, indent=1))
        with self.log_file.open("wb") as log:
            self._process = subprocess.Popen(
                [*self._runc(), "run", "--bundle", str(self._folder), self._name],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        subprocess.run([*self._runc(), "delete", "--force", self._name], capture_output=True, check=False)

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def stop(self, grace_s: float) -> int:
        """SIGTERM, as at the end of a pod; the exit code. TimeoutExpired if it outlives the grace."""
        self._process.terminate()  # runc hands it on
        return self._process.wait(grace_s)

    def exec(self, *command: str) -> str:
        """What `kubectl exec` would print; AssertionError with all of it if the command fails."""
        done = subprocess.run(
            [*self._runc(), "exec", self._name, *command], capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def events(self) -> list[dict[str, Any]]:
        """The log's lines so far."""
        lines = self.log_file.read_text(errors="replace").splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def _runc(self) -> list[str]:
        return ["runc", "--root", str(self._folder / "state")]
