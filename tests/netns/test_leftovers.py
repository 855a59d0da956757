"""What kube-proxy leaves goes, and nothing else: nft tables, and its chains in both of iptables' variants."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.controlplane.waiting import wait_for
from e2e.world.netns import command_in, run_in
from proxy.kernel.netlink import NftKernel
from proxy.leftovers.host import find_running, remove_all
from tests.netns.kernel_space import ONE_SERVICE, Space

pytestmark = pytest.mark.netns

needs_iptables = pytest.mark.skipif(
    not (shutil.which("iptables-nft-save") and shutil.which("ipset")), reason="no iptables or ipset on this host"
)
WAIT = ("--wait", "60")  # for the lock of iptables-legacy, which is the whole machine's
TOOLS = ("iptables-legacy", "iptables-nft", "ip6tables-legacy", "ip6tables-nft")
KUBE_PROXY = """\
*nat
:KUBE-SERVICES - [0:0]
:KUBE-NODEPORTS - [0:0]
:KUBE-MARK-MASQ - [0:0]
:KUBE-POSTROUTING - [0:0]
:KUBE-SVC-NPX46M4PTMTKRN6Y - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING
-A KUBE-SERVICES -p tcp -m comment --comment "default/kubernetes:https cluster IP" -m tcp --dport 443 \
-j KUBE-SVC-NPX46M4PTMTKRN6Y
-A KUBE-SERVICES -m comment --comment "service nodeports" -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS
-A KUBE-SVC-NPX46M4PTMTKRN6Y -j KUBE-MARK-MASQ
-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000
-A KUBE-POSTROUTING -m mark --mark 0x4000/0x4000 -j MASQUERADE --random-fully
COMMIT
*mangle
:KUBE-PROXY-CANARY - [0:0]
COMMIT
*filter
:KUBE-FORWARD - [0:0]
-A FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD
-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP
COMMIT
"""
OTHERS = """\
*nat
:MINE - [0:0]
-A PREROUTING -p tcp -m tcp --dport 81 -j MINE
-A MINE -m comment --comment "to -j KUBE-SERVICES" -j RETURN
COMMIT
*filter
:KUBE-FIREWALL - [0:0]
-A INPUT -j KUBE-FIREWALL
-A KUBE-FIREWALL -m conntrack --ctstate INVALID -j DROP
COMMIT
"""


def run(space: Space, *command: str, text: str = "") -> str:
    done = subprocess.run(command_in(space.name, command), input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def rules(space: Space, tool: str) -> set[str]:
    """Chains of users and all rules, with their table's name before them."""
    found, table = set(), ""
    for line in run(space, f"{tool}-save").splitlines():
        if line.startswith("*"):
            table = line
        elif line.startswith("-A") or (line.startswith(":") and " - [" in line):
            found.add(f"{table} {line.partition(' [')[0]}")
    return found


def told(space: Space) -> list[str]:
    """What a removal says it removed; it must have failed nowhere."""
    results = run_in(space.name, lambda: list(remove_all()))
    assert [result.text for result in results if not result.good] == []
    return sorted(result.text for result in results)


def cleanup(space: Space) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("closeby")), "cleanup", "--kube-proxy"]
    return subprocess.run(command_in(space.name, command), capture_output=True, text=True, check=False)


@needs_iptables
@pytest.mark.parametrize("tool", TOOLS)
def test_its_chains_go_from_iptables_and_others_stay(space: Space, tool: str) -> None:
    run(space, f"{tool}-restore", "--noflush", *WAIT, text=OTHERS)
    before = rules(space, tool)
    run(space, f"{tool}-restore", "--noflush", *WAIT, text=KUBE_PROXY)
    assert len(rules(space, tool) - before) == 17

    said = told(space)

    assert rules(space, tool) == before
    assert said == [
        f"{tool}: 1 chains and 0 jumps to them in table mangle",
        f"{tool}: 1 chains and 1 jumps to them in table filter",
        f"{tool}: 5 chains and 3 jumps to them in table nat",
    ]
    assert told(space) == []


@needs_iptables
def test_a_chain_that_others_use_stays_and_is_named(space: Space) -> None:
    run(space, "iptables-nft-restore", "--noflush", *WAIT, text=KUBE_PROXY)
    run(space, "iptables-nft", "-t", "nat", "-N", "KUBE-HOSTPORTS")
    run(space, "iptables-nft", "-t", "nat", "-A", "KUBE-HOSTPORTS", "-j", "KUBE-MARK-MASQ")

    said = told(space)

    kept = "kept KUBE-MARK-MASQ, KUBE-POSTROUTING, which rules of other programs use"
    assert f"iptables-nft: 3 chains and 2 jumps to them in table nat; {kept}" in said
    assert '*nat -A POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING' in rules(
        space, "iptables-nft"
    )


@needs_iptables
def test_its_ipsets_go_and_others_stay(space: Space) -> None:
    for name in ("KUBE-CLUSTER-IP", "KUBE-6-NODE-PORT-TCP", "MINE"):
        run(space, "ipset", "create", name, "bitmap:port", "range", "0-65535")

    assert told(space) == ["2 ipsets"]
    assert run(space, "ipset", "list", "-name").split() == ["MINE"]


def test_its_device_goes(space: Space) -> None:
    """Here a bridge stands for the dummy device, which this kernel lacks."""
    run(space, "ip", "link", "add", "kube-ipvs0", "type", "bridge")
    run(space, "ip", "address", "add", "10.96.0.1/32", "dev", "kube-ipvs0")

    assert told(space) == ["device kube-ipvs0 with 1 addresses"]
    assert "kube-ipvs0" not in run(space, "ip", "link")


def test_its_nft_tables_go_and_ours_and_others_stay(space: Space, kernel: NftKernel) -> None:
    installed = kernel.install(ONE_SERVICE)
    space.nft("add table inet kube-proxy")
    space.nft("add table ip other")
    for family in ("ip", "ip6"):
        space.nft(
            f"table {family} kube-proxy {{ map m {{ type inet_service : verdict; elements = {{ 80 : goto c }}; }}\n"
            "chain c { reject; }\nchain n { type nat hook prerouting priority -100; tcp dport vmap @m; }\n}\n"
        )

    done = cleanup(space)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "Removed table ip kube-proxy\nRemoved table ip6 kube-proxy\n"
    tables = set(space.list_text("tables").splitlines())
    assert tables == {"table ip closeby", "table ip6 closeby", "table inet kube-proxy", "table ip other"}
    assert kernel.read() == installed


def test_a_cleanup_with_nothing_to_do_says_so_and_that_nobody_serves(space: Space) -> None:
    done = cleanup(space)

    assert (done.returncode, done.stdout) == (0, "kube-proxy left nothing here.\n")
    assert done.stderr.startswith("closeby's tables aren't here: no Service is served on this node")


def test_a_cleanup_beside_a_running_kube_proxy_is_refused(space: Space, tmp_path: Path) -> None:
    space.nft("add table ip kube-proxy")
    program = tmp_path / "kube-proxy"
    program.symlink_to(shutil.which("sleep") or "")
    with subprocess.Popen(command_in(space.name, [str(program), "60"])) as running:
        try:
            wait_for(lambda: run_in(space.name, find_running) == [running.pid], "it runs in the namespace")
            done = cleanup(space)
        finally:
            running.kill()

    assert done.returncode == 1
    assert f"kube-proxy runs here (process {running.pid})" in done.stderr
    assert space.list_text("tables") == "table ip kube-proxy\n"


@needs_iptables
def test_what_fails_is_named_and_the_rest_is_removed(
    space: Space, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An iptables that fails, as one does that meets tables of a newer version."""
    space.nft("add table ip kube-proxy")
    broken = tmp_path / "iptables-nft-save"
    broken.write_text("#!/bin/sh\necho table is incompatible >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/sbin:/usr/bin:/sbin:/bin")

    done = cleanup(space)

    assert (done.returncode, done.stdout) == (1, "Removed table ip kube-proxy\n")
    assert "closeby: not removed: iptables-nft-save: table is incompatible" in done.stderr
