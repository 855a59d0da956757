"""The table of kube-proxy v1.36.3 for a few Services as its nft 1.0.6 listed it, shortened; and the Services."""

MANIFEST = """
kind: Node
metadata: {name: n1}
status: {addresses: [{type: InternalIP, address: 172.30.0.11}]}
---
kind: Service
metadata: {name: web, namespace: default}
spec:
  type: LoadBalancer
  clusterIP: 10.96.0.10
  externalTrafficPolicy: Local
  ports: [{name: http, port: 80, nodePort: 30080}]
  loadBalancerSourceRanges: [10.32.0.0/11, 192.0.2.0/24]
status: {loadBalancer: {ingress: [{ip: 203.0.113.1}]}}
---
kind: EndpointSlice
metadata: {name: web-1, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints:
- {addresses: [10.244.1.2], nodeName: n1}
- {addresses: [10.244.2.2], nodeName: n2}
---
kind: Service
metadata: {name: sticky, namespace: default}
spec:
  type: LoadBalancer
  clusterIP: 10.96.0.11
  sessionAffinity: ClientIP
  sessionAffinityConfig: {clientIP: {timeoutSeconds: 600}}
  ports: [{name: dns, port: 53, protocol: UDP}]
  loadBalancerSourceRanges: [10.32.0.0/11]
status: {loadBalancer: {ingress: [{ip: 203.0.113.2}]}}
---
kind: EndpointSlice
metadata: {name: sticky-1, labels: {kubernetes.io/service-name: sticky}}
addressType: IPv4
ports: [{name: dns, port: 5353, protocol: UDP}]
endpoints:
- {addresses: [10.244.1.3], nodeName: n1}
- {addresses: [10.244.2.3], nodeName: n2}
---
kind: Service
metadata: {name: empty, namespace: default}
spec: {clusterIP: 10.96.0.12, ports: [{port: 80}]}
---
kind: Service
metadata: {name: six, namespace: default}
spec: {clusterIP: "fd00:10:96::a", ipFamilies: [IPv6], ports: [{port: 80}]}
---
kind: EndpointSlice
metadata: {name: six-1, labels: {kubernetes.io/service-name: six}}
addressType: IPv6
ports: [{name: "", port: 8080}]
endpoints: [{addresses: ["fd00:10:244:1::2"], nodeName: n1}]
"""

_IPV4 = """
table ip kube-proxy {
  set cluster-ips { type ipv4_addr; elements = { 10.96.0.10, 10.96.0.11, 10.96.0.12 }; }
  set nodeport-ips { type ipv4_addr; elements = { 172.30.0.11 }; }
  map no-endpoint-services { type ipv4_addr . inet_proto . inet_service : verdict; }
  map no-endpoint-nodeports { type inet_proto . inet_service : verdict; }
  map firewall-ips { type ipv4_addr . inet_proto . inet_service : verdict; }
  map service-ips { type ipv4_addr . inet_proto . inet_service : verdict; }
  map service-nodeports { type inet_proto . inet_service : verdict; }
  set affinity-B { type ipv4_addr; flags dynamic,timeout; timeout 10m; size 65535; }
  set affinity-A { type ipv4_addr; flags dynamic,timeout; timeout 10m; size 65535; }
  chain filter-prerouting-pre-dnat {
    type filter hook prerouting priority -110; policy accept;
    ct state new jump firewall-check
  }
  chain filter-output-pre-dnat {
    type filter hook output priority -110; policy accept;
    ct state new jump firewall-check
  }
  chain filter-input {
    type filter hook input priority filter; policy accept;
    ct state new jump nodeport-endpoints-check
    ct state new jump service-endpoints-check
  }
  chain filter-forward {
    type filter hook forward priority filter; policy accept;
    ct state new jump service-endpoints-check
  }
  chain filter-output { type filter hook output priority 0; policy accept; ct state new jump service-endpoints-check; }
  chain nat-prerouting { type nat hook prerouting priority dstnat; policy accept; jump services; }
  chain nat-output { type nat hook output priority -100; policy accept; jump services; }
  chain nodeport-endpoints-check { ip daddr @nodeport-ips meta l4proto . th dport vmap @no-endpoint-nodeports; }
  chain service-endpoints-check { ip daddr . meta l4proto . th dport vmap @no-endpoint-services; }
  chain firewall-check { ip daddr . meta l4proto . th dport vmap @firewall-ips; }
  chain services {
    ip daddr @cluster-ips ip saddr != 10.244.0.0/16 meta mark set meta mark | 0x00004000 comment "masquerade"
    ip daddr . meta l4proto . th dport vmap @service-ips
    ip daddr @nodeport-ips meta l4proto . th dport vmap @service-nodeports
  }
  chain reject-chain { reject; }
  chain service-WEB {
    meta l4proto tcp dnat ip to numgen random mod 2 map { 0 : 10.244.1.2 . 8080, 1 : 10.244.2.2 . 8080 }
  }
  chain local-WEB { meta l4proto tcp dnat ip to numgen random mod 1 map { 0 : 10.244.1.2 . 8080 }; }
  chain external-WEB {
    ip saddr 10.244.0.0/16 goto service-WEB comment "short-circuit pod traffic"
    fib saddr type local meta mark set meta mark | 0x00004000 comment "masquerade local traffic"
    fib saddr type local goto service-WEB comment "short-circuit local traffic"
    goto local-WEB
  }
  chain firewall-WEB { ip saddr != { 10.32.0.0/11, 192.0.2.0/24 } drop; }
  chain endpoint-A { update @affinity-A { ip saddr }; meta l4proto udp dnat to 10.244.1.3:5353; }
  chain endpoint-B { update @affinity-B { ip saddr }; meta l4proto udp dnat to 10.244.2.3:5353; }
  chain service-STICKY {
    ip saddr @affinity-A goto endpoint-A
    ip saddr @affinity-B goto endpoint-B
    numgen random mod 2 vmap { 0 : goto endpoint-A, 1 : goto endpoint-B }
  }
  chain external-STICKY { meta mark set meta mark | 0x00004000 comment "masquerade"; goto service-STICKY; }
  chain firewall-STICKY { ip saddr != 10.32.0.0/11 drop; }
}
add element ip kube-proxy no-endpoint-services { 10.96.0.12 . tcp . 80 comment "default/empty" : goto reject-chain }
add element ip kube-proxy firewall-ips {
  203.0.113.1 . tcp . 80 : goto firewall-WEB, 203.0.113.2 . udp . 53 : goto firewall-STICKY
}
add element ip kube-proxy service-ips {
  10.96.0.10 . tcp . 80 : goto service-WEB, 203.0.113.1 . tcp . 80 : goto external-WEB,
  10.96.0.11 . udp . 53 : goto service-STICKY, 203.0.113.2 . udp . 53 : goto external-STICKY
}
add element ip kube-proxy service-nodeports { tcp . 30080 : goto external-WEB }
"""
_IPV6 = """
table ip6 kube-proxy {
  set cluster-ips { type ipv6_addr; elements = { fd00:10:96::a }; }
  map no-endpoint-services { type ipv6_addr . inet_proto . inet_service : verdict; }
  map no-endpoint-nodeports { type inet_proto . inet_service : verdict; }
  map firewall-ips { type ipv6_addr . inet_proto . inet_service : verdict; }
  map service-ips { type ipv6_addr . inet_proto . inet_service : verdict; }
  map service-nodeports { type inet_proto . inet_service : verdict; }
  chain firewall-check { ip6 daddr . meta l4proto . th dport vmap @firewall-ips; }
  chain filter-pre-dnat { type filter hook prerouting priority -110; jump firewall-check; }
  chain output-pre-dnat { type filter hook output priority -110; jump firewall-check; }
  chain endpoints-check { ip6 daddr . meta l4proto . th dport vmap @no-endpoint-services; }
  chain filter-input {
    type filter hook input priority 0;
    fib daddr type local meta l4proto . th dport vmap @no-endpoint-nodeports
    jump endpoints-check
  }
  chain filter-forward { type filter hook forward priority 0; jump endpoints-check; }
  chain filter-output { type filter hook output priority 0; jump endpoints-check; }
  chain nat-prerouting { type nat hook prerouting priority dstnat; jump services; }
  chain nat-output { type nat hook output priority -100; jump services; }
  set no-addresses { type ipv6_addr; }
  chain services {
    ip6 daddr . meta l4proto . th dport vmap @service-ips
    ip6 daddr @no-addresses meta l4proto . th dport vmap @service-nodeports
  }
  chain service-SIX { meta l4proto tcp dnat ip6 to numgen random mod 1 map { 0 : fd00:10:244:1::2 . 8080 }; }
}
add element ip6 kube-proxy service-ips { fd00:10:96::a . tcp . 80 : goto service-SIX }
"""
TABLES = _IPV4 + _IPV6
