"""closeby takes over a running cluster from kube-proxy as docs/migration.md says, and gives it back, under load."""

import shlex
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from e2e.controlplane.waiting import wait_for
from e2e.kind.config import Proxy
from e2e.kind.docker import CommandError
from e2e.stories.clients import PodClients
from e2e.stories.noticed import Told
from e2e.stories.shop import LABELS, SYSTEM, Shop
from e2e.stories.telling import Story, make_command

_ROOT = Path(__file__).parents[2]
_SYNCED_S = 120.0

# The page's own commands, of its sections "kubeadm" and "The way back".
KEEP_OFF = """\
kubectl -n kube-system patch daemonset kube-proxy --type merge -p '{"spec": {"template": {"spec": {"affinity": {
  "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
    {"matchExpressions": [{"key": "closeby", "operator": "DoesNotExist"}]}]}}}}}}}'"""
LABEL = "kubectl label node NODE closeby=yes"
OVERLAY = """\
resources: [deploy/overlays/kubeadm]
patches:
- target: {kind: DaemonSet}
  patch: '[{"op": "add", "path": "/spec/template/spec/nodeSelector/closeby", "value": "yes"}]'
"""
AWAIT_END = (
    "kubectl -n kube-system wait pod -l k8s-app=kube-proxy --field-selector spec.nodeName=NODE"
    " --for=delete --timeout 2m"
)
AWAIT = (
    "kubectl -n kube-system wait pod -l app.kubernetes.io/name=closeby --field-selector spec.nodeName=NODE --timeout 2m"
    " --for=create --for=condition=Ready"
)
CLEAN = "kubectl -n kube-system exec POD -- closeby cleanup --kube-proxy"
SAVE = "kubectl -n kube-system get daemonset,configmap kube-proxy -o yaml"
DELETE = "kubectl -n kube-system delete daemonset kube-proxy"
UNLABEL = "kubectl label node NODE closeby-"
CLEAN_ALL = (
    "kubectl apply -k deploy/cleanup",
    "kubectl -n kube-system rollout status daemonset/closeby-cleanup",
    "kubectl delete -k deploy/cleanup",
)


def tell(shop: Shop) -> Iterator[Told]:
    """There, and back."""
    with shop.clients(shop.nodes) as clients, tempfile.TemporaryDirectory(prefix="closeby-move-", dir=_ROOT) as scratch:
        folder = Path(scratch)
        (folder / "kustomization.yaml").write_text(OVERLAY.replace("[deploy/", "[../deploy/"))
        yield _measure(shop, clients, "from kube-proxy to closeby", lambda: take_over(shop, folder))
        yield _measure(shop, clients, "back to kube-proxy", lambda: give_back(shop, folder))


def take_over(shop: Shop, folder: Path) -> None:
    """Every node moves; kube-proxy.yaml in the folder brings kube-proxy back."""
    run(shop, KEEP_OFF)
    run(shop, "kubectl -n kube-system rollout status daemonset kube-proxy")
    run(shop, f"kubectl apply -k {folder}")
    for node in reversed(shop.nodes):
        with shop.steps(f"{node} moves"):
            for command in (LABEL, AWAIT_END, AWAIT, CLEAN):
                run(shop, command, node)
            check_tables(shop, node, "closeby")
    (folder / "kube-proxy.yaml").write_text(run(shop, SAVE))
    run(shop, DELETE)


def give_back(shop: Shop, folder: Path) -> None:
    """Every node moves back, and nothing of closeby is left."""
    run(shop, f"kubectl apply -f {folder}/kube-proxy.yaml")
    for node in reversed(shop.nodes):
        with shop.steps(f"{node} moves back"):
            run(shop, UNLABEL, node)
            wait_for(lambda: "kube-proxy" in tables(shop, node), f"kube-proxy is on {node}", timeout_s=_SYNCED_S)  # noqa: B023  # called in its own round
    run(shop, f"kubectl delete -k {folder}")
    with shop.steps("closeby is cleaned up"):
        for command in CLEAN_ALL:
            run(shop, command)
    for node in shop.nodes:
        check_tables(shop, node, "kube-proxy")


def run(shop: Shop, command: str, node: str = "") -> str:
    """What the page's command printed for the node; POD is closeby's there."""
    words = command.replace("NODE", node)
    if "POD" in words:
        on_node = f"--field-selector=spec.nodeName={node}"
        (pod,) = shop.pods(LABELS[Proxy.CLOSEBY], SYSTEM, on_node)
        words = words.replace("POD", pod["metadata"]["name"])
    return shop.cluster.kubectl(*shlex.split(words.replace(" deploy/", f" {_ROOT}/deploy/"))[1:])


def tables(shop: Shop, node: str) -> set[str]:
    """Whose tables are in the node's kernel: names without their families."""
    listed = [line.split() for line in shop.cluster.on(node, "nft", "list", "tables").splitlines()]
    return {name for _, _, name in listed} & {"closeby", "kube-proxy"}


def check_tables(shop: Shop, node: str, proxy: str) -> None:
    """CommandError if the node has other tables than that proxy's."""
    found = tables(shop, node)
    if found != {proxy}:
        raise CommandError(f"{node} has tables of {sorted(found)}, not of {proxy} alone")


def _measure(shop: Shop, clients: PodClients, event: str, move: Callable[[], object]) -> Told:
    with shop.asked(clients, {"ClusterIPs and NodePorts": shop.everything(shop.workers)}) as asking:
        began = time.monotonic()
        move()
        took_s = time.monotonic() - began
        seen = asking.end()
    return Told(Proxy.CLOSEBY, event, seen.new(began), seen.lasting(lambda _: "all"), {"the move took": took_s})


STORY = Story(
    "replace",
    "Move a cluster of three nodes from kube-proxy to closeby by the commands of docs/migration.md, and back. "
    "Five minutes.",
    tell,
    (Proxy.KUBE_PROXY,),
)
main = make_command(STORY)
