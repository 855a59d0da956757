"""The elements of one Service on node n1, for tests of what it has there."""

from endpointslice.daemonsets import SAME_NODE_OFF
from endpointslice.topology import Place
from endpointslice.types import NodeName, Service, SliceEndpoint, SlicePort
from proxy.planner.fragments import Held, Rendered, render_service
from proxy.planner.frontends import Claims, service_claims
from proxy.planner.plan import Rules, ServiceState, plan_service
from tests.builders import a_slice

HERE = NodeName("n1")


def render(of: Service, *endpoints: SliceEndpoint, held: Held | None = None) -> Rendered:
    """The Service alone, with these IPv4 endpoints, each on port 8080."""
    claims = Claims()
    claims.replace(of.name, service_claims(of))
    ports = tuple(SlicePort(port.name, port.protocol, 8080) for port in of.ports)
    state = ServiceState(of, [a_slice(endpoints, ports=ports)], SAME_NODE_OFF)
    plan = plan_service(state, Place(HERE, None), Rules(detects_pods=True, masquerade_all=False), claims)
    return render_service(plan, HERE, held or {})
