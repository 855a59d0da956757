"""`closeby verify` on the real kernel: our own table, kube-proxy's as nft loads it, and none."""

import json
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from e2e.world.netns import command_in
from proxy.kernel.netlink import NftKernel
from proxy.offline import Wanted, load
from tests.netns.kernel_space import Space
from tests.netns.kube_proxy_nft import MANIFEST, TABLES
from tests.small_worlds import NODE
from tests.verified import SETTINGS, plan_snapshot

pytestmark = pytest.mark.netns


class Said(NamedTuple):
    """How the command ended."""

    code: int
    out: str
    err: str

    @property
    def tables(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.out)["tables"]
        return found


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    folder = tmp_path / "manifests"
    folder.mkdir()
    (folder / "world.yaml").write_text(MANIFEST)
    return folder


class Node(NamedTuple):
    """A node's namespace, and what should be served there."""

    space: Space
    manifests: Path
    python: list[str]

    def verify(self, *flags: str, prefix: tuple[str, ...] = ()) -> Said:
        pods = f"--cluster-cidr={','.join(SETTINGS.cluster_cidrs)}"
        source = ("--manifests", str(self.manifests), "--node", NODE, pods)
        command = [*prefix, *self.python, "-m", "proxy", "verify", *source, *flags]
        done = subprocess.run(command_in(self.space.name, command), capture_output=True, text=True, check=False)
        return Said(done.returncode, done.stdout, done.stderr)

    def install(self, kernel: NftKernel) -> None:
        """What closeby writes for the manifests."""
        snapshot = load(Wanted(self.manifests, None, None, Path()), NODE).snapshot
        kernel.install(plan_snapshot(snapshot).elements)


@pytest.fixture
def node(space: Space, manifests: Path, python: list[str]) -> Node:
    return Node(space, manifests, python)


def test_our_own_table_is_found_right_until_an_element_is_deleted(node: Node, kernel: NftKernel) -> None:
    node.install(kernel)
    good = node.verify("-o", "json", "--all")
    node.space.nft("delete element ip closeby no_endpoint_ports { 10.96.0.12 . tcp . 80 }")

    bad = node.verify()

    assert (good.code, good.err) == (0, "")
    assert good.tables[0]["counts"] == {"same": 7, "meant": 0, "different": 0, "remarks": 0}
    assert (bad.code, bad.err) == (1, "")
    (row,) = (line.split() for line in bad.out.splitlines() if "default/" in line)
    assert " ".join(row) == "default/empty:80 ClusterIP 10.96.0.12:80/TCP any reject none nothing missing"
    assert "6 frontends as closeby would have them, 0 otherwise as meant, 1 different" in bad.out


def test_a_table_with_an_edited_rule_is_told_apart(node: Node, kernel: NftKernel) -> None:
    node.install(kernel)
    node.space.nft("insert rule ip closeby services accept")

    said = node.verify("-o", "json")

    assert said.code == 1
    (remark,) = said.tables[0]["remarks"]
    assert "table ip closeby isn't as this version makes it" in remark["what"]
    assert said.tables[0]["frontends"] == []


def test_kube_proxys_table_agrees_with_its_manifests(node: Node) -> None:
    node.space.nft(TABLES)

    said = node.verify("-o", "json", "--all")

    (table,) = said.tables
    assert (said.code, said.err) == (0, "")
    assert (table["table"], table["remarks"]) == ("kube-proxy", [])
    assert table["counts"] == {"same": 7, "meant": 0, "different": 0, "remarks": 0}
    found = {(row["service"], row["kind"], row["from"]): row["found"] for row in table["frontends"]}
    assert found["default/web", "LoadBalancerIP", "outside"] == {
        "verdict": "dnat",
        "endpoints": ["10.244.1.2:8080"],
        "affinity": None,
        "source_ranges": ["10.32.0.0/11", "192.0.2.0/24"],
        "source": "kept",
    }
    assert found["default/web", "NodePort", "this-node"]["endpoints"] == ["10.244.1.2:8080", "10.244.2.2:8080"]
    assert found["default/sticky", "LoadBalancerIP", "any"] == {
        "verdict": "dnat",
        "endpoints": ["10.244.1.3:5353", "10.244.2.3:5353"],
        "affinity": 600,
        "source_ranges": ["10.32.0.0/11"],
        "source": "masqueraded",
    }
    assert found["default/empty", "ClusterIP", "any"]["verdict"] == "reject"
    assert found["default/six", "ClusterIP", "any"]["endpoints"] == ["[fd00:10:244:1::2]:8080"]


@pytest.mark.parametrize(
    ("text", "service", "differences"),
    [
        pytest.param(
            "flush chain ip kube-proxy service-WEB; add rule ip kube-proxy service-WEB meta l4proto tcp dnat ip to "
            "numgen random mod 1 map { 0 : 10.244.2.2 . 8080 }",
            "default/web",
            {"other-endpoints"},
            id="an endpoint is gone",
        ),
        pytest.param(
            "delete element ip kube-proxy service-ips { 10.96.0.11 . udp . 53 }",
            "default/sticky",
            {"missing"},
            id="a ClusterIP is gone",
        ),
        pytest.param(
            "flush chain ip kube-proxy firewall-STICKY; add rule ip kube-proxy firewall-STICKY ip saddr != "
            "10.0.0.0/8 drop",
            "default/sticky",
            {"other-source-ranges"},
            id="a firewall was opened",
        ),
        pytest.param(
            "insert rule ip kube-proxy service-STICKY ip dscp 1 drop",
            "default/sticky",
            {"not-understood"},
            id="a rule of somebody else's",
        ),
    ],
)
def test_a_doctored_table_of_kube_proxys_is_found_out(
    node: Node, text: str, service: str, differences: set[str]
) -> None:
    node.space.nft(TABLES)
    node.space.nft(text)

    said = node.verify("-o", "json")

    rows = said.tables[0]["frontends"]
    assert said.code == 1
    assert {row["service"] for row in rows} == {service}
    assert {difference for row in rows for difference in row["differences"]} == differences


def test_both_tables_are_looked_at_while_both_are_there_and_one_can_be_asked_for(node: Node, kernel: NftKernel) -> None:
    node.install(kernel)
    node.space.nft(TABLES + "delete element ip kube-proxy service-ips { 10.96.0.11 . udp . 53 }\n")

    both, own = node.verify("-o", "json"), node.verify("-o", "json", "--table", "closeby")

    assert (both.code, own.code) == (1, 0)
    assert [table["table"] for table in both.tables] == ["closeby", "kube-proxy"]
    assert [table["table"] for table in own.tables] == ["closeby"]


def test_where_there_is_no_table_it_says_so(node: Node) -> None:
    said = node.verify()

    assert said == Said(
        1,
        "",
        "closeby: there is no nftables table closeby or kube-proxy here: run it on the node, in the host's network "
        "namespace\n",
    )


def test_of_iptables_mode_it_says_that_it_cannot_be_read_and_what_to_do(node: Node) -> None:
    node.space.nft("add table ip nat; add chain ip nat KUBE-SERVICES")

    said = node.verify()

    assert (said.code, said.out) == (1, "")
    assert "kube-proxy's rules here are of iptables or ipvs mode" in said.err
    assert "closeby plan shows" in said.err


def test_without_the_right_to_read_it_says_which(node: Node, kernel: NftKernel) -> None:
    node.install(kernel)

    said = node.verify(prefix=("setpriv", "--bounding-set=-all", "--inh-caps=-all"))

    assert (said.code, said.out) == (1, "")
    assert (
        said.err
        == "closeby: gettable ip closeby: not permitted to use nftables: CAP_NET_ADMIN is needed (run as root)\n"
    )


def test_a_wrong_flag_is_told_first(node: Node) -> None:
    said = node.verify("--nodeport-addresses", "eth0")

    assert said.code == 2
    assert said.err.startswith('closeby: --nodeport-addresses: "eth0" is not a network')
