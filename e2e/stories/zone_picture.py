"""EFFECT: docs/zones.svg: shares of traffic over time, one strip for each Service and proxy."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from e2e.stories.zone_shares import Place, Second, Told

_COLOURS = {Place.NODE: "#12664f", Place.ZONE: "#7cc6a4", Place.ELSEWHERE: "#f0b04c", Place.FAILED: "#c62828"}
_INK, _PAPER = "#24292f", "#ffffff"  # its own paper, so that it reads the same on a dark page
_WIDTH, _HEIGHT, _ABOVE = 11.0, 2.1, 1.1  # inches; of a strip, and of what is above the first


def draw_shares(path: Path, titles: Mapping[str, str], stories: Sequence[Told]) -> None:
    """Write the picture; its kind is the file's suffix. `titles` are the Services', in their order."""
    strips = [(service, told) for service in titles for told in stories]
    height = _ABOVE + _HEIGHT * len(strips)
    # the salt makes the same figures the same file; "none" keeps text as text
    with mpl.rc_context({"font.size": 9, "svg.hashsalt": "zones", "svg.fonttype": "none"}):
        engine = ConstrainedLayoutEngine(h_pad=0.12)
        figure = Figure(figsize=(_WIDTH, height), facecolor=_PAPER, layout=engine)
        panels = figure.subplots(len(strips), squeeze=False)
        for panel, (service, told) in zip(panels[:, 0], strips, strict=True):
            _draw_strip(panel, told.seconds[service])
            _mark_stages(panel, told)
            panel.set_title(f"{titles[service]}: {told.proxy}", loc="left", fontweight="bold", pad=18)
        panels[-1, 0].set_xlabel("seconds")
        figure.legend(handles=_legend(), loc="outside upper center", ncols=5, frameon=False)
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def _draw_strip(panel: Axes, seconds: Sequence[Second]) -> None:
    totals = [sum(second.places.values()) or 1 for second in seconds]
    layers = [
        [100 * second.places.get(place, 0) / total for second, total in zip(seconds, totals, strict=True)]
        for place in Place
    ]
    times = range(len(seconds))
    panel.stackplot(times, layers, colors=[_COLOURS[place] for place in Place], step="post", linewidth=0)
    near = [100 * second.near / total for second, total in zip(seconds, totals, strict=True)]
    panel.step(times, near, where="post", color=_INK, linestyle=(0, (2, 1.5)), linewidth=1)
    failed = [at for at, second in enumerate(seconds) if second.places.get(Place.FAILED)]
    middles = [at + 0.5 for at in failed]
    panel.plot(middles, [90] * len(failed), "X", markersize=8, color=_COLOURS[Place.FAILED], markeredgecolor=_PAPER)
    panel.set_xlim(0, max(1, len(seconds) - 1))
    panel.set_ylim(0, 100)
    panel.set_yticks([0, 50, 100], labels=["0 %", "50 %", "100 %"])


def _mark_stages(panel: Axes, told: Told) -> None:
    for stage in told.stages:
        panel.axvline(stage.began, color=_INK, linewidth=1)
        words = stage.name.replace(" ", "\n", 1)
        panel.annotate(words, (stage.began, 100), (2, 2), textcoords="offset points", fontsize=7.5, linespacing=0.95)


def _legend() -> list[Patch | Line2D]:
    handles: list[Patch | Line2D] = [Patch(color=_COLOURS[place], label=place.value) for place in Place]
    dashes = Line2D([], [], color=_INK, linestyle=(0, (2, 1.5)), linewidth=1)
    dashes.set_label("clients whose zone has an endpoint")
    return [*handles, dashes]
