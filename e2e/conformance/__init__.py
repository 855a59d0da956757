"""Kubernetes' own end-to-end specs of services, run against any cluster: `python -m e2e.conformance`."""
