"""Reads the event times of a frame's messages, and refuses messages by them. Pure but for users' functions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from bettong.application.nodes.source import Source
from bettong.frames.columns import Array, Columns
from bettong.frames.frame import CLOCK_NS_MAX
from bettong.frames.refused import Refused
from bettong.frames.text import json_line
from bettong.frames.times import instants_ns
from bettong.ingest.body import Body
from bettong.ingest.care import Care
from bettong.user_errors import ANY_ERROR, reason_of

_S_NS = 1_000_000_000
# Stands for a missing event time.
_NO_TIME = -1


@dataclass(frozen=True, slots=True)
class Timed:
    """The event times of a body. `kept`: rows whose event times are accepted, None: all; the others are refused.

    `times`: of the rows kept; None where event time is ingest time.
    `wrong`: messages without a valid event time, whenever they are sent. `early`: those too far ahead of the clock,
    each with its row: sent again later they are accepted. `highest_ns`: of the messages kept, 0 when there is none.
    """

    highest_ns: int = 0
    times: Array | None = None
    kept: Array | None = None
    wrong: tuple[Refused, ...] = ()
    early: tuple[tuple[int, Refused], ...] = ()


def judge_event_times(source: Source, body: Body, now_ns: int, care: Care | None = None) -> Timed:
    """Reads the event time of each message. `care`: see `Session.read`.

    Where event time is ingest time, there is nothing to read, and `highest_ns` is 0.
    """
    times = source.event_time
    if times.of is None or not body.columns.length:
        return Timed()
    if isinstance(times.of, str):
        found, reasons = _of_field(body.columns, times.of)
    else:
        found, reasons = _of_function(body, times.of, care)
    highest_ns = int(found.max())
    latest_ns = now_ns + times.max_lead_ns
    if not reasons and highest_ns <= latest_ns:
        return Timed(highest_ns, found)
    early = {
        row: f"its event time is {(int(found[row]) - now_ns) / _S_NS:.3f} s ahead of the sender's clock, at most"
        f" {times.max_lead_ns / _S_NS:g} s are taken (max_lead): correct the clock that set it, or the sender's"
        for row in np.flatnonzero(found > latest_ns).tolist()
    }
    mask = found <= latest_ns
    mask[list(reasons)] = False
    kept = np.flatnonzero(mask)
    taken = found[kept]
    return Timed(
        int(taken.max()) if len(kept) else 0,
        taken,
        kept,
        tuple(refused for _, refused in _refused(body, reasons)),
        tuple(_refused(body, early)),
    )


def watermarks_before(times: Array, highest_ns: int, out_of_order_ns: int) -> Array:
    """The watermark of the origin before each message, for messages of these times in this order.

    `highest_ns`: newest event time of the messages before them.
    """
    newest = np.maximum.accumulate(np.concatenate(([highest_ns], times[:-1])))
    before: Array = np.maximum(newest - out_of_order_ns, 0)
    return before


def _of_field(columns: Columns, name: str) -> tuple[Array, dict[int, str]]:
    """The times, and by row why one is missing."""
    index = columns.schema.position(name)
    values = columns.columns[index]
    if isinstance(values, pa.Array):
        found, outside = instants_ns(values)
        found[outside] = _NO_TIME
        wrong = np.flatnonzero(outside).tolist()
        return found, {
            row: f"its event time is {columns.values(index)[row]}, expected one from 1970 to 2262"
            for row in wrong
        }
    if int(values.max()) <= CLOCK_NS_MAX and int(values.min()) >= 0:
        return values.astype(np.int64, copy=False), {}
    wrong = np.flatnonzero((values < 0) | (values > CLOCK_NS_MAX)).tolist()
    found = values.astype(np.int64)
    found[wrong] = _NO_TIME
    return found, {row: f"its event time is {_fault(int(values[row]))}" for row in wrong}


def _of_function(
    body: Body, function: Callable[[Any], int], care: Care | None
) -> tuple[Array, dict[int, str]]:
    found = np.full(body.columns.length, _NO_TIME, np.int64)
    reasons: dict[int, str] = {}
    for row, message in enumerate(body.columns):
        if care is not None:
            index = body.index(row)
            if (reason := care.reason(index)) is not None:
                reasons[row] = reason
                continue
            care.mark(index)
        try:
            value = function(message)
        except ANY_ERROR as error:  # the user's function may raise anything
            reasons[row] = reason_of(error, "the event_time function raised ")
            continue
        if type(value) is int and 0 <= value <= CLOCK_NS_MAX:
            found[row] = value
        elif type(value) is int:
            reasons[row] = f"the event_time function returned {_fault(value)}"
        else:
            reasons[row] = (
                f"the event_time function returned {type(value).__name__}, expected an int (Unix nanoseconds)"
            )
    return found, reasons


def _fault(value: int) -> str:
    # Python refuses to print a number of more than 4,300 digits.
    shown = value if value.bit_length() <= 128 else f"a number of {value.bit_length()} bits"
    return f"{shown}, expected Unix nanoseconds from 0 to {CLOCK_NS_MAX} (in the year 2262)"


def _refused(body: Body, reasons: dict[int, str]) -> list[tuple[int, Refused]]:
    """The refused messages as dead letters, each with its row."""
    if not reasons:
        return []
    schema = body.columns.schema
    rows = sorted(reasons)
    messages = body.columns.take(np.array(rows, np.int64)).messages()
    return [
        (row, Refused(body.index(row), reasons[row], json_line(schema, message), as_received=False))
        for row, message in zip(rows, messages, strict=True)
    ]
