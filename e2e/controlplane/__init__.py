"""A real Kubernetes control plane, run as processes of the test.

`e2e.binaries` makes the binary, `cluster.ControlPlane` runs it, `api.Api` talks to it. Nothing here knows of closeby.
"""
