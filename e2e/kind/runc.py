"""Runs runc, with CAP_SYS_RESOURCE taken out of what it is asked to grant: dockerd's runtime where root lacks it.

A program of its own, run without site-packages: `python -I -S runc.py ARGUMENT..`. kind's nodes are privileged
containers, which get every capability; runc fails on one that it has not itself.
"""

import json
import os
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

_MISSING = "CAP_SYS_RESOURCE"


def specs_in(arguments: list[str]) -> Iterator[Path]:
    """Files among the arguments of runc that say what to grant: a bundle's config.json, exec's process.json."""
    for flag, value in pairwise(arguments):
        if flag in {"--bundle", "-b"}:
            yield Path(value) / "config.json"
        elif flag in {"--process", "-p"}:
            yield Path(value)


def without_missing(spec: dict[str, Any]) -> dict[str, Any]:
    """The spec (config.json, or its part `process` alone) with the capability in none of its sets."""
    process = spec.get("process", spec)
    for name, capabilities in (process.get("capabilities") or {}).items():
        process["capabilities"][name] = [capability for capability in capabilities or [] if capability != _MISSING]
    return spec


def main() -> None:
    """Edit the specs, and become runc."""
    for path in specs_in(sys.argv[1:]):
        path.write_text(json.dumps(without_missing(json.loads(path.read_text()))))
    os.execvp("runc", ["runc", *sys.argv[1:]])  # noqa: S606  # this process becomes runc


if __name__ == "__main__":
    main()
