"""A LAN out of network namespaces that moves addresses between nodes, and what its clients notice: `make bench-l2`.

Nodes, a warm client, a cold client and a router hang on one bridge. A `Speaker` runs on the nodes; faults are made on
the bridge, on links and on processes; the clients measure, never the speaker.
"""
