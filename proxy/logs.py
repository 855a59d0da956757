"""Logging: structlog, one line an event, as JSON for collectors or coloured columns for a terminal."""

import logging
import sys

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

QUIET = -1  # warnings and worse: for commands whose output is an answer
DEBUG_VERBOSITY = 4  # kube-proxy's -v: 4 and above shows each decision


def set_up_logs(verbosity: int, log_format: str) -> None:
    """Configure structlog for the process; `auto` is the console form on a terminal and JSON elsewhere."""
    console = log_format == "console" or (log_format == "auto" and sys.stderr.isatty())
    renderer: Processor = structlog.dev.ConsoleRenderer() if console else structlog.processors.JSONRenderer()
    level = logging.DEBUG if verbosity >= DEBUG_VERBOSITY else logging.INFO if verbosity >= 0 else logging.WARNING
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.dict_tracebacks if not console else _keep,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),  # a line in one write: none is torn by a kill
    )


def _keep(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    return event
