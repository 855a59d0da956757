"""What deploy/monitoring holds, for the tests of its structure and of its metrics' names."""

import json
from pathlib import Path
from typing import Any

import yaml

from tests.promql import metric_names

FOLDER = Path(__file__).parents[3] / "deploy" / "monitoring"
NOT_OURS = {"up"}  # Prometheus' own


def load_groups() -> list[dict[str, Any]]:
    """The groups of rules.yaml."""
    groups: list[dict[str, Any]] = yaml.safe_load((FOLDER / "rules.yaml").read_text())["groups"]
    return groups


def load_panels() -> list[dict[str, Any]]:
    """The dashboard's panels."""
    panels: list[dict[str, Any]] = json.loads((FOLDER / "dashboard.json").read_text())["panels"]
    return panels


def list_metrics() -> set[str]:
    """Every metric that a rule or a panel asks for."""
    expressions = [rule["expr"] for group in load_groups() for rule in group["rules"]]
    expressions += [target["expr"] for panel in load_panels() for target in panel["targets"]]
    recorded = {rule["record"] for group in load_groups() for rule in group["rules"] if "record" in rule}
    return {name for expression in expressions for name in metric_names(expression)} - NOT_OURS - recorded
