"""EFFECT: what a machine reports, in the log and in metrics."""

import structlog

from proxy.announcer import metrics
from proxy.l2.actions import Note, Report
from proxy.l2.state import State

log = structlog.get_logger()

QUIET_NOTES = frozenset({Note.LISTENING, Note.MEMBER_SILENT})


def show_report(state: State, report: Report, now: float) -> None:
    """One report; `state` is the one after the step."""
    note = report.note
    metrics.NOTES.labels(note.value).inc()
    if note is Note.ADDRESS_CONFLICT:
        metrics.CONFLICTS.inc()
    owner = state.members.get(report.member)
    if note in {Note.TAKEN, Note.LAST_RESORT} and owner is not None and report.key is not None:
        metrics.UNOWNED_SECONDS.observe(max(0.0, now - owner.path(report.key.wire).sign_s))
    told = {"vip": report.key.vip, "wire": report.key.wire} if report.key is not None else {}
    if owner is not None and owner.node:
        told["member"] = owner.node
    if report.detail:
        told["detail"] = report.detail
    write = log.debug if note in QUIET_NOTES else log.info
    write(note.value.replace("-", "_"), **told)
