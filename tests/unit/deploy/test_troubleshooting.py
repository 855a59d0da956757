"""The pages for trouble speak of log events and messages: they are closeby's, word by word."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "troubleshooting.md").read_text()
RUNBOOKS = (ROOT / "deploy" / "monitoring" / "rules.yaml").read_text()
SOURCE = "\n".join(path.read_text() for part in ("proxy", "endpointslice") for path in (ROOT / part).rglob("*.py"))
LITERALS = re.sub(r'"\s*\n\s*f?"', "", SOURCE)  # strings that were broken over lines, whole again

# Of the kernel, of other programs, and of a log line.
NOT_OURS = {"nf_tables", "nf_conntrack", "nf_conntrack_max", "nf_conntrack_netlink", "rp_filter", "spc_t", "retry_s"}
# Columns whose first cell begins with one of closeby's own sentences.
SENTENCES = re.findall(r"^\| `([^`]+)` \|", TEXT.partition("## It runs and isn't ready")[0], re.MULTILINE)


@pytest.mark.parametrize("event", sorted(set(re.findall(r"`([a-z]+(?:_[a-z]+)+)`", TEXT + RUNBOOKS)) - NOT_OURS))
def test_a_log_event_is_one_that_is_written(event: str) -> None:
    note = event.replace("_", "-")  # the announcer writes its notes so
    assert f'"{event}' in SOURCE or f'"{note}"' in SOURCE


@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_message_is_one_that_is_printed(sentence: str) -> None:
    fixed = [part.strip(' ":()') for part in re.split(r"\.\.|FILE", sentence)]

    for part in fixed:
        assert part in LITERALS, part
