"""closeby and the real kube-proxy side by side: `python -m e2e.bench --help`.

One run is one API server, one set of Services, one set of servers; each proxy has a node, which is a network namespace,
and a client pod behind it. `works.py` says what is measured, and in which order.
"""
