"""Overdue orders: those that nobody has approved within a minute, by the times of the messages themselves.

bettong run examples/overdue_orders.py
bettong send steps STEPS.jsonl     (one {"order": "A-17", "time": 1700000000000000000, "approved": false} a line)
bettong tail overdue

An order is reported once, as soon as a minute has passed in the messages; sent a day later, they give the same results.
"""

from dataclasses import dataclass
from typing import Annotated

import bettong

PATIENCE_S = 60


@dataclass(slots=True)
class Step:
    """An order was placed, or approved; `time` in Unix nanoseconds."""

    order: Annotated[str, bettong.Width(16)]
    time: bettong.i64
    approved: bool


@dataclass(slots=True)
class Overdue:
    """Nobody had approved the order by then."""

    order: Annotated[str, bettong.Width(16)]
    time: bettong.i64


@dataclass(slots=True)
class Waiting:
    """What is kept of an order that is not approved yet."""

    due_at: bettong.Timer = bettong.NEVER


@bettong.compiled
def on_step(step: Step, waiting: Waiting) -> Overdue | None:
    """Sets the timer, or takes it back."""
    if not step.approved:
        waiting.due_at = step.time + bettong.seconds(PATIENCE_S)
        return None
    due_at = waiting.due_at
    waiting.due_at = bettong.NEVER
    # Timers fire behind a frame: an approval that comes in one with later messages may find its timer still set.
    return Overdue(step.order, due_at) if step.time >= due_at else None


@bettong.compiled
def on_due(fired: bettong.Fired[str], waiting: Waiting) -> Overdue | None:  # noqa: ARG001 - every timer's gets it
    """Nobody has approved it."""
    return Overdue(fired.key, fired.at)


@bettong.compiled
def is_over(waiting: Waiting) -> bool:
    """Nothing is kept of an order that waits for nothing."""
    return waiting.due_at == bettong.NEVER


app = bettong.Application("overdue-orders")
(
    app.source("steps", schema=Step, key="order", event_time="time")
    .stateful(on_step, state=Waiting, name="waiting", timers={"due_at": on_due}, delete_when=is_over)
    .sink("overdue")
)
