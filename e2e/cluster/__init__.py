"""A whole cluster for stories: a world of nodes and pods, a real control plane on its LAN, one closeby daemon a node.

`Cluster` builds it, `Space` is one story's Kubernetes namespace in it, `Daemon` one node's closeby, `kernel` what the
node's nftables say, seen from outside by `nft` itself.
"""
