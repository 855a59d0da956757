"""What kube-proxy leaves on a node when it stops, and its removal. `host.py` alone has effects."""
