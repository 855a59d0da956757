"""EFFECT: the API server's address and credentials, from a kubeconfig or from the pod that we run in.

The kubernetes package does the work (certificates, exec plugins, proxies); here its failures get the names of the file
and of the field, and token files are read again while we run.
"""

import os
import ssl
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from kubernetes.client import Configuration
from kubernetes.config import ConfigException, load_kube_config
from kubernetes.config.incluster_config import InClusterConfigLoader

from proxy.config import ConfigError
from proxy.yaml_documents import YamlError, iter_yaml

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TOKEN_PERIOD_S = 60.0  # a kubelet renews a token after 80% of its hour; client-go reads the file once a minute too


class _Cluster(msgspec.Struct, frozen=True, rename="kebab"):
    server: str
    certificate_authority: str = ""


class _NamedCluster(msgspec.Struct, frozen=True):
    name: str
    cluster: _Cluster


class _User(msgspec.Struct, frozen=True, rename="kebab"):
    token: str = ""
    token_file: str = msgspec.field(name="tokenFile", default="")
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
    """What must be right before the library is asked, so that a mistake is told by its field."""

    current_context: str
    contexts: list[_NamedContext]
    clusters: list[_NamedCluster]
    users: list[_NamedUser] | None = None


class TokenFile:
    """A bearer token in a file that somebody else rotates."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._read_at_s: float | None = None

    def refresh(self, configuration: Configuration) -> None:
        """Put the token into `configuration`, read again if a minute has passed. An unreadable file changes nothing."""
        now_s = self._clock()
        if self._read_at_s is not None and now_s - self._read_at_s < TOKEN_PERIOD_S:
            return
        try:
            token = self._path.read_text().strip()
        except OSError:
            return  # in the middle of a rotation, or gone: the token that we have may still be good
        if token:
            configuration.api_key["BearerToken"] = f"Bearer {token}"
            self._read_at_s = now_s


def load_in_cluster(folder: Path = SERVICE_ACCOUNT, environ: Mapping[str, str] = os.environ) -> Configuration:
    """The configuration of the service account that a pod is given. Raises ConfigError."""
    token = folder / "token"
    configuration = Configuration()
    try:
        InClusterConfigLoader(str(token), str(folder / "ca.crt"), False, environ).load_and_set(configuration)  # noqa: FBT003  # theirs
    except (ConfigException, OSError) as error:
        raise ConfigError(f"give --kubeconfig or --manifests: not in a cluster ({error})") from error
    _set_up(configuration, TokenFile(token))
    _check_tls(configuration, f"in-cluster, {folder}")
    return configuration


def load_kubeconfig(path: Path, master: str = "") -> Configuration:
    """The configuration of a kubeconfig's current context, with the server replaced by `master` if given.

    Raises ConfigError that names the file and the field.
    """
    where = f"--kubeconfig {path}"
    content = _read_kubeconfig(path, where)
    user = _current_user(content, where)
    configuration = Configuration()
    try:
        load_kube_config(config_file=str(path), client_configuration=configuration, persist_config=False)
    except (ConfigException, OSError, ValueError) as error:  # ValueError: certificate data that isn't base64
        raise ConfigError(f"{where}: {error}") from error
    except (AttributeError, LookupError, TypeError) as error:  # how the package trips over a field of another type
        raise ConfigError(f"{where}: a field that can't be used: {error!r}") from error
    if user.exec and not user.token and not (configuration.api_key or configuration.cert_file):
        command = user.exec.get("command", "")
        raise ConfigError(f"{where}: users[].user.exec: the plugin {command!r} gave no credentials")
    _set_up(configuration, TokenFile(path.parent / user.token_file) if user.token_file and not user.token else None)
    _check_tls(configuration, where)
    if master:
        configuration.host = master
    return configuration


def _read_kubeconfig(path: Path, where: str) -> _Kubeconfig:
    try:
        document, *more = [*iter_yaml(path.read_bytes())] or [None]
        if more:
            raise ConfigError(f"{where}: holds {1 + len(more)} documents, not one")
        return msgspec.convert(document, _Kubeconfig)
    except OSError as error:
        raise ConfigError(f"{where}: {error.strerror}") from error
    except YamlError as error:
        raise ConfigError(f"{where}: not YAML: {error}") from error
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: {error}") from error


def _current_user(content: _Kubeconfig, where: str) -> _User:
    """The user of the current context, after a look that everything it names is there."""
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
    return users.get(context.user, _User())


def _set_up(configuration: Configuration, token: TokenFile | None) -> None:
    configuration.retries = False  # when to try again is decided by `stream.next_delay`
    configuration.keep_alive = True
    if token is not None:
        configuration.refresh_api_key_hook = token.refresh
        token.refresh(configuration)


def _check_tls(configuration: Configuration, where: str) -> None:
    """ConfigError for certificates that can't be loaded; else it would look like a server that can't be reached."""
    if not configuration.host.startswith("https"):
        return
    field = "certificate-authority"
    try:
        context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
        if configuration.cert_file:
            field = "client-certificate, client-key"
            context.load_cert_chain(configuration.cert_file, configuration.key_file)
    except OSError as error:  # ssl.SSLError is one
        raise ConfigError(f"{where}: {field}: {error}") from error
