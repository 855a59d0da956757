"""docs/configuration.md is what the tables say."""

from pathlib import Path

from proxy.kubeproxy.page import render_page


def test_the_page_is_as_generated() -> None:
    page = Path(__file__).parents[4] / "docs" / "configuration.md"

    assert page.read_text() == render_page()  # `make docs` writes it
