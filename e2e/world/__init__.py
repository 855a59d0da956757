"""A little cluster out of network namespaces: nodes, pods with real servers, clients, and a LAN between them.

`World` builds and removes it; `probe` and `Traffic` send real connections and say who answered. Nothing here knows
what makes a Service work: without a proxy on its nodes, only pod and node addresses answer.
"""
