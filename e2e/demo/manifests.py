"""The cast as a folder of manifests: file name -> YAML text. Pure; objects look as the control plane writes them."""

from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from e2e.demo.cast import Cast, DaemonSet, Hints, Member, Offer
from e2e.world.hosts import Node, Pod

Document = dict[str, Any]


def render_folder(cast: Cast, nodes: Mapping[str, Node], pods: Mapping[str, Pod]) -> dict[str, str]:
    """Every file of the folder. KeyError if a pod of the cast isn't in the world."""
    files = {"nodes.yaml": [_node(node) for node in nodes.values()]}
    files["daemonsets.yaml"] = [document for d in cast.daemon_sets for document in _daemon_set(d, pods)]
    for offer in cast.offers:
        files[file_of(offer.name)] = [_service(offer), *_slices(offer, nodes, pods)]
    return {name: yaml.safe_dump_all(documents, sort_keys=False) for name, documents in files.items()}


def file_of(service: str) -> str:
    """Name of the file that holds a Service and its slices."""
    return service.replace("/", "-") + ".yaml"


def _node(node: Node) -> Document:
    addresses = [{"type": "InternalIP", "address": ip} for ip in (node.host.ipv4, node.host.ipv6)]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node.host.name, "labels": {"topology.kubernetes.io/zone": node.zone}},
        "spec": {"podCIDR": node.pod_cidrs[0], "podCIDRs": list(node.pod_cidrs)},
        "status": {"addresses": addresses, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def _daemon_set(daemon_set: DaemonSet, pods: Mapping[str, Pod]) -> Iterable[Document]:
    metadata = _metadata(daemon_set.name)
    labels = {"app": metadata["name"]}
    yield {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {**metadata, "uid": _uid(metadata["name"])},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
        },
        "status": {"desiredNumberScheduled": len(daemon_set.pods)},
    }
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": metadata["name"], "controller": True}
    for name in daemon_set.pods:
        references = [{**owner, "uid": _uid(metadata["name"])}]
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                **_metadata(f"{metadata['namespace']}/{name}"),
                "uid": _uid(name),
                "labels": labels,
                "ownerReferences": references,
            },
            "spec": {"nodeName": pods[name].node},
            "status": {"podIPs": [{"ip": pods[name].host.ipv4}, {"ip": pods[name].host.ipv6}]},
        }


def _service(offer: Offer) -> Document:
    ports = [
        {"name": port.protocol.lower(), "protocol": port.protocol, "port": port.port, "targetPort": port.target_port}
        | ({"nodePort": port.node_port} if port.node_port else {})
        for port in offer.ports
    ]
    ingress = [{"ip": ip, "ipMode": "VIP"} for ip in offer.load_balancer_ips]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(offer.name),
        "spec": {
            "clusterIP": offer.cluster_ips[0],
            "clusterIPs": list(offer.cluster_ips),
            "ipFamilies": [_family(ip) for ip in offer.cluster_ips],
            "selector": {"app": _app(offer)},
            "ports": ports,
            **offer.spec,
        },
    } | ({"status": {"loadBalancer": {"ingress": ingress}}} if ingress else {})


def _slices(offer: Offer, nodes: Mapping[str, Node], pods: Mapping[str, Pod]) -> Iterable[Document]:
    metadata = _metadata(offer.name)
    for family in (_family(ip) for ip in offer.cluster_ips):
        yield {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": f"{metadata['name']}-{family.lower()}",
                "namespace": metadata["namespace"],
                "labels": {"kubernetes.io/service-name": metadata["name"]},
            },
            "addressType": family,
            "ports": [
                {"name": port.protocol.lower(), "protocol": port.protocol, "port": port.target_port}
                for port in offer.ports
            ],
            "endpoints": [_endpoint(offer, member, pods[member.pod], nodes, family) for member in offer.members],
        }


def _endpoint(offer: Offer, member: Member, pod: Pod, nodes: Mapping[str, Node], family: str) -> Document:
    zone = nodes[pod.node].zone
    hints: Document = {}
    if member.ready and offer.hints is not Hints.NONE:  # the controller hints ready endpoints only
        hints["forZones"] = [{"name": zone}]
    if member.ready and offer.hints is Hints.NODE:
        hints["forNodes"] = [{"name": pod.node}]
    namespace = offer.name.partition("/")[0]
    return {
        "addresses": [pod.host.ipv4 if family == "IPv4" else pod.host.ipv6],
        "conditions": {"ready": member.ready, "serving": member.serving, "terminating": member.terminating},
        "nodeName": pod.node,
        "zone": zone,
        "targetRef": {"kind": "Pod", "namespace": namespace, "name": member.pod, "uid": _uid(member.pod)},
    } | ({"hints": hints} if hints else {})


def _metadata(name: str) -> dict[str, str]:
    namespace, _, short = name.partition("/")
    return {"name": short, "namespace": namespace}


def _uid(name: str) -> str:
    return f"uid-of-{name}"


def _family(ip: str) -> str:
    return "IPv6" if ":" in ip else "IPv4"


def _app(offer: Offer) -> str:
    return offer.app or offer.name.partition("/")[2]
