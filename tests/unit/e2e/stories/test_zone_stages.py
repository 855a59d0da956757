from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from e2e.stories.zone_stages import GONE, plan_costs, render_story

EXAMPLE = (Path(__file__).parents[4] / "docs" / "zones.yaml").read_text()
ZONES = {f"{zone}-{number}": zone for zone in ("north", "south", "east") for number in (1, 2)}


def pods_on(nodes: list[str]) -> list[dict[str, Any]]:
    return [{"metadata": {"name": f"web-{n:02}"}, "spec": {"nodeName": node}} for n, node in enumerate(nodes)]


@given(st.permutations(sorted(ZONES) * 2))
def test_whatever_is_left_is_spread_over_the_zones(nodes: list[str]) -> None:
    pods = pods_on(nodes)
    zone_of = {pod["metadata"]["name"]: ZONES[pod["spec"]["nodeName"]] for pod in pods}
    costs = plan_costs(pods, ZONES)

    kept = sorted(costs, key=lambda pod: -costs[pod])
    for replicas in (3, 6, 9):
        left = [zone_of[pod] for pod in kept[:replicas]]
        assert {left.count(zone) for zone in ZONES.values()} == {replicas // 3}
    assert GONE not in {zone_of[pod] for pod in kept[:2]}


def test_the_story_runs_the_example_of_the_docs_with_its_own_servers() -> None:
    manifests: list[Any] = render_story(EXAMPLE, "closeby:0")
    shown = {(manifest["kind"], manifest["metadata"]["name"]): manifest["spec"] for manifest in manifests[1:]}

    assert set(shown) == {("Service", "web"), ("Deployment", "web"), ("Service", "agent"), ("DaemonSet", "agent")}
    assert {shown["Service", name]["trafficDistribution"] for name in ("web", "agent")} == {"PreferClose"}
    deployment = shown["Deployment", "web"]
    assert deployment["replicas"] == 6
    assert len(deployment["template"]["spec"]["topologySpreadConstraints"]) == 2
    assert [container["image"] for container in deployment["template"]["spec"]["containers"]] == ["closeby:0"]
