"""What a control plane is asked to be, and the flags that make its components so. No I/O."""

import ipaddress
from pathlib import Path

import msgspec

from e2e.controlplane.pki import Pki

SERVICE_CIDRS = ("10.96.0.0/16", "fd00:10:96::/112")
CLUSTER_CIDRS = ("10.244.0.0/16", "fd00:10:244::/56")
_FIRST_SERVICE_IPS = ("10.96.0.1", "fd00:10:96::1")  # of Service default/kubernetes, for clients inside the cluster
_LOCAL_NAMES = ("localhost", "127.0.0.1", "::1", "kubernetes.default.svc", *_FIRST_SERVICE_IPS)


class Settings(msgspec.Struct, frozen=True):
    """Choices of one control plane; the defaults serve a test on this machine's loopback."""

    bind_address: str = "127.0.0.1"  # where the API server listens; its family is the Services' first one
    port: int | None = None  # None: a free one
    extra_names: tuple[str, ...] = ()  # more DNS names and addresses for the server certificate
    netns: str | None = None  # named namespace in which all components run; its loopback must be up
    controllers: tuple[str, ...] = ("*",)  # as --controllers: "endpointslice-controller", "-job-controller"
    scheduler: bool = False
    apiserver_flags: tuple[str, ...] = ()  # appended, so they win
    controller_flags: tuple[str, ...] = ()

    def server_names(self) -> tuple[str, ...]:
        """All that the server certificate is good for."""
        return (*_LOCAL_NAMES, self.bind_address, *self.extra_names)

    def reach_address(self) -> str:
        """An address to connect to: the bind address, or this host's loopback where it is the unspecified one."""
        ip = ipaddress.ip_address(self.bind_address)
        return ("127.0.0.1" if ip.version == 4 else "::1") if ip.is_unspecified else self.bind_address

    def in_family_order(self, cidrs: tuple[str, str]) -> str:
        """A dual-stack pair as a flag's value: the API server insists on its own address's family first."""
        version = ipaddress.ip_address(self.reach_address()).version
        return ",".join(sorted(cidrs, key=lambda cidr: ipaddress.ip_network(cidr).version != version))


class Files(msgspec.Struct, frozen=True):
    """What one control plane keeps on disk."""

    folder: Path
    pki: Pki
    etcd_socket: Path  # a socket file is reached from every network namespace, and takes no port
    tokens: Path
    kubeconfig: Path  # of an administrator


def etcd_flags(files: Files) -> list[str]:
    """One member, listening on Unix sockets only. Nothing is synced to disk: the data lives as long as the test."""
    client = f"unix://{files.etcd_socket}"
    advertised = "http://127.0.0.1:1"  # nobody connects to it; etcd 3.6 insists on host:port there
    return [
        f"--data-dir={files.folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={advertised}",
        f"--listen-peer-urls={client}.peer",
        f"--initial-advertise-peer-urls={advertised}",
        f"--initial-cluster=default={advertised}",
        "--unsafe-no-fsync",
        f"--quota-backend-bytes={8 << 30}",
        "--log-level=warn",
    ]


def apiserver_flags(settings: Settings, files: Files, port: int) -> list[str]:
    """RBAC and tokens as in production, with two liberties.

    - The ServiceAccount admission plugin is off, so Pods can be made at once in a new namespace, before its
      controller has made the default ServiceAccount.
    - On loopback the API server doesn't publish itself in Service default/kubernetes: the API forbids such endpoints.
    """
    loopback = ipaddress.ip_address(settings.reach_address()).is_loopback
    return [
        f"--etcd-servers=unix://{files.etcd_socket}",
        f"--bind-address={settings.bind_address}",
        f"--secure-port={port}",
        f"--advertise-address={settings.reach_address()}",
        f"--endpoint-reconciler-type={'none' if loopback else 'lease'}",
        f"--tls-cert-file={files.pki.server_certificate}",
        f"--tls-private-key-file={files.pki.server_key}",
        f"--token-auth-file={files.tokens}",
        "--authorization-mode=Node,RBAC",
        f"--service-cluster-ip-range={settings.in_family_order(SERVICE_CIDRS)}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={files.pki.token_key}",
        f"--service-account-signing-key-file={files.pki.token_key}",
        "--allow-privileged",
        "--disable-admission-plugins=ServiceAccount",
        *settings.apiserver_flags,
    ]


def controller_manager_flags(settings: Settings, files: Files) -> list[str]:
    """Controllers as one administrator, without serving anything. Nodes without kubelets stay as the test says."""
    return [
        f"--kubeconfig={files.kubeconfig}",
        f"--controllers={','.join(settings.controllers)}",
        "--leader-elect=false",
        "--secure-port=0",
        "--allocate-node-cidrs",
        f"--cluster-cidr={settings.in_family_order(CLUSTER_CIDRS)}",
        f"--service-cluster-ip-range={settings.in_family_order(SERVICE_CIDRS)}",
        f"--service-account-private-key-file={files.pki.token_key}",
        f"--root-ca-file={files.pki.ca_certificate}",
        "--node-monitor-grace-period=24h",  # no kubelet renews a lease: Nodes would turn NotReady after 50 s
        "--kube-api-qps=2000",
        "--kube-api-burst=4000",
        *settings.controller_flags,
    ]


def scheduler_flags(files: Files) -> list[str]:
    """The default scheduler, without serving anything."""
    return [f"--kubeconfig={files.kubeconfig}", "--leader-elect=false", "--secure-port=0"]
