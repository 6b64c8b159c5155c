"""The event time of a source's messages: when what they report happened, as opposed to when they were ingested."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from bettong.application.durations import duration_ns
from bettong.application.signatures import check_function
from bettong.errors import ApplicationError
from bettong.schema.forms.times import DatetimeForm
from bettong.schema.schema import Schema

IDLE_TIMEOUT = timedelta(seconds=60)
MAX_LEAD = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class EventTime:
    """The event time of a message: a field, or a function of the message, in Unix nanoseconds.

    `of`: None for the time of ingestion. `out_of_order_ns`: how much older than the newest of its origin a message may
    be without being late. `idle_timeout_ns`: an origin that is silent for so long does not hold the watermark back;
    None: it does for ever. `max_lead_ns`: a message further ahead of the log clock is refused.
    """

    of: str | Callable[[Any], int] | None = None
    out_of_order_ns: int = 0
    idle_timeout_ns: int | None = duration_ns("", "idle_timeout", IDLE_TIMEOUT)
    max_lead_ns: int = duration_ns("", "max_lead", MAX_LEAD)


def event_time_of(
    source: str,
    schema: Schema,
    of: object,
    *,
    out_of_order: timedelta,
    idle_timeout: timedelta | None,
    max_lead: timedelta,
) -> EventTime:
    """Checks the arguments of `Application.source`. Raises ApplicationError for no event time of these messages."""
    owner = f"source {source!r}"
    if isinstance(of, str):
        _check_field(owner, of, schema)
    elif callable(of):
        check_function(f"event_time of {owner}", of, takes=schema.message, returns=(int,))
    elif of is not None:
        raise ApplicationError(f"{owner}: event_time={of!r} is neither a field's name nor a function")
    return EventTime(
        of if isinstance(of, str) or callable(of) else None,
        duration_ns(owner, "out_of_order", out_of_order, zero=True),
        None if idle_timeout is None else duration_ns(owner, "idle_timeout", idle_timeout),
        duration_ns(owner, "max_lead", max_lead),
    )


def _check_field(owner: str, name: str, schema: Schema) -> None:
    names = [each.name for each in schema.fields]
    if name not in names:
        raise ApplicationError(
            f"{owner}: event_time={name!r}: {schema.name} has no such field; it has {', '.join(names)}"
        )
    field = schema.fields[names.index(name)]
    if isinstance(field.form, DatetimeForm):
        return
    if field.kind.value != "int" or field.dtype is None or field.dtype.itemsize < 8:
        raise ApplicationError(
            f"{owner}: event_time={name!r}: expected a field of datetimes, or of 64-bit integers (Unix nanoseconds), or"
            " a function that returns them"
        )
