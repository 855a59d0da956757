"""`closeby run` with kube-proxy's file and kube-proxy's other flags."""

from pathlib import Path

import pytest

from proxy.config import BindAddress
from proxy.kubeproxy.file import parse_config
from tests.unit.proxy.cli.conftest import RunCloseby
from tests.unit.proxy.cli.test_run import asked_by, config_of
from tests.unit.proxy.kubeproxy.documents import KUBEADM, SMALL


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """As kubeadm mounts it, with its kubeconfig beside it."""
    kubeconfig = tmp_path / "kubeconfig.conf"
    kubeconfig.touch()
    path = tmp_path / "config.conf"
    path.write_text(KUBEADM.replace("/var/lib/kube-proxy/kubeconfig.conf", str(kubeconfig)))
    return path


def test_kubeadms_command_line(file: Path) -> None:
    asked = asked_by(f"--config={file}", "--hostname-override=node-1")

    assert asked.config.settings.node == "node-1"
    assert asked.config.settings.cluster_cidrs == ("10.200.0.0/16",)
    assert asked.config.kubeconfig == file.with_name("kubeconfig.conf")
    assert asked.content == file.read_bytes()
    assert [note.setting for note in asked.notes] == ["mode", "nodePortAddresses"]


def test_beside_a_file_only_our_own_flags_and_those_of_logging_count(file: Path, tmp_path: Path) -> None:
    asked = asked_by(
        *("--config", file, "--cluster-cidr", "10.9.0.0/16", "-v", "5", "--logging-format", "json"),
        *("--same-node-for-daemon-sets", "Never", "--control-socket", tmp_path / "s", "--healthz-port", "0"),
    )

    config = asked.config
    assert config.settings.cluster_cidrs == ("10.200.0.0/16",)
    assert (config.verbosity, config.log_format, config.settings.same_node) == (5, "json", "Never")
    assert config.control_socket == tmp_path / "s"
    assert config.healthz == BindAddress("", 10256)
    assert [note.setting for note in asked.notes] == ["mode", "nodePortAddresses", "--cluster-cidr"]


@pytest.mark.parametrize(
    ("flags", "healthz", "metrics"),
    [
        pytest.param(["--healthz-port=0"], None, BindAddress("127.0.0.1", 10249), id="no health server"),
        pytest.param(["--healthz-port=9"], BindAddress("", 9), BindAddress("127.0.0.1", 10249), id="another port"),
        pytest.param(["--metrics-port=0"], BindAddress("", 10256), None, id="no metrics"),
        pytest.param(
            ["--metrics-port=9", "--metrics-bind-address=::1"],
            BindAddress("", 10256),
            BindAddress("::1", 10249),
            id="an address beats the port",
        ),
        pytest.param(["--bind-address=::"], BindAddress("", 10256), BindAddress("::1", 10249), id="IPv6"),
    ],
)
def test_where_the_servers_listen(
    tmp_path: Path, flags: list[str], healthz: BindAddress | None, metrics: BindAddress | None
) -> None:
    config = config_of("--manifests", tmp_path, *flags)

    assert (config.healthz, config.metrics) == (healthz, metrics)


def test_a_long_command_line_of_kube_proxy_is_taken(tmp_path: Path) -> None:
    asked = asked_by(
        *("--manifests", tmp_path, "--proxy-mode=iptables", "--masquerade-all=false", "--iptables-masquerade-bit=14"),
        *("--iptables-min-sync-period=10s", "--iptables-sync-period=1m", "--iptables-localhost-nodeports=false"),
        *("--config-sync-period=15m0s", "--kube-api-qps=5", "--kube-api-burst=10", "--profiling"),
        *(
            "--kube-api-content-type=application/vnd.kubernetes.protobuf",
            "--feature-gates=A=true",
            "--oom-score-adj=-5",
        ),
        *("--ipvs-exclude-cidrs=10.0.0.0/8", "--ipvs-exclude-cidrs=fd00::/8", "--show-hidden-metrics-for-version=1.35"),
        *("--log-flush-frequency=5s", "--vmodule=proxier=4", "--nodeport-addresses=10.0.0.0/8,fd00::/8"),
    )

    config = asked.config
    assert (config.min_sync_period_s, config.sync_period_s, config.oom_score_adj) == (10.0, 60.0, -5)
    assert config.settings.node_port_addresses == ("10.0.0.0/8", "fd00::/8")
    assert {note.setting for note in asked.notes} == {
        *("--iptables-masquerade-bit", "--iptables-localhost-nodeports", "--config-sync-period", "--kube-api-qps"),
        *("--kube-api-burst", "--profiling", "--kube-api-content-type", "--feature-gates", "--ipvs-exclude-cidrs"),
        *("--show-hidden-metrics-for-version", "--log-flush-frequency", "--vmodule", "mode"),
    }


def test_the_configuration_is_written_with_its_defaults(run_closeby: RunCloseby, tmp_path: Path) -> None:
    written = tmp_path / "written.yaml"

    code, out, _ = run_closeby(
        "run", "--manifests", tmp_path, "--write-config-to", written, "--cluster-cidr", "10.0.0.0/8", "--masquerade-all"
    )

    config = parse_config("f", written.read_bytes())
    assert (code, out) == (0, "")
    assert (config.cluster_cidr, config.iptables.masquerade_all) == ("10.0.0.0/8", True)
    assert (config.healthz_bind_address, config.nftables.min_sync_period) == ("0.0.0.0:10256", "20ms")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        pytest.param(["--config", "{folder}/none"], "--config: {folder}/none: No such file", id="no file"),
        pytest.param(["--config", "{folder}/wrong"], "{folder}/wrong: line 3: unknown field", id="an unknown field"),
        pytest.param(["--config", "{folder}/lost"], "/lost: clientConnection.kubeconfig: /none does", id="kubeconfig"),
        pytest.param(["--proxy-mode", "userspace"], '--proxy-mode: "userspace" is none of', id="an old mode"),
        pytest.param(["--healthz-port", "x"], '--healthz-port: "x" is not a port', id="a port"),
        pytest.param(["--cleanup"], "run `closeby cleanup`", id="another command"),
        pytest.param(["--masquerade-all=maybe"], "--masquerade-all", id="a switch"),
    ],
)
def test_a_wrong_flag_or_file_ends_with_2(run_closeby: RunCloseby, tmp_path: Path, flags: list[str], said: str) -> None:
    (tmp_path / "wrong").write_text(SMALL + "mood: x\n")
    (tmp_path / "lost").write_text(SMALL + "clientConnection: {kubeconfig: /none}\n")

    code, out, err = run_closeby("run", *(flag.format(folder=tmp_path) for flag in flags))

    assert (code, out) == (2, "")
    assert said.format(folder=tmp_path) in err
