"""Rules and dashboard: their structure. That a daemon has the metrics is asked in e2e/test_deploy.py."""

import re

import pytest
import yaml

from tests.promql import metric_names
from tests.unit.deploy.monitoring import FOLDER, load_groups, load_panels

ALERTS = [rule for group in load_groups() for rule in group["rules"] if "alert" in rule]


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        pytest.param("up == 0", {"up"}, id="a series alone"),
        pytest.param('x{a="b", c=~"d|e"} > 60', {"x"}, id="labels and their values aren't"),
        pytest.param("sum by (a, b) (rate(x_total[5m]))", {"x_total"}, id="functions, groupings and durations aren't"),
        pytest.param("count(count by (v) (x)) > 1e3", {"x"}, id="a number with an exponent isn't"),
        pytest.param("max(x - y) or z / on (n) group_left (m) w", {"x", "y", "z", "w"}, id="operators aren't"),
        pytest.param('label_x{l="by (a) rate(q)"}', {"label_x"}, id="nor what a string holds"),
    ],
)
def test_the_metrics_of_an_expression(expression: str, names: set[str]) -> None:
    assert metric_names(expression) == names


@pytest.mark.parametrize("alert", ALERTS, ids=[alert["alert"] for alert in ALERTS])
def test_an_alert_says_how_bad_it_is_and_what_to_do(alert: dict[str, dict[str, str]]) -> None:
    assert set(alert) == {"alert", "expr", "for", "labels", "annotations"}
    assert re.fullmatch(r"\d+[smh]", str(alert["for"]))
    assert alert["labels"]["severity"] in {"critical", "warning", "info"}
    assert alert["annotations"]["summary"].endswith(".")
    assert len(alert["annotations"]["runbook"]) > 60


def test_alerts_have_names_of_their_own() -> None:
    names = [alert["alert"] for alert in ALERTS]

    assert len(set(names)) == len(names) > 5


def test_the_operators_form_holds_the_same_rules() -> None:
    *monitors, rule = yaml.safe_load_all((FOLDER / "prometheus-operator.yaml").read_text())

    assert rule["spec"]["groups"] == load_groups()
    assert {monitor["kind"] for monitor in monitors} == {"PodMonitor"}
    assert rule["kind"] == "PrometheusRule"


def test_both_ways_to_scrape_name_the_jobs_that_rules_ask_for() -> None:
    jobs = {job["job_name"] for job in yaml.safe_load((FOLDER / "scrape.yaml").read_text())["scrape_configs"]}
    *monitors, _rule = yaml.safe_load_all((FOLDER / "prometheus-operator.yaml").read_text())
    labels = [label for one in monitors for end in one["spec"]["podMetricsEndpoints"] for label in end["relabelings"]]

    assert {label["replacement"] for label in labels if label.get("targetLabel") == "job"} == jobs
    asked = {
        job for group in load_groups() for rule in group["rules"] for job in re.findall(r'job="([^"]+)"', rule["expr"])
    }
    assert asked == jobs


def test_each_panel_is_drawn_by_itself() -> None:
    panels = load_panels()
    places = [(p["gridPos"]["x"], p["gridPos"]["y"]) for p in panels]

    assert len(set(places)) == len({p["id"] for p in panels}) == len(panels)
    assert all(p["description"] and p["targets"] for p in panels)
