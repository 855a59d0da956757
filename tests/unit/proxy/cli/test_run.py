"""`closeby run`: its flags become the daemon's configuration."""

from pathlib import Path

import click
import pytest

from endpointslice.daemonsets import Mode
from proxy.__main__ import closeby
from proxy.cli.run import Asked, read_settings, run
from proxy.config import BindAddress, Config
from proxy.conntrack.settings import ConntrackSettings
from proxy.planner.settings import Settings


def asked_by(*arguments: str | Path) -> Asked:
    parent = click.Context(closeby, **closeby.context_settings)
    return read_settings(run.make_context("run", [str(argument) for argument in arguments], parent).params)


def config_of(*arguments: str | Path) -> Config:
    return asked_by(*arguments).config


def test_without_flags_it_is_kube_proxys_defaults_in_a_pod() -> None:
    config = config_of("--hostname-override", "N1")

    assert config == Config(Settings(config.settings.node))
    assert config.settings.node == "n1"
    assert (config.healthz, config.metrics) == (BindAddress("", 10256), BindAddress("127.0.0.1", 10249))
    assert (config.manifests, config.kubeconfig) == (None, None)


def test_every_flag_arrives(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.touch()

    config = config_of(
        *("--kubeconfig", kubeconfig, "--master", "https://[fd00::1]:6443", "--hostname-override", "n1"),
        *("--cluster-cidr", "10.244.0.0/16,fd00:244::/56", "--nodeport-addresses", "192.0.2.0/24"),
        *("--same-node-for-daemon-sets", "Never", "--healthz-bind-address", "", "--metrics-bind-address", "[::1]:9"),
        *("--min-sync-period", "1s", "--sync-period", "1m", "--control-socket", "/srv/x", "--log-format", "json"),
        "--bind-address-hard-fail",
        *("--conntrack-max-per-core", "0", "--conntrack-min", "7", "--conntrack-tcp-be-liberal"),
        *("--conntrack-tcp-timeout-established", "1h", "--conntrack-tcp-timeout-close-wait", "1m"),
        *("--conntrack-udp-timeout", "30s", "--conntrack-udp-timeout-stream", "2m"),
    )

    settings = Settings(config.settings.node, config.settings.cluster_cidrs, ("192.0.2.0/24",), Mode.NEVER)
    assert config == Config(
        settings=settings,
        kubeconfig=kubeconfig,
        master="https://[fd00::1]:6443",
        healthz=None,
        metrics=BindAddress("::1", 9),
        bind_address_hard_fail=True,
        min_sync_period_s=1.0,
        sync_period_s=60.0,
        control_socket=Path("/srv/x"),
        log_format="json",
        conntrack=ConntrackSettings(0, 7, 3600.0, 60.0, 30.0, 120.0, tcp_be_liberal=True),
    )
    assert settings.cluster_cidrs == ("10.244.0.0/16", "fd00:244::/56")


def test_a_folder_of_manifests(tmp_path: Path) -> None:
    assert config_of("--manifests", tmp_path).manifests == tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["-v=4"], id="as Go's flags are written"),
        pytest.param(["--v=4"], id="with two dashes"),
        pytest.param(["-v", "4"], id="apart"),
        pytest.param(["-v4"], id="together"),
    ],
)
def test_the_verbosity_in_every_way_it_is_written(arguments: list[str]) -> None:
    assert config_of(*arguments).verbosity == 4
