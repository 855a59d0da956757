"""EFFECT: how likely the kernel kills this process when memory ends."""

from pathlib import Path

import structlog

log = structlog.get_logger()

_FILE = Path("/proc/self/oom_score_adj")


def set_oom_score(adjustment: int, file: Path = _FILE) -> None:
    """Write the adjustment, -1000 (never) to 1000 (first); a refusal is a line in the log."""
    try:
        if int(file.read_text()) != adjustment:
            file.write_text(str(adjustment))
    except (OSError, ValueError) as error:
        log.info("oom_score_not_set", wanted=adjustment, why=str(error))
