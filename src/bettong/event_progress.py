"""Progress of event time in a partition, for its live record: what holds the watermark, and what waits for it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from bettong.identifiers import Origin

# Bounds of a record; further inputs and computations are omitted.
INPUTS_MAX = 32
DUE_MAX = 32


class DueKind(StrEnum):
    """The part of a computation that waits for the watermark."""

    WINDOW = "window"
    SESSION = "session"
    JOIN = "join"
    TIMER = "timer"


@dataclass(frozen=True, slots=True)
class InputProgress:
    """The origins of one producer (`identifiers.producer_of`) that a partition reads: clients, or partitions.

    `live`: how many count; `awaited`: how many partitions of the previous stage have sent nothing yet. `origin`: the
    one with the lowest watermark, preferably one that is awaited; "" for none. `watermark_ns`: its watermark, 0 while
    unknown. `heard_ns` and `moved_ns`: the log clock when it last sent, and when its watermark last rose; 0 if that was
    before this worker acquired the partition. `idle_ns`: for how long it counts after it last sent; None: for ever.
    """

    producer: str
    live: int
    awaited: int
    origin: Origin
    watermark_ns: int
    heard_ns: int
    moved_ns: int
    idle_ns: int | None


@dataclass(frozen=True, slots=True)
class DueComputation:
    """The first event of a computation that waits for the watermark: due at `due_ns`, or some time after that.

    `start_ns` and `end_ns`: of an aligned window, else None.
    """

    computation: str
    kind: DueKind
    due_ns: int
    start_ns: int | None = None
    end_ns: int | None = None


@dataclass(frozen=True, slots=True)
class EventProgress:
    """The progress of a partition when its log clock was at `log_ns`. `due`: the soonest first."""

    log_ns: int
    inputs: tuple[InputProgress, ...] = ()
    due: tuple[DueComputation, ...] = ()

    def to_text(self) -> str:
        """For a live record."""
        inputs = [
            [
                each.producer,
                each.live,
                each.awaited,
                each.origin,
                each.watermark_ns,
                each.heard_ns,
                each.moved_ns,
                each.idle_ns,
            ]
            for each in self.inputs[:INPUTS_MAX]
        ]
        due = [
            [each.computation, each.kind.value, each.due_ns, each.start_ns, each.end_ns]
            for each in self.due[:DUE_MAX]
        ]
        return json.dumps(
            {"log": self.log_ns, "inputs": inputs, "due": due}, separators=(",", ":"), ensure_ascii=False
        )

    @classmethod
    def found(cls, text: str) -> EventProgress | None:
        """Parses a live record's text; None if it is empty or invalid."""
        try:
            return cls.parse(text)
        except ValueError:
            return None

    @classmethod
    def parse(cls, text: str) -> EventProgress:
        """The inverse of `to_text`. Raises ValueError."""
        try:
            found = json.loads(text)
            inputs = tuple(
                InputProgress(
                    producer=_text(producer),
                    live=_whole(live),
                    awaited=_whole(awaited),
                    origin=Origin(_text(origin)),
                    watermark_ns=_whole(at_ns),
                    heard_ns=_whole(heard_ns),
                    moved_ns=_whole(moved_ns),
                    idle_ns=_maybe(idle_ns),
                )
                for producer, live, awaited, origin, at_ns, heard_ns, moved_ns, idle_ns in found["inputs"]
            )
            due = tuple(
                DueComputation(_text(name), DueKind(kind), _whole(due_ns), _maybe(start_ns), _maybe(end_ns))
                for name, kind, due_ns, start_ns, end_ns in found["due"]
            )
            return cls(_whole(found["log"]), inputs, due)
        except (TypeError, KeyError, RecursionError) as error:
            raise ValueError(f"no progress of event time: {error!r}") from None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a name that is {type(value).__name__}")
    return value


def _whole(value: Any) -> int:
    """A signed 64-bit integer, such as a time or a count."""
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise TypeError(f"a number that is {str(value)[:40]!r}")
    return value


def _maybe(value: Any) -> int | None:
    return None if value is None else _whole(value)
