"""A control plane as a Python object: etcd, kube-apiserver, kube-controller-manager, on request kube-scheduler."""

import secrets
import socket
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Self

from e2e.controlplane.api import Access, Api, ApiError, UnreachableError
from e2e.controlplane.etcd import advance_and_compact, put_all
from e2e.controlplane.kubeconfig import write_kubeconfig
from e2e.controlplane.netns import command_in
from e2e.controlplane.pki import make_pki
from e2e.controlplane.processes import Component, ComponentError
from e2e.controlplane.settings import (
    Files,
    Settings,
    apiserver_flags,
    controller_manager_flags,
    etcd_flags,
    scheduler_flags,
)
from e2e.controlplane.waiting import wait_for

_START_TIMEOUT_S = 180.0  # seconds on a quiet machine; one that ends by itself is told of at once
_KUBECTL_TIMEOUT_S = 120.0
_TOKEN_LIFE_S = 24 * 3600
_CONNECTIONS_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST_PORT, _HIGHEST_PORT = 10_000, 65_535
_FOLDER_LIMIT = 90  # Linux takes socket paths of 107 bytes


class ControlPlane:
    """Runs in `folder` (made; logs, keys and data stay there until its owner removes it) from one binary.

    Use it as a context manager, or call `start` and `stop`, from a thread that lives as long: components end with it.
    """

    def __init__(self, binary: Path, folder: Path, settings: Settings | None = None) -> None:
        if len(str(folder)) > _FOLDER_LIMIT:
            raise ValueError(f"{folder}: too long for a socket file in it, at most {_FOLDER_LIMIT} characters")
        self.settings = settings or Settings()
        self.logs = folder / "logs"
        self.logs.mkdir(parents=True, exist_ok=True)
        self.port = self.settings.port or free_port(self.settings.reach_address())
        self._binary = binary
        self._components: dict[str, Component] = {}
        self._files = Files(
            folder=folder,
            pki=make_pki(folder / "pki", self.settings.server_names()),
            etcd_socket=folder / "etcd.sock",
            tokens=folder / "tokens.csv",
            kubeconfig=folder / "admin.kubeconfig",
        )
        self.admin = self.access(secrets.token_urlsafe(24))
        self.api = Api(self.admin)
        self._files.tokens.touch(mode=0o600)
        self._files.tokens.write_text(f"{self.admin.token},admin,admin,system:masters\n")
        self.kubeconfig(self._files.kubeconfig, self.admin.token)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def ca_certificate(self) -> Path:
        """PEM file of the authority that signed the API server's certificate."""
        return self._files.pki.ca_certificate

    @property
    def admin_kubeconfig(self) -> Path:
        """A kubeconfig of group system:masters."""
        return self._files.kubeconfig

    def start(self) -> None:
        """Returns when the API server is ready; controllers need a second more. Nothing is left running if it fails."""
        try:
            etcd = self._run("etcd", etcd_flags(self._files))
            self._await(etcd, self._files.etcd_socket.exists)
            self.start_apiserver()
            wait_for(self._has_namespaces, "the API server has made its namespaces", timeout_s=_START_TIMEOUT_S)
            self._run_controllers()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End every component, the last started first. At once: the data ends with them."""
        while self._components:
            _, component = self._components.popitem()
            component.stop()

    def start_apiserver(self) -> None:
        """Bring the API server (back) up on the same port and data; returns when it is ready."""
        flags = apiserver_flags(self.settings, self._files, self.port)
        self._await(self._run("kube-apiserver", flags), self._is_ready)

    def stop_apiserver(self) -> None:
        """An outage, as of a crash: connections break and are refused until `start_apiserver`. etcd stays.

        Not by SIGTERM: v1.36 then drains for more than 10 s while controllers watch. These stay too, and retry.
        """
        self._components.pop("kube-apiserver").stop()

    def restart_controllers(self) -> None:
        """Controllers and scheduler, anew: after an outage of some seconds they would wait up to a minute to retry."""
        for name in ("kube-scheduler", "kube-controller-manager"):
            if name in self._components:
                self._components.pop(name).stop()
        self._run_controllers()

    def compact(self) -> None:
        """Make every resourceVersion handed out so far too old: a watch or an exact list from one answers 410 Gone.

        etcd forgets all revisions up to a new one. The API server is restarted, since its watch cache (KEP-2340)
        would go on serving the old ones; its new cache starts at the new revision. Watches in flight break, as they
        would in production; about three seconds.
        """
        self.stop_apiserver()
        advance_and_compact(self._files.etcd_socket)
        self.start_apiserver()

    def store(self, entries: Iterable[tuple[str, bytes]]) -> Iterator[int]:
        """Write objects past the API server, as JSON under etcd keys ("/registry/pods/shop/web"), thousands a second.

        Yields the number stored after each transaction. Nothing is checked, defaulted or allotted: the objects must be
        as the API server would have stored them. Its watches and lists have them at once.
        """
        return put_all(self._files.etcd_socket, entries)

    def check(self) -> None:
        """Raises ComponentError, with the end of its log, if a component has ended by itself."""
        for component in self._components.values():
            component.check()

    def pid(self, component: str) -> int:
        """Process id of a running component, for measurements: "kube-apiserver"."""
        return self._components[component].pid

    def access(self, token: str) -> Access:
        """The way to this server with that token: for `Api`."""
        settings = self.settings
        return Access(settings.reach_address(), self.port, self.ca_certificate, token, settings.netns)

    def kubeconfig(self, path: Path, token: str) -> Path:
        """`path`, written as the kubeconfig of that token."""
        return write_kubeconfig(path, self.access(token))

    def service_account_token(self, namespace: str, name: str, *, life_s: int = _TOKEN_LIFE_S) -> str:
        """A real token of an existing ServiceAccount, by TokenRequest (the API's shortest life is 600 s)."""
        path = self.api.path("ServiceAccount", f"{namespace}/{name}") + "/token"
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": life_s}}
        return str(self.api.request("POST", path, body)["status"]["token"])

    def kubectl(self, *args: str, text: str | None = None) -> str:
        """What kubectl printed, run as administrator with `text` as its input; CalledProcessError if it refuses."""
        command = [str(self._binary), "kubectl", f"--kubeconfig={self.admin_kubeconfig}", *args]
        done = subprocess.run(
            command_in(self.settings.netns, command),
            input=text or "",
            capture_output=True,
            text=True,
            check=True,
            timeout=_KUBECTL_TIMEOUT_S,
        )
        return done.stdout

    def _run_controllers(self) -> None:
        self._run("kube-controller-manager", controller_manager_flags(self.settings, self._files))
        if self.settings.scheduler:
            self._run("kube-scheduler", scheduler_flags(self._files))

    def _run(self, name: str, flags: list[str]) -> Component:
        component = Component(name, [str(self._binary), name, *flags], self.logs, self.settings.netns)
        self._components[name] = component
        return component

    def _await(self, component: Component, is_up: Callable[[], bool]) -> None:
        def probe() -> bool:
            component.check()
            return is_up()

        try:
            wait_for(probe, f"{component.name} is up", timeout_s=_START_TIMEOUT_S)
        except TimeoutError as error:
            raise ComponentError(f"{error}; the last of {component.log}:\n{component.log_tail()}") from error

    def _is_ready(self) -> bool:
        try:
            return self.api.text("/readyz") == "ok"
        except (ApiError, UnreachableError):
            return False

    def _has_namespaces(self) -> bool:
        """It makes them itself, and is ready a moment before."""
        names = {one["metadata"]["name"] for one in self.api.items("Namespace")}
        return names >= {"default", "kube-system"}


def free_port(address: str) -> int:
    """A port free at this moment in this process's namespace; in another one it is most likely free too.

    None of those that the kernel gives to connections: one of these might have it while its server is away.
    """
    first, last = (int(word) for word in _CONNECTIONS_PORTS.read_text().split())
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    ports = [*range(_LOWEST_PORT, first), *range(last + 1, _HIGHEST_PORT + 1)] or [0]  # 0: the kernel's choice
    while True:
        with socket.socket(family, socket.SOCK_STREAM) as probe, suppress(OSError):
            probe.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", secrets.choice(ports)))
            return int(probe.getsockname()[1])
