"""A source whose account may read too little, or has a new token, against a real API server."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from e2e.controlplane.api import Api, Object
from e2e.controlplane.cluster import ControlPlane
from e2e.controlplane.waiting import wait_for
from e2e.listener import NAMESPACE, WEB, StartSource, set_port
from endpointslice.types import DaemonSetName, Kind
from proxy.sources.watch import Patience

pytestmark = pytest.mark.e2e


@pytest.fixture
def service_account(control_plane: ControlPlane, source_api: Api, tmp_path: Path) -> Iterator[Path]:
    """A kubeconfig of a service account that may read Services, slices and Nodes, its token in a file beside it."""
    rules = [
        {"apiGroups": [""], "resources": ["services", "nodes"], "verbs": ["list", "watch"]},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
    ]
    source_api.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "agent", "namespace": NAMESPACE}}
    )
    _allow(source_api, "source-agent", rules)
    kubeconfig = control_plane.kubeconfig(tmp_path / "config", "none")
    kubeconfig.write_text(
        kubeconfig.read_text()
        .replace("token: none", "tokenFile: token")
        .replace('"token": "none"', '"tokenFile": "token"')
    )
    assert "tokenFile" in kubeconfig.read_text()
    (tmp_path / "token").write_text(control_plane.service_account_token(NAMESPACE, "agent"))
    yield kubeconfig
    source_api.delete("ClusterRoleBinding", "source-agent")
    source_api.delete("ClusterRole", "source-agent")
    source_api.delete("ServiceAccount", f"{NAMESPACE}/agent")


def _allow(source_api: Api, name: str, rules: list[Object]) -> None:
    group = "rbac.authorization.k8s.io"
    source_api.apply({"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules})
    source_api.apply(
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": "agent", "namespace": NAMESPACE}],
        }
    )


def test_kinds_that_rbac_refuses_count_as_empty_until_it_allows_them(
    source_api: Api, service_account: Path, start_source: StartSource
) -> None:
    source_api.apply(_daemon_set("agent"))
    quick = Patience(delay=lambda _: 0.2)
    with capture_logs() as logs:
        source, listener = start_source(service_account, quick)
        wait_for(lambda: set(listener.listed) == source.kinds, "every kind is complete")
        assert listener.snapshot.daemon_sets == {}
        assert listener.snapshot.service_cidrs == {}
        refused = {log["kind"]: log["needs"] for log in logs if log["event"] == "kind_refused"}
        assert refused.keys() == {Kind.DAEMON_SET, Kind.SERVICE_CIDR}
        assert "daemonsets in apps" in refused[Kind.DAEMON_SET]

        rules = [{"apiGroups": ["apps"], "resources": ["daemonsets"], "verbs": ["list", "watch"]}]
        _allow(source_api, "source-more", rules)
        wait_for(lambda: DaemonSetName("source/agent") in listener.snapshot.daemon_sets, "DaemonSets arrive")
    source_api.delete("ClusterRoleBinding", "source-more")
    source_api.delete("ClusterRole", "source-more")
    source_api.delete("DaemonSet", "source/agent")


def _daemon_set(name: str) -> Object:
    labels = {"app": name}
    spec = {
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {"nodeSelector": {"nowhere": ""}, "containers": [{"name": "main", "image": "none"}]},
        },
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    }


def test_a_rotated_token_is_taken_up(
    control_plane: ControlPlane, source_api: Api, service_account: Path, start_source: StartSource
) -> None:
    """The old token dies with its service account; the next connection meets a 401 and reads the file again."""
    set_port(source_api, 80)
    source, listener = start_source(service_account, Patience(delay=lambda _: 0.2, watch_s=(3, 3)))
    wait_for(lambda: listener.port_of(WEB) == 80, "Services are listed")

    source_api.delete("ServiceAccount", f"{NAMESPACE}/agent")
    wait_for(
        lambda: source.status()[Kind.SERVICE].error.startswith("401"), "the old token is refused"
    )  # a watch ends after 3 s; the server remembers a token for 10 s
    assert listener.port_of(WEB) == 80
    source_api.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "agent", "namespace": NAMESPACE}}
    )
    token = control_plane.service_account_token(NAMESPACE, "agent")
    service_account.with_name("token").write_text(token)

    wait_for(lambda: source.status()[Kind.SERVICE].connected, "the new token is taken")
    set_port(source_api, 83)
    wait_for(lambda: listener.port_of(WEB) == 83, "changes arrive again")
