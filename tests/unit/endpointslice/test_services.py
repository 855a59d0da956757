import msgspec
import pytest

from endpointslice import api
from endpointslice.reasons import Converted
from endpointslice.services import convert_service
from endpointslice.types import Protocol, Service, ServicePort, Skipped, TrafficDistribution, TrafficPolicy
from tests.builders import service, service_json

LABEL = "Service default/web"


def convert(wire: object) -> Converted:
    return convert_service(msgspec.convert(wire, api.Service), "default/web")


def convert_usable(**spec: object) -> tuple[Service, tuple[Skipped, ...]]:
    converted = convert(service_json(**spec))
    assert isinstance(converted.object, Service)
    return converted.object, converted.skipped


def test_an_ordinary_service_has_the_fields_that_are_read() -> None:
    assert (service(), ()) == convert_usable()


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"clusterIPs": None}, {}, id="clusterIP alone"),
        pytest.param({"clusterIPs": None, "ipFamilies": None}, {}, id="clusterIP judged by its own form"),
        pytest.param({"clusterIP": "10.96.0.010", "clusterIPs": ["10.96.0.010"]}, {}, id="leading zeros in clusterIP"),
        pytest.param(
            {"clusterIPs": ["fd00::a", "10.96.0.10"], "ipFamilies": ["IPv6", "IPv4"]},
            {"cluster_ips": ("fd00::a", "10.96.0.10")},
            id="dual stack keeps the order of clusterIPs",
        ),
        pytest.param(
            {"clusterIPs": ["10.96.0.10", "fd00::a"], "ipFamilies": None},
            {"cluster_ips": ("10.96.0.10", "fd00::a")},
            id="dual stack without ipFamilies",
        ),
        pytest.param({"ports": None}, {"ports": ()}, id="no ports"),
        pytest.param({"ports": [{"port": 80}]}, {"ports": (ServicePort("", Protocol.TCP, 80),)}, id="bare port is TCP"),
        pytest.param(
            {
                "ports": [
                    {"port": 53, "protocol": "UDP", "nodePort": 30053},
                    {"name": "x", "port": 53, "protocol": "SCTP"},
                ]
            },
            {"ports": (ServicePort("", Protocol.UDP, 53, 30053), ServicePort("x", Protocol.SCTP, 53))},
            id="one number for two protocols",
        ),
        pytest.param({"type": None}, {}, id="type is ClusterIP by default"),
        pytest.param({"type": "NodePort"}, {"type": "NodePort"}, id="NodePort"),
        pytest.param(
            {"externalIPs": ["192.0.2.007", "fd00::7", "192.0.2.7"]},
            {"external_ips": ("192.0.2.7", "fd00::7")},
            id="externalIPs are canonical, each once",
        ),
        pytest.param(
            {"loadBalancerSourceRanges": [" 10.0.0.0/8", "fd00::/8 ", "10.1.2.3/8"]},
            {"source_ranges": ("10.0.0.0/8", "fd00::/8")},
            id="source ranges are trimmed and canonical, each once",
        ),
        pytest.param(
            {"internalTrafficPolicy": "Local"}, {"internal_traffic_policy": TrafficPolicy.LOCAL}, id="internal Local"
        ),
        pytest.param({"internalTrafficPolicy": "Nearby"}, {}, id="unknown internal policy is Cluster"),
        pytest.param(
            {"externalTrafficPolicy": "Local"}, {"external_traffic_policy": TrafficPolicy.LOCAL}, id="external Local"
        ),
        pytest.param(
            {"trafficDistribution": "PreferSameNode"},
            {"traffic_distribution": TrafficDistribution.PREFER_SAME_NODE},
            id="PreferSameNode",
        ),
        pytest.param({"trafficDistribution": "PreferFar"}, {}, id="unknown trafficDistribution is none"),
        pytest.param({"sessionAffinity": "None"}, {}, id="affinity None"),
        pytest.param(
            {"sessionAffinity": "ClientIP"}, {"affinity_timeout_s": 10800}, id="affinity by default three hours"
        ),
        pytest.param(
            {"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": None}},
            {"affinity_timeout_s": 10800},
            id="affinity with an empty config",
        ),
        pytest.param(
            {"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 60}}},
            {"affinity_timeout_s": 60},
            id="affinity of a minute",
        ),
        pytest.param(
            {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 32000},
            {"type": "LoadBalancer", "external_traffic_policy": TrafficPolicy.LOCAL, "health_check_node_port": 32000},
            id="health check of a Local load balancer",
        ),
        pytest.param(
            {"type": "LoadBalancer", "externalTrafficPolicy": "Local"},
            {"type": "LoadBalancer", "external_traffic_policy": TrafficPolicy.LOCAL},
            id="Local load balancer without a health check port",
        ),
        pytest.param(
            {"type": "NodePort", "externalTrafficPolicy": "Local", "healthCheckNodePort": 32000},
            {"type": "NodePort", "external_traffic_policy": TrafficPolicy.LOCAL},
            id="no health check without a load balancer",
        ),
        pytest.param(
            {"type": "LoadBalancer", "healthCheckNodePort": 32000},
            {"type": "LoadBalancer"},
            id="no health check under policy Cluster",
        ),
        pytest.param({"selector": None}, {"selector": frozenset()}, id="no selector"),
    ],
)
def test_spec_fields(spec: dict[str, object], expected: dict[str, object]) -> None:
    assert (service(**expected), ()) == convert_usable(**spec)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        pytest.param({"clusterIP": "None", "clusterIPs": ["None"]}, "headless", id="headless"),
        pytest.param({"clusterIP": None, "clusterIPs": ["None"]}, "headless", id="headless by its list alone"),
        pytest.param({"type": "ExternalName"}, "external-name", id="ExternalName, even with a clusterIP"),
        pytest.param({"clusterIP": None, "clusterIPs": None}, "no-cluster-ip", id="no clusterIP yet"),
        pytest.param({"clusterIP": "", "clusterIPs": [""]}, "no-cluster-ip", id="empty clusterIP"),
    ],
)
def test_a_service_without_a_frontend_is_skipped(spec: dict[str, object], reason: str) -> None:
    assert Converted(None, (Skipped(LABEL, reason),)) == convert(service_json(**spec))


@pytest.mark.parametrize("value", ["", "x", None])
def test_another_proxys_label_hides_by_its_presence(value: str | None) -> None:
    wire = service_json()
    wire["metadata"] = {"name": "web", "labels": {"service.kubernetes.io/service-proxy-name": value, "other": "x"}}

    assert Converted(None, (Skipped(LABEL, "other-proxy"),)) == convert(wire)


@pytest.mark.parametrize("label", ["app", "service.kubernetes.io/headless"])
def test_other_labels_hide_nothing(label: str) -> None:
    wire = service_json()
    wire["metadata"] = {"name": "web", "labels": {label: "web"}}

    assert convert(wire).object == service()


def test_a_service_of_bad_addresses_is_skipped_with_each_of_them() -> None:
    converted = convert(service_json(clusterIP="10.96.0.300", clusterIPs=["10.96.0.300"]))

    bad = Skipped(LABEL, "bad-address", "spec.clusterIPs[0]: '10.96.0.300'")
    assert Converted(None, (bad, Skipped(LABEL, "no-cluster-ip"))) == converted


@pytest.mark.parametrize(
    ("spec", "reason", "detail"),
    [
        pytest.param(
            {"clusterIPs": ["10.96.0.10", "fd00::a"]},
            "other-family",
            "spec.clusterIPs[1]: 'fd00::a'",
            id="more clusterIPs than families",
        ),
        pytest.param(
            {"clusterIPs": ["fd00::a", "10.96.0.10"], "ipFamilies": ["IPv4", "IPv4"]},
            "other-family",
            "spec.clusterIPs[0]: 'fd00::a'",
            id="clusterIP of another family than it says",
        ),
        pytest.param(
            {"clusterIPs": ["10.96.0.10", "10.96.0.11"], "ipFamilies": None},
            "other-family",
            "spec.clusterIPs[1]: '10.96.0.11'",
            id="two clusterIPs of one family",
        ),
        pytest.param(
            {"externalIPs": ["fe80::1%eth0"]}, "bad-address", "spec.externalIPs[0]: 'fe80::1%eth0'", id="zone id"
        ),
        pytest.param(
            {"loadBalancerSourceRanges": ["10.0.0.0"]},
            "bad-cidr",
            "spec.loadBalancerSourceRanges[0]: '10.0.0.0'",
            id="range without a length",
        ),
    ],
)
def test_an_unusable_address_is_left_out_and_named(spec: dict[str, object], reason: str, detail: str) -> None:
    assert (service(), (Skipped(LABEL, reason, detail),)) == convert_usable(**spec)


@pytest.mark.parametrize(
    ("port", "reason"),
    [
        pytest.param({"name": "x", "port": 0}, "bad-port", id="port zero"),
        pytest.param({"name": "x", "port": 65536}, "bad-port", id="port too large"),
        pytest.param({"name": "x"}, "no-port-number", id="no port number"),
        pytest.param({"name": "x", "port": 81, "protocol": "ICMP"}, "unknown-protocol", id="unknown protocol"),
        pytest.param({"name": "http", "port": 81}, "repeated-port", id="a name twice"),
        pytest.param({"name": "x", "port": 80}, "repeated-port", id="a number twice"),
    ],
)
def test_an_unusable_port_is_left_out_and_the_others_stay(port: dict[str, object], reason: str) -> None:
    converted, skipped = convert_usable(ports=[{"name": "http", "port": 80}, port])

    detail = f"spec.ports[1]: {(port.get('name'), port.get('protocol'), port.get('port'))!r}"
    assert converted == service()
    assert skipped == (Skipped(LABEL, reason, detail),)


@pytest.mark.parametrize("node_port", [-1, 65536])
def test_a_port_with_a_bad_node_port_has_none(node_port: int) -> None:
    converted, skipped = convert_usable(ports=[{"name": "http", "port": 80, "nodePort": node_port}])

    assert converted == service()
    assert skipped == (Skipped(LABEL, "bad-port", f"spec.ports[0].nodePort: {node_port}"),)


@pytest.mark.parametrize(
    ("status", "ips"),
    [
        pytest.param({}, (), id="no load balancer"),
        pytest.param({"loadBalancer": {}}, (), id="no ingress"),
        pytest.param({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}, ("192.0.2.1",), id="no ipMode"),
        pytest.param({"loadBalancer": {"ingress": [{"ip": "192.0.2.01", "ipMode": "VIP"}]}}, ("192.0.2.1",), id="VIP"),
        pytest.param({"loadBalancer": {"ingress": [{"ip": "192.0.2.1", "ipMode": "Proxy"}]}}, (), id="Proxy"),
        pytest.param({"loadBalancer": {"ingress": [{"hostname": "lb.example.com"}]}}, (), id="host name"),
    ],
)
def test_load_balancer_ips_are_those_left_to_the_nodes(status: object, ips: tuple[str, ...]) -> None:
    wire = {**service_json(), "status": status}

    assert Converted(service(load_balancer_ips=ips)) == convert(wire)


def test_a_service_of_two_hundred_ports_keeps_them_all() -> None:
    ports = [{"name": f"p{number}", "port": number} for number in range(1, 201)]

    converted, skipped = convert_usable(ports=ports)

    assert [port["port"] for port in ports] == [port.port for port in converted.ports]
    assert skipped == ()


def test_the_age_of_a_service_is_kept_as_sent() -> None:
    wire = service_json()
    wire["metadata"] = {"name": "web", "creationTimestamp": "2026-01-01T00:00:00Z"}

    assert convert(wire).object == service(created="2026-01-01T00:00:00Z")
