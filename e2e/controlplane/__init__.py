"""A real Kubernetes control plane, built from its Go modules and run as processes of the test.

`build` makes the binary, `cluster.ControlPlane` runs it, `api.Api` talks to it. Nothing here knows of closeby.
"""
