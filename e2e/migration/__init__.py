"""Moving a node from kube-proxy to closeby and back under load, counted.

    python -m e2e.migration            every order, both modes of kube-proxy; as root

Prints what each order cost: connections that failed, and established ones that broke.
"""
