"""The inputs of an application in a test, as data: messages, time, crashes; and checks that they fit it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, TypeAlias

from bettong.application.nodes.source import Source
from bettong.application.plan import Plan
from bettong.errors import CaseError
from bettong.frames.frame import CLOCK_NS_MAX
from bettong.testing.memory_references import read_rows

# The end of time: every window is over. In the year 2116, so that times after it by a delay still fit in 64 bits.
END = 2**62
CLIENT = "client"

_US_NS = 1000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Moment(Enum):
    """An event between two frames.

    | CRASH   | every worker is killed; new ones restore the last snapshot, and replay the log from there            |
    | RESTORE | all states are saved, and new workers restore them: a restart, or a move to another machine          |
    | SAVE    | all states are saved, and the workers continue: a later crash restores these snapshots               |
    | RESEND  | every client reconnects, and resends its last frame, like a client without an acknowledgement        |
    | IDLE    | no client sends anything for so long that all count as idle                                          |
    """

    CRASH = "CRASH"
    RESTORE = "RESTORE"
    SAVE = "SAVE"
    RESEND = "RESEND"
    IDLE = "IDLE"

    def __repr__(self) -> str:
        return self.value


CRASH, RESTORE, SAVE, RESEND, IDLE = Moment


@dataclass(frozen=True, slots=True)
class ClientFrame:
    """A frame of a client: messages of one source, or, where it has a decoder, bytes. See `frame`."""

    source: str
    messages: tuple[Any, ...]
    client: str = CLIENT


@dataclass(frozen=True, slots=True)
class WatermarkInput:
    """See `watermark`."""

    at_ns: int
    source: str | None = None
    client: str | None = None


@dataclass(frozen=True, slots=True)
class EndOfStream:
    """See `end_stream`."""

    source: str | None = None
    client: str | None = None


@dataclass(frozen=True, slots=True)
class ClockStep:
    """See `clock`. One of the two."""

    step_ns: int | None = None
    at_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Reference:
    """From here on, messages see another version of the table of a `join_reference`, which is named by its `join`.

    `table`: a value that its `load()` may return, or a list of rows. As the first input it replaces `load()`.
    """

    join: str
    table: Any


Step: TypeAlias = ClientFrame | WatermarkInput | EndOfStream | ClockStep | Reference | Moment


def frame(source: str, *messages: Any, client: str = CLIENT) -> ClientFrame:
    """Messages that a client sends in one frame; clients are distinguished by their names."""
    return ClientFrame(source, messages, client)


def watermark(at: int | datetime, source: str | None = None, *, client: str | None = None) -> WatermarkInput:
    """The watermark reaches `at` (Unix nanoseconds): older messages are late from now on.

    Of all clients, of those of a source, or of one of them. A client whose watermark is later keeps it.
    """
    return WatermarkInput(_time_ns("watermark", at), source, client)


def end_stream(source: str | None = None, *, client: str | None = None) -> EndOfStream:
    """Clients have finished, and none returns under their names: they no longer hold event time back.

    All clients, those of a source, or one of them. Where none is left, event time follows the log clock.
    """
    return EndOfStream(source, client)


def clock(step: int | timedelta | None = None, *, at: int | datetime | None = None) -> ClockStep:
    """The log clock advances by `step` (nanoseconds), or to `at`; as the very first input, it begins there.

    Everything that is due on the way happens, each at its own time.
    """
    if (step is None) == (at is None):
        raise CaseError("clock: give a step, clock(timedelta(seconds=5)), or a time, clock(at=...)")
    if at is not None:
        return ClockStep(at_ns=_time_ns("clock", at))
    step_ns = _duration_ns(step) if isinstance(step, timedelta) else step
    if type(step_ns) is not int or not 0 <= step_ns <= CLOCK_NS_MAX:
        raise CaseError(f"clock({step!r}): expected a timedelta or nanoseconds from 0 on: no clock goes back")
    return ClockStep(step_ns=step_ns)


def read_inputs(plan: Plan, inputs: Iterable[object], *, first: int = 0) -> list[Step]:
    """The inputs of a test in one form: `("clicks", message)`, or a list of them, is a frame of CLIENT.

    Raises CaseError, which names the input by its index, `first` and up.
    """
    sources = {source.name: source for source in plan.sources}
    found: list[Step] = []
    for number, each in enumerate(inputs, first):
        try:
            found.append(_read(plan, sources, each))
        except CaseError as error:
            raise CaseError(f"input {number}: {error}") from None
    return found


def _read(plan: Plan, sources: dict[str, Source], each: object) -> Step:
    if isinstance(each, Moment | ClockStep):
        if each is IDLE:
            _check_idle(sources)
        return each
    if isinstance(each, WatermarkInput | EndOfStream) and each.source is not None:
        _source(sources, each.source)
    if isinstance(each, EndOfStream):
        return each
    if isinstance(each, WatermarkInput):
        if not any(stage.needs_time for stage in plan.stages):
            raise CaseError(
                "watermark: nothing in this application uses event time (windows, bettong.Timer,"
                ' ttl_clock="event" do); the log clock moves by clock(...)'
            )
        return each
    if isinstance(each, Reference):
        return _read_reference(plan, each)
    if isinstance(each, tuple) and len(each) == 2 and isinstance(each[0], str):
        messages = each[1] if isinstance(each[1], list) else [each[1]]
        each = ClientFrame(each[0], tuple(messages))
    if not isinstance(each, ClientFrame):
        raise CaseError(
            f"{each!r}: expected ('source', message), ('source', [message, ...]), frame(...), watermark(...),"
            " end_stream(...), clock(...), Reference(...), CRASH, RESTORE, SAVE, RESEND or IDLE"
        )
    _check_messages(_source(sources, each.source), each.messages)
    return each


def _read_reference(plan: Plan, given: Reference) -> Reference:
    """The same with rows as objects."""
    sources = {join: source for stage in plan.stages for join, source in stage.references.items()}
    if given.join not in sources:
        known = ", ".join(map(repr, sources)) or "none"
        raise CaseError(f"unknown join_reference {given.join!r}; the application has {known}")
    return Reference(given.join, read_rows(given.join, sources[given.join], given.table))


def _source(sources: dict[str, Source], name: str) -> Source:
    if name not in sources:
        raise CaseError(f"unknown source {name!r}; the application has {', '.join(map(repr, sources))}")
    return sources[name]


def _check_messages(source: Source, messages: Sequence[Any]) -> None:
    if not messages:
        raise CaseError(f"a frame of source {source.name!r} without messages; give at least one")
    takes = source.schema.made_class
    wanted: tuple[type[Any], ...] = (takes,) if source.decoder is None else (takes, bytes)
    for message in messages:
        if not isinstance(message, wanted):
            names = " or ".join(each.__name__ for each in wanted)
            raise CaseError(
                f"source {source.name!r} takes {names}, not {type(message).__name__}: {message!r}"
            )
    if len({isinstance(message, bytes) for message in messages}) > 1:
        raise CaseError(
            f"a frame of source {source.name!r} holds bytes or messages, not both; split it into two"
        )


def _check_idle(sources: dict[str, Source]) -> None:
    waits = [name for name, source in sources.items() if source.event_time.idle_timeout_ns is None]
    if len(waits) == len(sources):
        raise CaseError(f"IDLE: clients of {', '.join(map(repr, waits))} never fall idle (idle_timeout=None)")


def _time_ns(what: str, at: int | datetime) -> int:
    """Unix nanoseconds."""
    if isinstance(at, datetime):
        if at.tzinfo is None:
            raise CaseError(f"{what}({at!r}): it has no time zone; give it a tzinfo")
        return _duration_ns(at - _EPOCH)
    if type(at) is not int or not 0 <= at <= CLOCK_NS_MAX:
        raise CaseError(f"{what}({at!r}): expected Unix nanoseconds or a datetime with a tzinfo")
    return at


def _duration_ns(duration: timedelta) -> int:
    return duration // timedelta(microseconds=1) * _US_NS
