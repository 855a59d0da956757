"""EFFECT: credentials by the kubernetes package: exec plugins, auth providers, passwords, proxies.

`credentials` reads the usual ones itself and imports this only for the rest: the package takes 0.15 s of CPU and 15 MB
to import. What fails in it gets the names of the file and of the field.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import urllib3
from kubernetes.client import Configuration
from kubernetes.client.rest import RESTClientObject
from kubernetes.config import ConfigException
from kubernetes.config.incluster_config import InClusterConfigLoader
from kubernetes.config.kube_config import KubeConfigLoader
from urllib3.exceptions import HTTPError

from proxy.config import ConfigError
from proxy.sources.access import Access, Tls, TokenFile, check_tls


def load_in_cluster(folder: Path, environ: Mapping[str, str]) -> Access:
    """The access of a pod's ServiceAccount. Raises ConfigError."""
    token = folder / "token"
    configuration = Configuration()
    try:
        InClusterConfigLoader(str(token), str(folder / "ca.crt"), False, environ).load_and_set(configuration)  # noqa: FBT003  # theirs
    except (ConfigException, OSError) as error:
        raise ConfigError(f"give --kubeconfig or --manifests: not in a cluster ({error})") from error
    return _open(configuration, TokenFile(token).authorization, f"in-cluster, {folder}")


def load_kubeconfig(path: Path, content: object, token: TokenFile | None, command: str) -> Access:
    """The access that a kubeconfig's current context gives; `token` is its file of one, `command` its exec plugin.

    `content` is what our own reader of YAML made of the file: the package's refuses what ours and kubectl take, and
    takes the path for several where it has a colon. Raises ConfigError.
    """
    where = f"--kubeconfig {path}"
    configuration = Configuration()
    try:
        KubeConfigLoader(content, config_base_path=str(path.absolute().parent)).load_and_set(configuration)
    except (ConfigException, OSError, ValueError) as error:  # ValueError: certificate data that isn't base64
        raise ConfigError(f"{where}: {error}") from error
    except (AttributeError, LookupError, TypeError) as error:  # how the package trips over a field of another type
        raise ConfigError(f"{where}: a field that can't be used: {error!r}") from error
    if command and not (configuration.api_key or configuration.cert_file):
        raise ConfigError(f"{where}: users[].user.exec: the plugin {command!r} gave no credentials")

    def authorization() -> str:
        try:
            settings: Mapping[str, Mapping[str, Any]] = configuration.auth_settings()
        except ConfigException as error:  # of a plugin that is asked again
            raise ConfigError(f"{where}: {error}") from error
        return settings.get("BearerToken", {}).get("value") or ""

    return _open(configuration, authorization if token is None else token.authorization, where)


def _open(configuration: Configuration, authorization: Callable[[], str], where: str) -> Access:
    configuration.retries = False  # when to try again is decided by `stream.next_delay`
    configuration.keep_alive = True
    host: str = configuration.host
    tls = Tls(ca_file=configuration.ssl_ca_cert, cert_file=configuration.cert_file, key_file=configuration.key_file)
    check_tls(host, tls, where)
    try:
        pool: urllib3.PoolManager = RESTClientObject(configuration).pool_manager
    except (HTTPError, ValueError, ImportError) as error:  # the last for socks, which takes a package more
        raise ConfigError(f"{where}: the proxy {configuration.proxy!r}: {error}") from error
    return Access(host, pool, authorization)
