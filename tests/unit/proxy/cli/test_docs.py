"""The documents' examples, run; and their links."""

import json
import re
from pathlib import Path

import msgspec
import pytest

from proxy.report import PlanReport
from tests.unit.proxy.cli.conftest import RunCloseby

ROOT = Path(__file__).parents[4]
PAGES = sorted(page for folder in (".", "docs", "deploy", "proxy/kernel") for page in (ROOT / folder).glob("*.md"))


def find_block(page: str, language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)
    assert found is not None
    return found[1]


def test_the_manifests_page_can_be_followed(
    run_closeby: RunCloseby, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    commands = find_block("manifests.md", "sh")
    manifest = re.search(r"<<'YAML'\n(.*?)YAML\n(.*)", commands, re.DOTALL)
    assert manifest is not None
    (tmp_path / "web.yaml").write_text(manifest[1])
    asked = [line.replace("/tmp/manifests", str(tmp_path)).split()[1:] for line in manifest[2].splitlines()]  # noqa: S108

    plan, explained = (run_closeby(*words) for words in asked)

    assert (plan.code, explained.code) == (0, 0)
    assert "10.244.1.10:8080" in plan.out
    assert "same-zone" in plan.out
    assert "10.244.2.10:8080" in explained.out


def test_the_plan_shown_has_the_fields_of_a_plan() -> None:
    shown = json.loads(find_block("command-line.md", "json"))

    report = msgspec.to_builtins(msgspec.convert(shown, PlanReport))

    assert shown.keys() == report.keys()
    (service,), (written,) = shown["services"], report["services"]
    assert service.keys() == written.keys()
    assert service["frontends"][0].keys() == written["frontends"][0].keys()


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())

    assert [link for link in links if not (page.parent / link).exists()] == []
