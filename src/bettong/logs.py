"""Structured logs: each line is an event with named values, as text for people or JSON for machines."""

import logging
import sys
from collections.abc import Mapping, MutableMapping
from typing import Any

import structlog

from bettong.config.service import LogFormat, ServiceSettings

Logger = structlog.stdlib.BoundLogger

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


# Of one value, which may come from outside: long enough for a reason with the last lines of a log.
VALUE_CHARACTERS_MAX = 2000
_ITEMS_MAX = 64
# A stack trace is trusted, so its line breaks are kept.
_TRACE_CHARACTERS_MAX = 50_000
_TRACES = ("exception", "stack")


def bound(_logger: object, _name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A processor that truncates every value, and escapes line breaks and control characters."""
    for key, value in event.items():
        if key in _TRACES:
            event[key] = str(value)[-_TRACE_CHARACTERS_MAX:]
        elif key != "exc_info":
            event[key] = _bounded(value)
    return event


def _bounded(value: object) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, list | tuple | set | frozenset):
        kept = [_bounded(each) for each, _ in zip(value, range(_ITEMS_MAX), strict=False)]
        return kept if len(value) <= _ITEMS_MAX else [*kept, f"and {len(value) - _ITEMS_MAX} more"]
    if isinstance(value, Mapping):
        pairs = zip(value.items(), range(_ITEMS_MAX), strict=False)
        return {str(_bounded(key)): _bounded(each) for (key, each), _ in pairs}
    text = value if isinstance(value, str) else str(value)
    if len(text) > VALUE_CHARACTERS_MAX:
        text = f"{text[:VALUE_CHARACTERS_MAX]}... ({len(text)} characters)"
    return text if text.isprintable() else "".join(_shown(each) for each in text)


def _shown(character: str) -> str:
    return character if character.isprintable() else repr(character)[1:-1]


def configure(settings: ServiceSettings, service: str) -> Logger:
    """Sends this process's log lines to standard error; call once. Libraries log from WARNING on."""
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
        processors=[*shared, structlog.processors.format_exc_info, bound, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[settings.log_level]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *shared],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, bound, renderer],
        )
    )
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    # kafka-python logs every attempt to connect as an error; the edges log once that they wait.
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    logger: Logger = structlog.get_logger().bind(service=service, instance=settings.instance)
    return logger


def of_library(name: str) -> Logger:
    """A logger for code that runs in a user's program: its lines go to the logger `name` of `logging`, as text.

    If the program does not configure logging, warnings and worse go to standard error, by Python's default.
    """
    logger: Logger = structlog.wrap_logger(
        logging.getLogger(name), processors=[bound, _text], wrapper_class=structlog.stdlib.BoundLogger
    )
    return logger


def _text(_logger: object, _name: str, event: MutableMapping[str, Any]) -> str:
    return " ".join([event.pop("event"), *(f"{key}={value!r}" for key, value in event.items())])
