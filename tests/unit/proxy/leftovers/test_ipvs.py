"""Which virtual servers and sets are kube-proxy's."""

from proxy.leftovers.ipvs import find_node_ports, find_servers, find_sets

SAVED_SETS = """\
create KUBE-NODE-PORT-TCP bitmap:port range 0-65535
add KUBE-NODE-PORT-TCP 30080
add KUBE-NODE-PORT-SCTP-HASH 172.30.0.11,sctp:30090
add KUBE-6-NODE-PORT-LOCAL-UDP 30053
add MINE-NODE-PORT-TCP 1
"""
SAVED_SERVERS = """\
-A -t 10.96.0.1:443 -s rr
-a -t 10.96.0.1:443 -r 10.0.0.1:6443 -m -w 1
-A -u [fd00::a]:53 -s rr
-A -t 172.30.0.11:30080 -s rr
-A -u 172.30.0.11:30080 -s rr
-A -t 192.0.2.1:80 -s wlc
-A -f 7 -s rr
"""


def test_sets_are_known_by_their_whole_names() -> None:
    names = ["KUBE-CLUSTER-IP", "KUBE-6-LOOP-BACK", "KUBE-NODE-PORT-SCTP-HASH", "KUBE-ROUTER-X", "MY-KUBE-CLUSTER-IP"]

    assert find_sets(names) == ("KUBE-CLUSTER-IP", "KUBE-6-LOOP-BACK", "KUBE-NODE-PORT-SCTP-HASH")


def test_servers_are_those_of_the_devices_addresses_and_of_the_node_ports() -> None:
    node_ports = find_node_ports(SAVED_SETS)

    assert node_ports == {("TCP", 30080), ("SCTP", 30090), ("UDP", 30053)}
    assert list(find_servers(SAVED_SERVERS, frozenset({"10.96.0.1", "fd00::a"}), node_ports)) == [
        ("-t", "10.96.0.1:443"),
        ("-u", "[fd00::a]:53"),
        ("-t", "172.30.0.11:30080"),
    ]
