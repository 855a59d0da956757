"""The command as a whole: help that teaches, and mistakes answered in one plain sentence."""

from pathlib import Path

import pytest

from proxy.version import VERSION
from tests.unit.proxy.cli.conftest import RunCloseby


def test_the_help_names_every_command_and_shows_the_first_steps(run_closeby: RunCloseby) -> None:
    code, out, _ = run_closeby("--help")

    assert code == 0
    commands = ("run", "plan", "explain", "verify", "dump", "cleanup", "controller", "validate", "version")
    assert all(f"\n  {command} " in out for command in commands)
    assert "closeby plan --node node-1 --manifests ./manifests" in out


@pytest.mark.parametrize(
    "command",
    [
        *("run", "plan", "explain", "verify", "dump", "controller", "validate"),
        *("announce", "who-announces", "drain", "move"),
    ],
)
def test_each_commands_help_has_examples(run_closeby: RunCloseby, command: str) -> None:
    code, out, _ = run_closeby(command, "-h")

    examples = out.partition("Examples:")[2].partition("Options:")[0]
    assert code == 0
    assert examples.count(f"closeby {command} ") >= 2


def test_the_help_of_cleanup_says_what_it_removes(run_closeby: RunCloseby) -> None:
    words = run_closeby("cleanup", "--help").out.split()

    assert "the tables `ip closeby` and `ip6 closeby`" in " ".join(words)


def test_version(run_closeby: RunCloseby) -> None:
    assert run_closeby("version") == (0, f"closeby {VERSION}\n", "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["plan", "--no-such-flag"], "No such option '--no-such-flag'", id="an unknown flag"),
        pytest.param(["planet"], "No such command 'planet'", id="an unknown command"),
        pytest.param(["plan", "--cluster-cidr", "1.0.0.0/33"], '--cluster-cidr: "1.0.0.0/33" is not a', id="a CIDR"),
        pytest.param(["run", "--cluster-cidr", "here"], '--cluster-cidr: "here" is not a network', id="a CIDR of run"),
        pytest.param(["run", "--nodeport-addresses", "eth0"], '--nodeport-addresses: "eth0"', id="an interface"),
        pytest.param(["run", "--min-sync-period", "20"], '--min-sync-period: "20" is not a duration', id="no unit"),
        pytest.param(["run", "--sync-period", "x"], '--sync-period: "x" is not a duration', id="another duration"),
        pytest.param(["run", "--healthz-bind-address", "a:b"], '--healthz-bind-address: "a:b"', id="a bind address"),
        pytest.param(["run", "--metrics-bind-address", "a:b"], '--metrics-bind-address: "a:b"', id="another one"),
        pytest.param(["run", "-v", "loud"], "'loud' is not a number", id="a verbosity"),
        pytest.param(["run", "--same-node-for-daemon-sets", "auto"], "'Auto', 'Always', 'Never'", id="a mode"),
        pytest.param(["run", "--kubeconfig", "/absent"], "--kubeconfig: /absent does not exist", id="a kubeconfig"),
        pytest.param(["run", "--manifests", "/absent"], "--manifests: /absent is not a directory", id="a folder"),
        pytest.param(["plan", "--manifests", "/absent"], "--manifests: /absent is not a directory", id="plan's folder"),
        pytest.param(["verify", "--manifests", "/absent"], "--manifests: /absent is not a dir", id="verify's folder"),
        pytest.param(["verify", "--table", "nat"], "'nat' is not one of 'all', 'closeby', 'kube-proxy'", id="a table"),
        pytest.param(["dump", "--kubeconfig", "/absent"], "--kubeconfig: /absent does not", id="dump's kubeconfig"),
        pytest.param(["plan", "--dump", "/absent"], "--dump /absent: No such file", id="a dump that isn't there"),
        pytest.param(["explain", "web", "--manifests", "/"], '"web": write it as NAMESPACE/SERVICE', id="a bare name"),
        pytest.param(["explain", "a/b", "--from", "me"], '--from: "me" is not an IP address', id="a client by name"),
        pytest.param(["controller", "--kubeconfig", "/absent"], "--kubeconfig: /absent does", id="the controller's"),
        pytest.param(["controller", "--load-balancer-class", "a b"], '--load-balancer-class: "a b"', id="a class"),
        pytest.param(["controller", "--namespace", "A"], '--namespace: "A" is no name', id="a namespace"),
        pytest.param(["controller", "--lease-duration", "15"], '--lease-duration: "15" is not a', id="a lease's time"),
        pytest.param(["controller", "--lease-duration", "1ms"], "--lease-duration: 1ms is shorter", id="a short lease"),
        pytest.param(["controller", "--metrics-bind-address", "x"], "--metrics-bind-address: ", id="its metrics"),
        pytest.param(["validate", "-f", "/absent"], "-f: /absent: No such file", id="a file to validate"),
        pytest.param(["validate"], "Missing option '-f'", id="nothing to validate"),
        pytest.param(["explain"], "Missing argument 'NAMESPACE/SERVICE'", id="no Service"),
    ],
)
def test_a_wrong_flag_or_file_ends_with_2_and_is_named(
    run_closeby: RunCloseby, arguments: list[str], words: str
) -> None:
    code, out, err = run_closeby(*arguments)

    assert (code, out) == (2, "")
    assert words in err
    assert "Traceback" not in err


def test_without_a_source_and_a_daemon_the_sources_are_named(run_closeby: RunCloseby, tmp_path: Path) -> None:
    code, _, err = run_closeby("plan", "--control-socket", tmp_path / "none.sock")

    assert code == 2
    assert err.startswith(f"closeby: no closeby answers at {tmp_path / 'none.sock'} (")
    assert err.endswith("name a source: --manifests DIR, --dump FILE or --kubeconfig FILE\n")


def test_two_sources_are_one_too_many(run_closeby: RunCloseby, manifests: Path) -> None:
    (manifests.parent / "dump.json").write_text("{}")

    code, _, err = run_closeby("plan", "--manifests", manifests, "--dump", manifests.parent / "dump.json")

    assert (code, err) == (2, "closeby: --manifests and --dump: give one source, not 2\n")


def test_a_file_that_is_no_dump_is_refused(run_closeby: RunCloseby, manifests: Path) -> None:
    code, _, err = run_closeby("plan", "--dump", manifests / "world.yaml")

    assert code == 2
    assert "not a dump" in err
