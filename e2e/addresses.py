"""EFFECT: `closeby controller` as a process with the rights of deploy/controller, and what its stories ask the API."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from e2e.controlplane.api import Api, ApiError, Object
from e2e.controlplane.cluster import ControlPlane
from e2e.controlplane.netns import command_in
from e2e.controlplane.objects import service
from e2e.controlplane.waiting import wait_for

ROOT = Path(__file__).parent.parent
NAMESPACE = "metallb-system"
ACCOUNT = "closeby-controller"
GRANTED = "closeby.dev/AddressGranted"
USABLE = "closeby.dev/Usable"
LEASE_S = 10  # a machine full of tests renews late
METRICS_PORT = 17472  # as deploy/ has it


class ControllerProcess:
    """One replica. It dies with the thread that started it; its log is `FOLDER/NAME.log`."""

    def __init__(self, name: str, kubeconfig: Path, folder: Path, *flags: str, netns: str | None = None) -> None:
        self.name = name
        self._log = folder / f"{name}.log"
        command = [sys.executable, "-m", "proxy", "controller", "--kubeconfig", str(kubeconfig)]
        command += ["--log-format", "json", "--lease-duration", f"{LEASE_S}s"]
        command += [*flags] if flags else ["--metrics-bind-address", ""]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command_in(netns, ["setpriv", "--pdeathsig", "KILL", "--", *command]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd=ROOT,
            )

    def events(self, name: str) -> list[dict[str, Any]]:
        """The log's lines of that event so far."""
        return [line for line in self._lines() if line.get("event") == name]

    def _lines(self) -> Iterator[dict[str, Any]]:
        for line in self._log.read_text(errors="replace").splitlines():
            if line.startswith("{"):
                yield json.loads(line)

    def log(self) -> str:
        """All that it said."""
        return self._log.read_text(errors="replace")

    def leads(self) -> bool:
        """Whether it says so."""
        assert self._process.poll() is None, self.log()
        return len(self.events("leading")) > len(self.events("leading_lost"))

    def terminate(self) -> int:
        """SIGTERM, where it still runs, so that it gives the Lease back; the exit code."""
        self._process.terminate()
        return self._process.wait(60)

    def kill(self) -> None:
        """SIGKILL, as by a crash."""
        self._process.kill()
        self._process.wait()


def install(control_plane: ControlPlane, folder: Path) -> Path:
    """Definitions, namespace and rights of deploy/, and the kubeconfig of the controller's account."""
    for part in ("crds/ipaddresspools", "crds/l2advertisements", "controller/namespace", "controller/rbac"):
        control_plane.kubectl("apply", "--validate=strict", "-f", str(ROOT / "deploy" / f"{part}.yaml"))
    control_plane.kubectl("wait", "--for=condition=Established", "crd/ipaddresspools.metallb.io", "--timeout=60s")
    control_plane.kubectl("wait", "--for=condition=Established", "crd/l2advertisements.metallb.io", "--timeout=60s")
    token = control_plane.service_account_token(NAMESPACE, ACCOUNT)
    return control_plane.kubeconfig(folder / "controller.kubeconfig", token)


class Shop:
    """A Kubernetes namespace with pools of its own, so that stories on one API server don't meet."""

    def __init__(self, api: Api, name: str) -> None:
        self.api = api
        self.name = name
        self._pools: list[str] = []
        self._advertisements: list[str] = []
        api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"shop": name}}})

    def pool(self, name: str, *addresses: str, **spec: Any) -> None:  # noqa: ANN401  # the API's fields
        """The pool is as this says; for this namespace unless `serviceAllocation` says otherwise."""
        full = f"{self.name}-{name}"
        spec = {"addresses": list(addresses), "serviceAllocation": {"namespaces": [self.name]}} | spec
        self.api.apply(_pool(full, spec))
        if full not in self._pools:
            self._pools.append(full)

    def await_pools(self) -> None:
        """Returns once the controller has told of every pool: it hears of Services and of pools by separate watches."""
        for full in self._pools:
            path = f"{NAMESPACE}/{full}"
            wait_for(lambda: self.api.get("IPAddressPool", path).get("status"), f"pool {full} is known")  # noqa: B023  # in its round

    def advertise(self, pool: str, **spec: Any) -> None:  # noqa: ANN401  # as above
        """An L2Advertisement of the pool's name, for its addresses."""
        name = f"{self.name}-{pool}"
        self.api.apply(_pool(name, {"ipAddressPools": [name], **spec}) | {"kind": "L2Advertisement"})
        if name not in self._advertisements:
            self._advertisements.append(name)

    def drop_pool(self, name: str) -> None:
        """The pool is gone."""
        self._pools.remove(f"{self.name}-{name}")
        self.api.delete("IPAddressPool", f"{NAMESPACE}/{self.name}-{name}")

    def pool_object(self, name: str) -> Object:
        """As the API has it."""
        return self.api.get("IPAddressPool", f"{NAMESPACE}/{self.name}-{name}")

    def service(self, name: str, *, asks: dict[str, str] | None = None, **spec: Any) -> None:  # noqa: ANN401  # as above
        """The Service of type LoadBalancer is as this says; `asks` are annotations without their prefix."""
        ports = spec.pop("ports", {"http": 80})
        obj = service(f"{self.name}/{name}", ports, **{"type": "LoadBalancer", "ipFamilyPolicy": "SingleStack"} | spec)
        obj["metadata"]["annotations"] = {f"metallb.io/{key}": text for key, text in (asks or {}).items()}
        if "labels" in spec:
            obj["metadata"]["labels"] = obj["spec"].pop("labels")
        self.api.apply(obj)

    def drop(self, name: str) -> None:
        """The Service is gone."""
        self.api.delete("Service", f"{self.name}/{name}")

    def ips(self, name: str) -> list[str]:
        """The Service's addresses in its status."""
        return [one["ip"] for one in self._status(name).get("loadBalancer", {}).get("ingress", ())]

    def granted(self, name: str) -> tuple[str, str, str]:
        """Status, reason and message of the condition; empty texts while there is none."""
        for one in self._status(name).get("conditions", ()):
            if one["type"] == GRANTED:
                return one["status"], one["reason"], one["message"]
        return "", "", ""

    def await_ips(self, name: str, *ips: str) -> None:
        """Returns once the Service has exactly these."""
        wait_for(lambda: self.ips(name) == list(ips), f"{name} has {ips}: {self.granted(name)}")

    def await_refusal(self, name: str, rule: str) -> str:
        """The message, once the condition names the rule."""
        wait_for(lambda: self.granted(name)[:2] == ("False", rule), f"{name} is refused by {rule}")
        return self.granted(name)[2]

    def events(self, name: str) -> list[tuple[str, str, str]]:
        """Type, reason and note of the Service's Events."""
        found = self.api.items("Event", self.name)
        about = [one for one in found if _regarding(one).get("name") == name]
        return [(one["type"], one["reason"], one.get("note") or one.get("message", "")) for one in about]

    def events_of_objects(self) -> set[tuple[str, str]]:
        """Name and note of the Events about pools and advertisements."""
        found = self.api.items("Event", NAMESPACE)
        return {(_regarding(one).get("name", ""), one.get("note") or one.get("message", "")) for one in found}

    def close(self) -> None:
        """Services, pools and advertisements are gone."""
        for one in self.api.items("Service", self.name):
            self.drop(one["metadata"]["name"])
        made = [("L2Advertisement", full) for full in self._advertisements]
        for kind, full in (*made, *(("IPAddressPool", full) for full in self._pools)):
            try:
                self.api.delete(kind, f"{NAMESPACE}/{full}")
            except ApiError as error:
                if error.code != 404:
                    raise

    def _status(self, name: str) -> Object:
        status: Object = self.api.get("Service", f"{self.name}/{name}").get("status", {})
        return status


def _pool(name: str, spec: Object) -> Object:
    return {
        "apiVersion": "metallb.io/v1beta1",
        "kind": "IPAddressPool",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    }


def _regarding(event: Object) -> Object:
    about: Object = event.get("regarding") or event.get("involvedObject") or {}
    return about
