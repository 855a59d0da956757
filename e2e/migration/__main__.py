"""`python -m e2e.migration`: a table of what each order costs."""

import sys
import tempfile
from pathlib import Path

from e2e.binaries.build import build
from e2e.console import open_console
from e2e.migration.orders import measure_all
from e2e.migration.rig import run_rig

_HEAD = "| kube-proxy's mode | order | new connections | failed | resent | established | broken | lost | moved |"


def main() -> int:
    """Print a row of Markdown an order."""
    binary = build("kube", open_console())
    print(_HEAD)
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory(prefix="closeby-move-") as folder, run_rig(binary, Path(folder)) as rig:
        for mode, order, cost in measure_all(rig):
            failed = sum(cost.failed.values())
            figures = (cost.attempts, failed, cost.resent, cost.flows, cost.broken, cost.lost, cost.moved)
            print(f"| {mode} | {order.name} | {' | '.join(map(str, figures))} |", flush=True)
            for who, number in () if order.loses else cost.failed.items():
                print(f"{mode}, {order.name}: {who}: {number}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
