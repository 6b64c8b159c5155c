"""Timers by Bettong, from topic to topic."""

from dataclasses import dataclass

import bettong
from benchmarks.peers.bettong.topics import RESULTS, TopicEvent, events
from benchmarks.peers.events import OVERDUE, PATIENCE_MS, PLACED
from benchmarks.peers.load import INPUT
from bettong import i64

PATIENCE_S = PATIENCE_MS // 1000


@dataclass(slots=True)
class OverdueKey:
    """A key's order that nobody had approved by then; `due`: Unix ns."""

    key: i64
    due: i64


@dataclass(slots=True)
class WaitingKey:
    """What is kept of an order that is not approved yet."""

    due_at: bettong.Timer = bettong.NEVER


@bettong.compiled
def on_step(event: TopicEvent, waiting: WaitingKey) -> OverdueKey | None:
    """Sets the timer, or takes it back; see `benchmarks.peers.events.on_step`."""
    due_at = waiting.due_at
    waiting.due_at = event.at + bettong.seconds(PATIENCE_S) if event.value == PLACED else bettong.NEVER
    return OverdueKey(event.key, due_at) if event.at >= due_at else None


@bettong.compiled
def on_due(fired: bettong.Fired[int], waiting: WaitingKey) -> OverdueKey | None:  # noqa: ARG001 - every timer's gets it
    """Nobody has approved it."""
    return OverdueKey(fired.key, fired.at)


@bettong.compiled
def is_over(waiting: WaitingKey) -> bool:
    """Nothing is kept of a key that waits for nothing."""
    return waiting.due_at == bettong.NEVER


def pack(overdue: OverdueKey) -> bytes:
    """A result as it goes out."""
    return OVERDUE.pack(overdue.key, overdue.due)


app = bettong.Application("timers-topic")
overdue = events(app, INPUT).stateful(
    on_step, state=WaitingKey, name="waiting", timers={"due_at": on_due}, delete_when=is_over
)
overdue.sink("overdue", encoder=pack, to=RESULTS)
