"""As an operator I carry a configuration from kube-proxy to closeby and back: each reads what the other wrote."""

import subprocess
from pathlib import Path

import pytest

from e2e.closeby import CLOSEBY
from proxy.kubeproxy.file import parse_config
from proxy.kubeproxy.notes import note_file

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("mode", ["nftables", "iptables", "ipvs"])
def test_a_file_goes_to_and_fro(kube_binary: Path, tmp_path: Path, mode: str) -> None:
    theirs, ours, back = (tmp_path / name for name in ("theirs.yaml", "ours.yaml", "back.yaml"))
    flags = [f"--proxy-mode={mode}", "--cluster-cidr=10.244.0.0/16", "--masquerade-all"]
    kube_proxy = [str(kube_binary), "kube-proxy"]

    subprocess.run([*kube_proxy, *flags, f"--write-config-to={theirs}"], check=True)
    subprocess.run([CLOSEBY, "run", "--config", theirs, "--manifests", tmp_path, "--write-config-to", ours], check=True)
    subprocess.run([*kube_proxy, f"--config={ours}", f"--write-config-to={back}"], check=True)

    first, last = (parse_config(str(file), file.read_bytes()) for file in (theirs, back))
    assert (last.mode, last.cluster_cidr, last.conntrack) == (first.mode, first.cluster_cidr, first.conntrack)
    assert last.iptables.masquerade_all == first.iptables.masquerade_all
    assert {note.setting for note in note_file(first, ())} <= {"mode", "nodePortAddresses"}
