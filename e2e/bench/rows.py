"""What was measured, as values, JSON lines and table rows. No I/O."""

from collections.abc import Sequence
from typing import Any

import msgspec

from e2e.bench.scale import Scale


class Figure(msgspec.Struct, frozen=True):
    """One number, and how many samples it stands for."""

    value: float
    samples: int = 1


class Row(msgspec.Struct, frozen=True):
    """One work, done by both."""

    work: str
    scale: Scale
    unit: str
    closeby: Figure
    kube_proxy: Figure | None = None  # None: it was skipped, or has no such figure
    target: float | None = None  # of closeby, in the same unit

    @property
    def ratio(self) -> float | None:
        """kube-proxy's figure by closeby's: above 1 where closeby needs less."""
        if self.kube_proxy is None or self.closeby.value <= 0:
            return None
        return self.kube_proxy.value / self.closeby.value


TARGETS = {  # work, scale: what closeby should need, in the row's unit
    ("first sync", Scale(1000, 5)): 0.3,
    ("first sync", Scale(10_000, 5)): 1.2,
    ("first sync", Scale(44_125, 1)): 4.0,
    ("first sync", Scale(5006, 50)): 5.0,
    ("resident memory", Scale(10_000, 5)): 130.0,
    ("watch event to kernel, p99", Scale(10_000, 5)): 3.0,
}


def make_row(work: str, scale: Scale, unit: str, figures: tuple[Figure, Figure | None]) -> Row:
    """The row with its target, if it has one."""
    return Row(work, scale, unit, *figures, TARGETS.get((work, scale)))


def pick(samples: Sequence[float], part: float = 0.5) -> Figure:
    """The median, or another quantile: 0.99 of 200 samples is the third longest."""
    ordered = sorted(samples)
    return Figure(ordered[min(len(ordered) - 1, int(len(ordered) * part))], len(ordered))


def render_json(row: Row) -> str:
    """One line."""
    peer = row.kube_proxy
    line: dict[str, Any] = {
        "work": row.work,
        "services": row.scale.services,
        "endpoints_per_service": row.scale.endpoints,
        "closeby": round_figure(row.closeby.value),
        "kube_proxy": round_figure(peer.value) if peer else None,
        "ratio": round_figure(row.ratio) if row.ratio is not None else None,
        "unit": row.unit,
        "closeby_samples": row.closeby.samples,
        "kube_proxy_samples": peer.samples if peer else 0,
        "target": row.target,
    }
    return msgspec.json.encode(line).decode()


def render_cells(row: Row) -> tuple[str, ...]:
    """Work, scale, closeby, kube-proxy, ratio, target, samples: as people read them."""
    peer = row.kube_proxy
    target = "" if row.target is None else f"< {row.target:g} {row.unit}"
    if row.target is not None and row.closeby.value >= row.target:
        target += " (missed)"
    return (
        row.work,
        f"{row.scale.services:,} x {row.scale.endpoints}",
        f"{round_figure(row.closeby.value):,} {row.unit}",
        f"{round_figure(peer.value):,} {row.unit}" if peer else "-",
        f"{round_figure(row.ratio):,}" if row.ratio is not None else "-",
        target,
        f"{row.closeby.samples} / {peer.samples if peer else 0}",
    )


COLUMNS = ("work", "Services x endpoints", "closeby", "kube-proxy", "ratio", "target", "samples")


def round_figure(value: float) -> float:
    """Three digits that count; above 100 whole numbers."""
    if abs(value) >= 100:
        return round(value)
    return float(f"{value:.3g}")
