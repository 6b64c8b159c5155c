"""Structured logs: one line a fact, an event with named values, as text for people or JSON for machines."""

import logging
import sys
from typing import Any

import structlog

from bettong.settings import LogFormat, ServiceSettings

Logger = structlog.stdlib.BoundLogger

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def configure(settings: ServiceSettings, service: str) -> Logger:
    """Sends this process's log lines to standard error; call once. Libraries are heard from WARNING on."""
    renderer: Any = (
        structlog.processors.JSONRenderer()
        if settings.log_format is LogFormat.JSON
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*shared, structlog.processors.format_exc_info, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[settings.log_level]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *shared],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    # kafka-python logs every attempt to connect as an error; the edges say once that they wait.
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    logger: Logger = structlog.get_logger().bind(service=service, instance=settings.instance)
    return logger
