"""EFFECT: deploy/examples/node-dns on a cluster of kubeadm's, put there and taken away as docs/dns.md says."""

import json
import os
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

import yaml

from e2e.controlplane.waiting import wait_for
from e2e.kind.cluster import Cluster
from e2e.stories.dns.queries import Way
from e2e.world.lookups import Question

NAMESPACE = "--namespace=kube-system"
DAEMON_SET = "daemonset/coredns-node"
PODS = "app.kubernetes.io/name=coredns-node"
_EXAMPLE = Path(__file__).parents[3] / "deploy" / "examples" / "node-dns"
_IMAGE = "coredns/coredns"  # as the example names it
_LIMIT = "--timeout=300s"
_GONE_S = 120.0
_DOMAIN = "svc.cluster.local"


class NodeDns:
    """A CoreDNS on every node in place of kubeadm's Deployment; a context manager, which brings that back."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._replicas = "2"
        self._families = "SingleStack"

    def __enter__(self) -> Self:
        deployment = self._kubectl("get", "deployment", "coredns", "-o", "jsonpath={.spec.replicas} {..image}")
        self._replicas, image = deployment.split()
        self._families = self._kubectl("get", "service", "kube-dns", "-o", "jsonpath={.spec.ipFamilyPolicy}")
        with tempfile.TemporaryDirectory(prefix="node-dns-") as scratch:
            overlay = Path(scratch).resolve()
            base = os.path.relpath(_EXAMPLE, overlay)
            (overlay / "kustomization.yaml").write_text(render_overlay(base, image))
            self._cluster.apply(overlay)
        self.await_ready()
        self._patch({"ipFamilyPolicy": "PreferDualStack"})
        self._kubectl("scale", "deployment", "coredns", "--replicas=0")
        others = ("get", "pods", f"--selector=k8s-app=kube-dns,!{PODS.partition('=')[0]}", "--output=name")
        wait_for(lambda: not self._kubectl(*others), "the Deployment's pods are gone", timeout_s=_GONE_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._kubectl("scale", "deployment", "coredns", f"--replicas={self._replicas}")
        self._kubectl("rollout", "status", "deployment/coredns", _LIMIT)
        self._patch({"trafficDistribution": None, "ipFamilyPolicy": self._families})
        self._kubectl("delete", DAEMON_SET, _LIMIT)

    def distribute(self, distribution: str) -> None:
        """Set the Service's trafficDistribution."""
        self._patch({"trafficDistribution": distribution})

    def await_ready(self) -> None:
        """Returns once every node's CoreDNS is ready, and of the newest template. CommandError."""
        self._kubectl("rollout", "status", DAEMON_SET, _LIMIT)

    def ways(self) -> tuple[Way, ...]:
        """UDP and TCP to each ClusterIP of the Service."""
        return tuple(Way(protocol, ip) for ip in self._cluster_ips("kube-dns") for protocol in ("udp", "tcp"))

    def names(self) -> tuple[Question, ...]:
        """Names that CoreDNS knows of the API, and their addresses."""
        api = json.loads(self._cluster.kubectl("get", "service", "kubernetes", "-o", "json"))["spec"]["clusterIP"]
        dns = [(f"kube-dns.kube-system.{_DOMAIN}", ip) for ip in self._cluster_ips("kube-dns")]
        asked = [(f"kubernetes.default.{_DOMAIN}", api), *dns]
        return tuple(Question(name, "AAAA" if ":" in ip else "A", ip) for name, ip in asked)

    def _cluster_ips(self, service: str) -> list[str]:
        ips: list[str] = json.loads(self._kubectl("get", "service", service, "-o", "json"))["spec"]["clusterIPs"]
        return ips

    def _patch(self, spec: dict[str, object]) -> None:
        self._kubectl("patch", "service", "kube-dns", "--patch", json.dumps({"spec": spec}))

    def _kubectl(self, *args: str) -> str:
        return self._cluster.kubectl(NAMESPACE, *args)


def render_overlay(base: str, image: str) -> str:
    """A kustomization of the example, a relative path, with the image that the cluster has. Pure."""
    name, _, tag = image.rpartition(":")
    return yaml.safe_dump(
        {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": [base],
            "images": [{"name": _IMAGE, "newName": name, "newTag": tag}],
        }
    )
