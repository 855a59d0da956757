"""The page of metrics names every one of the announcer's and no other."""

import re
from pathlib import Path

from prometheus_client.metrics import MetricWrapperBase

from proxy.announcer import metrics
from proxy.l2status import metrics as status_metrics

PAGE = (Path(__file__).parents[4] / "docs" / "metrics.md").read_text()


def test_the_page_has_them_all() -> None:
    found = [one for one in vars(metrics).values() if isinstance(one, MetricWrapperBase)]

    assert set(re.findall(r"^\| `(closeby_announcer_\w+)", PAGE, re.MULTILINE)) == {_name(one) for one in found}


def test_writes_of_status_are_on_the_page() -> None:
    assert f"`{_name(status_metrics.WRITES)}{{group, result}}`" in PAGE


def _name(metric: MetricWrapperBase) -> str:
    family = next(iter(metric.collect()))
    return family.name + ("_total" if family.type == "counter" else "")
