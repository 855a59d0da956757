"""The base ruleset: compiled by the installed libnftables, loaded twice, and what is missing in plain words."""

import os
import subprocess
from pathlib import Path

import pytest

from endpointslice.types import Family
from proxy.kernel.change import Change, KernelError, MapChange
from proxy.kernel.compile import base_text, compile_base, render_text
from proxy.kernel.netlink import load_base
from proxy.kernel.ruleset import SetId, SetName
from tests.netns.kernel_space import Space

pytestmark = pytest.mark.netns

COMPILE = ["-m", "proxy.kernel.compile", "--child"]


@pytest.fixture
def shadow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The `nftables` module of child processes: to be written by the test."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    return tmp_path / "nftables.py"


def test_the_shipped_base_is_what_the_text_compiles_to_now() -> None:
    """Else: python -m proxy.kernel.compile, as root."""
    assert compile_base() == load_base()


def test_compiling_leaves_the_namespace_that_it_was_asked_in_alone(space: Space, python: list[str]) -> None:
    command = ["nsenter", f"--net=/run/netns/{space.name}", *python, *COMPILE]

    done = subprocess.run(command, capture_output=True, check=False)

    assert done.returncode == 0
    assert space.list_text("tables") == ""


@pytest.mark.parametrize("family", Family)
def test_what_we_send_is_listed_as_what_nft_makes_of_the_text(space: Space, family: Family) -> None:
    word = "ip" if family is Family.IPV4 else "ip6"
    space.nft(render_text(base_text(), family))
    theirs = space.list_text(f"table {word} closeby")

    space.open_kernel().install({})

    ours = space.list_text(f"table {word} closeby")
    layout = next(line for line in ours.splitlines() if "chain layout_" in line)
    assert ours.replace(f"\n{layout}\n\t}}\n", "\n", 1).replace("\n\n}", "\n}") == theirs


def test_a_pick_chain_is_added_to_a_base_that_was_loaded_twice(space: Space) -> None:
    """By text, nft 1.0.6 and 1.1.3 refuse this: "conflicting protocols specified: ip vs. th"."""
    ports = {SetId(family, SetName.NODE_PORTS): {bytes(8): b"goto node_port_pick_9"} for family in Family}
    kernel = space.open_kernel()
    kernel.install({})
    installed = kernel.install({})

    kernel.run(Change({set_id: MapChange({}, elements) for set_id, elements in ports.items()}), installed)

    assert kernel.read() == installed
    for word in ("ip", "ip6"):
        listed = space.list_text(f"chain {word} closeby node_port_pick_9")
        assert f"dnat {word} to meta l4proto . th dport . numgen random mod 9 map @node_port_endpoints" in listed
        assert f"dnat {word} to meta l4proto . th dport . numgen random mod 1 map @node_port_endpoints" in listed


def test_a_missing_libnftables_names_its_package(shadow: Path) -> None:
    shadow.write_text("raise OSError('libnftables.so.1: cannot open shared object file')\n")

    with pytest.raises(KernelError, match=r"libnftables1\): libnftables.so.1: cannot open shared object file"):
        compile_base()


def test_a_crash_of_libnftables_is_an_error_and_not_ours(shadow: Path) -> None:
    shadow.write_text("import os\nos.kill(os.getpid(), 11)\n")

    with pytest.raises(KernelError, match="died of signal 11"):
        compile_base()


def test_a_ruleset_that_libnftables_refuses_is_reported_in_its_words(shadow: Path) -> None:
    shadow.write_text("class Nftables:\n    def cmd(self, _text):\n        return 1, '', 'Error: syntax error\\n'\n")

    with pytest.raises(KernelError, match="libnftables refuses the ruleset: Error: syntax error"):
        compile_base()


def test_without_cap_sys_admin_the_error_says_so(python: list[str]) -> None:
    done = subprocess.run(
        ["setpriv", "--bounding-set=-sys_admin", *python, *COMPILE], capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    assert done.stderr == (
        "no network namespace to compile the ruleset in: Operation not permitted (CAP_SYS_ADMIN is needed)\n"
    )
