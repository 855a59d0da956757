"""EFFECT: the API server's address and credentials, from a kubeconfig or from the pod that we run in.

Read here: a token or a file of one, certificates, and what a pod is given. Whatever else a kubeconfig asks for (exec
plugins, passwords, proxies) the kubernetes package does, which takes half of our start if it is imported.
"""

import base64
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from proxy.config import ConfigError
from proxy.sources.access import Access, Tls, TokenFile, check_tls, open_access

NO_PROXY_YET = (
    "this is the ClusterIP of Service default/kubernetes, which leads nowhere where no service proxy runs yet: "
    "set --master to the API server's own address, such as https://192.0.2.10:6443"
)
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_ADDRESS = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")  # in a pod's environment


class _Cluster(msgspec.Struct, frozen=True, rename="kebab"):
    server: str
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    insecure_skip_tls_verify: bool | None = None
    tls_server_name: str | None = None
    proxy_url: str | None = None


class _NamedCluster(msgspec.Struct, frozen=True):
    name: str
    cluster: _Cluster


class _User(msgspec.Struct, frozen=True, rename="kebab"):
    token: str = ""
    token_file: str = msgspec.field(name="tokenFile", default="")
    client_certificate: str | None = None
    client_key: str | None = None
    client_certificate_data: object = None
    client_key_data: object = None
    username: object = None
    auth_provider: object = None
    exec: dict[str, Any] | None = None


class _NamedUser(msgspec.Struct, frozen=True):
    name: str
    user: _User | None = None


class _Context(msgspec.Struct, frozen=True):
    cluster: str
    user: str = ""


class _NamedContext(msgspec.Struct, frozen=True):
    name: str
    context: _Context


class _Kubeconfig(msgspec.Struct, frozen=True, rename="kebab"):
    """The parts that are read; a mistake in one is told by its field."""

    current_context: str
    contexts: list[_NamedContext]
    clusters: list[_NamedCluster]
    users: list[_NamedUser] | None = None


class _Current(NamedTuple):
    """What the current context names."""

    cluster: _Cluster
    user: _User


def load_in_cluster(
    folder: Path = SERVICE_ACCOUNT, environ: Mapping[str, str] = os.environ, master: str = ""
) -> Access:
    """The access of the service account that a pod is given, with the server replaced by `master` if given.

    Raises ConfigError.
    """
    if _names_proxy(environ):
        from proxy.sources import kubernetes_package  # noqa: PLC0415  # for the rare case

        return _with_master(kubernetes_package.load_in_cluster(folder, environ), master)
    where = "give --kubeconfig or --manifests: not in a cluster"
    host, port = (environ.get(name) for name in _ADDRESS)
    if not master and not (host and port):
        raise ConfigError(f"{where} (no {' or '.join(_ADDRESS)} in the environment)")
    token = _token_file(folder / "token", where)
    if not token.authorization():
        raise ConfigError(f"{where}: {folder / 'token'}: no token in it")
    tls = Tls(ca_file=_existing(folder / "ca.crt", where))
    url = f"https://[{host}]:{port}" if host and ":" in host else f"https://{host}:{port}"
    check_tls(url, tls, f"in-cluster, {folder}")
    return _with_master(open_access(url, tls, token.authorization), master)


def load_kubeconfig(path: Path, master: str = "", environ: Mapping[str, str] = os.environ) -> Access:
    """The access that a kubeconfig's current context gives, with the server replaced by `master` if given.

    Raises ConfigError that names the file and the field.
    """
    where = f"--kubeconfig {path}"
    content = _read_yaml(path, where)
    current = _pick_current(_convert(content, where), where)
    user = current.user
    token = None
    if user.token_file and not user.token:
        token = _token_file(path.parent / user.token_file, f"{where}: users[].user.tokenFile")
    if _names_proxy(environ) or _needs_package(current):
        from proxy.sources import kubernetes_package  # noqa: PLC0415  # for the rare case

        command = str(user.exec.get("command", "")) if user.exec and not user.token else ""
        access = kubernetes_package.load_kubeconfig(path, content, token, command)
    else:
        access = _open_plain(current, path.parent, token, where)
    return _with_master(access, master)


def _with_master(access: Access, master: str) -> Access:
    if not master:
        return access
    if not master.startswith(("http://", "https://")):
        raise ConfigError(f'--master: "{master}" is not a URL; write it as https://192.0.2.10:6443')
    return access._replace(host=master.rstrip("/"))


def _names_proxy(environ: Mapping[str, str]) -> bool:
    """Whether requests may have to go through a proxy: HTTPS_PROXY and its like, in either case."""
    return any(value and name.lower().endswith("_proxy") for name, value in environ.items())


def _needs_package(current: _Current) -> bool:
    user = current.user
    by_package = (user.client_certificate_data, user.client_key_data, user.username, user.auth_provider, user.exec)
    return any((current.cluster.proxy_url, *by_package))


def _open_plain(current: _Current, folder: Path, token: TokenFile | None, where: str) -> Access:
    cluster, user = current
    host = cluster.server.rstrip("/")
    tls = Tls()
    if host.startswith("https"):
        tls = Tls(
            verify=not cluster.insecure_skip_tls_verify,
            ca_file=_file_of(cluster.certificate_authority, folder, f"{where}: certificate-authority"),
            ca_data=_decode_certificate(cluster.certificate_authority_data or "", where),
            cert_file=_file_of(user.client_certificate, folder, f"{where}: client-certificate"),
            key_file=_file_of(user.client_key, folder, f"{where}: client-key"),
            server_name=cluster.tls_server_name,
        )
        if tls.ca_data:  # it counts before a file
            tls = tls._replace(ca_file=None)
    check_tls(host, tls, where)
    header = f"Bearer {user.token}" if user.token else ""
    return open_access(host, tls, (lambda: header) if token is None else token.authorization)


def _decode_certificate(text: str, where: str) -> str | None:
    try:
        return base64.b64decode(text).decode("ascii") or None
    except ValueError as error:
        raise ConfigError(f"{where}: certificate-authority-data: no base64 of a certificate: {error}") from error


def _file_of(name: str | None, folder: Path, where: str) -> str | None:
    """Paths are relative to the kubeconfig."""
    return _existing(folder / name, where) if name else None


def _existing(path: Path, where: str) -> str:
    try:
        path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{where}: {path}: {error.strerror}") from error
    except ValueError as error:  # a path with a zero byte
        raise ConfigError(f"{where}: {error}") from error
    return str(path)


def _token_file(path: Path, where: str) -> TokenFile:
    _existing(path, where)
    try:
        path.read_text()
    except ValueError as error:
        raise ConfigError(f"{where}: {path}: {error}") from error
    return TokenFile(path)


def _read_yaml(path: Path, where: str) -> object:
    from proxy.yaml_documents import YamlError, iter_yaml  # noqa: PLC0415  # a pod has none, and starts 10 ms sooner

    try:
        document, *more = [*iter_yaml(path.read_bytes())] or [None]
    except OSError as error:
        raise ConfigError(f"{where}: {error.strerror}") from error
    except YamlError as error:
        raise ConfigError(f"{where}: not YAML: {error}") from error
    if more:
        raise ConfigError(f"{where}: holds {1 + len(more)} documents, not one")
    return document


def _convert(content: object, where: str) -> _Kubeconfig:
    try:
        return msgspec.convert(content, _Kubeconfig)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: {error}") from error


def _pick_current(content: _Kubeconfig, where: str) -> _Current:
    """What the current context names, after a look that everything is there."""
    contexts = {named.name: named.context for named in content.contexts}
    context = contexts.get(content.current_context)
    if context is None:
        raise ConfigError(f'{where}: current-context: no context is named "{content.current_context}"')
    names = f'{where}: contexts: "{content.current_context}" names'
    clusters = {named.name: named.cluster for named in content.clusters}
    cluster = clusters.get(context.cluster)
    if cluster is None:
        raise ConfigError(f'{names} the cluster "{context.cluster}", which isn\'t there')
    if not cluster.server.startswith(("http://", "https://")):
        raise ConfigError(f'{where}: clusters: server of "{context.cluster}" is "{cluster.server}", not an http(s) URL')
    users = {named.name: named.user or _User() for named in content.users or ()}
    if context.user and context.user not in users:
        raise ConfigError(f'{names} the user "{context.user}", who isn\'t there')
    return _Current(cluster, users.get(context.user, _User()))
