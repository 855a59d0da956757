"""A source whose API server forgets, goes away, or comes late: a real one."""

import time

import pytest
from structlog.testing import capture_logs

from e2e.controlplane.api import Api
from e2e.controlplane.cluster import ControlPlane
from e2e.controlplane.objects import add_namespace
from e2e.controlplane.waiting import wait_for
from e2e.listener import WEB, StartSource, is_connected, set_port
from endpointslice.types import Kind
from proxy.sources.watch import Patience

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("outage")]

OUTAGE_S = 5.0
IMPATIENT = Patience(delay=lambda _: 0.2)  # by default half a minute may pass between two tries


def test_an_expired_version_is_listed_again_without_a_gap(
    control_plane: ControlPlane, source_api: Api, start_source: StartSource
) -> None:
    set_port(source_api, 80)
    source, listener = start_source(control_plane.admin_kubeconfig)
    wait_for(lambda: is_connected(source), "every kind is watched")
    before = dict(listener.smallest)
    add_namespace(source_api, "source-later")  # nothing that we watch: now our versions are older than the last but one

    with capture_logs() as logs:
        control_plane.compact()
        wait_for(lambda: is_connected(source), "every kind is watched again")
        set_port(source_api, 81)
        wait_for(lambda: listener.port_of(WEB) == 81, "changes arrive again")

    assert "watch_expired" in {log["event"] for log in logs}
    assert listener.listed.count(Kind.SERVICE) == 2
    assert listener.smallest[Kind.SERVICE] >= before[Kind.SERVICE]


def test_an_outage_empties_nothing_and_ends_by_itself(
    control_plane: ControlPlane, source_api: Api, start_source: StartSource
) -> None:
    set_port(source_api, 80)
    source, listener = start_source(control_plane.admin_kubeconfig, IMPATIENT)
    wait_for(lambda: is_connected(source), "every kind is watched")

    with capture_logs() as logs:
        control_plane.stop_apiserver()
        wait_for(lambda: not any(status.connected for status in source.status().values()), "no kind is watched")
        before = listener.snapshot  # nothing that was sent before is still to come
        time.sleep(OUTAGE_S)
        assert not any(status.connected for status in source.status().values())
        assert all(status.complete for status in source.status().values())
        assert listener.snapshot is before

        control_plane.start_apiserver()
        set_port(source_api, 82)
        wait_for(lambda: listener.port_of(WEB) == 82, "changes arrive again")
        wait_for(lambda: is_connected(source), "every kind is watched again")

    assert WEB in before.services
    lost = [log["kind"] for log in logs if log["event"] == "watch_lost"]
    assert len(lost) <= 2 * len(source.kinds)  # told once each, and once more if the server came up refusing


def test_a_server_that_comes_up_after_us_is_found(
    control_plane: ControlPlane, source_api: Api, start_source: StartSource
) -> None:
    set_port(source_api, 80)
    control_plane.stop_apiserver()
    try:
        source, listener = start_source(control_plane.admin_kubeconfig, IMPATIENT)
        time.sleep(1)
        assert listener.listed == []
        assert not any(status.complete for status in source.status().values())
    finally:
        control_plane.start_apiserver()

    wait_for(lambda: set(listener.listed) == source.kinds, "every kind is listed")
    assert listener.port_of(WEB) == 80
