"""Kubeconfig files: one cluster, one token."""

import base64
import json
from pathlib import Path

from e2e.controlplane.api import Access


def server_url(access: Access) -> str:
    """The API server's URL; a v6 address in brackets."""
    host = f"[{access.host}]" if ":" in access.host else access.host
    return f"https://{host}:{access.port}"


def write_kubeconfig(path: Path, access: Access) -> Path:
    """`path`, readable by its owner only; the CA certificate is inside. JSON is YAML, so it is written as such."""
    authority = base64.b64encode(access.ca_certificate.read_bytes()).decode()
    cluster = {"server": server_url(access), "certificate-authority-data": authority}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "e2e", "cluster": cluster}],
        "users": [{"name": "e2e", "user": {"token": access.token}}],
        "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "e2e"}}],
        "current-context": "e2e",
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(config, indent=1))
    return path
