"""The right answer to a load: what the application puts out in memory, over the same messages (`bettong.testing`)."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from bettong.application.application import Application
from bettong.application.nodes.sink import Sink
from bettong.application.nodes.source import Source
from bettong.application.plan import Plan
from bettong.errors import LabError
from bettong.frames.columns import Columns
from bettong.frames.text import json_line_of_values
from bettong.lab.load import VALUE, LoadPart, Pace, due_frames
from bettong.schema.schema import Schema
from bettong.schema.tables import batch_of
from bettong.testing import AppSession, clock, end_stream, frame, watermark

# Of its own frames: results do not depend on them, and larger ones are no faster.
_FRAME_MESSAGES = 1_000
# Each stage makes others of them, which may have 1 MiB.
_FRAME_BYTES = 1 << 18
# After the last message: a partition that nobody has sent anything says so within 5 s.
_END_OF_STAGE = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class Question:
    """An application, and all messages that it gets: a part a source, each with messages."""

    app: Application
    planned: Plan
    parts: Sequence[LoadPart]
    compiled: bool


def answer(question: Question) -> Mapping[str, Sequence[bytes]]:
    """By sink, all results. Raises LabError where the application stands still, or nothing comes out."""
    session = AppSession(question.app, compiled=question.compiled)
    results: dict[str, list[bytes]] = {sink.name: [] for sink in question.planned.sinks}
    for _, sink, found in _encoded(session, question, frame_messages=_FRAME_MESSAGES):
        results[sink] += found
    outcome = session.outcome
    if outcome.stopped is not None:
        raise LabError(f"the application stands still, in memory too: {outcome.stopped}")
    if question.parts and not any(results.values()):
        dead = outcome.dead_letters
        why = f": {len(dead):,} messages are dead letters, the first for {dead[0].reason}" if dead else ""
        raise LabError(f"nothing comes out of these messages, so nothing can be measured{why}")
    return {sink: tuple(found) for sink, found in results.items()}


def numbers(question: Question) -> Mapping[bytes, Sequence[int]]:
    """By result, of which messages it is, counted as they are sent. Takes ten times as long, message by message."""
    session = AppSession(question.app, compiled=question.compiled)
    found: defaultdict[bytes, list[int]] = defaultdict(list)
    for number, _, results in _encoded(session, question, frame_messages=1):
        for each in results:
            found[each].append(number)
    return found


def _encoded(
    session: AppSession, question: Question, *, frame_messages: int
) -> Iterator[tuple[int, str, list[bytes]]]:
    """What each sink gets, with the number of the first message that led to it."""
    encode = {sink: _encoder(schemas) for sink, schemas in _schemas(question.planned).items()}
    for number, found in _stepped(session, question, frame_messages=frame_messages):
        for sink, messages in found.items():
            yield number, sink, encode[sink](messages)


def _stepped(
    session: AppSession, question: Question, *, frame_messages: int
) -> Iterator[tuple[int, dict[str, list[Any]]]]:
    planned, parts, number = question.planned, question.parts, 0
    sources = {source.name: source for source in planned.sources}
    yield 0, session.step(*_opening(planned, parts))
    largest = max((_message_bytes(sources[part.source], part) for part in parts), default=1)
    fitting = max(1, min(frame_messages, _FRAME_BYTES // largest))
    for each in due_frames(iter([parts]), fitting, Pace([])):
        messages = _messages(sources[each.source], each.part)
        yield number, session.step(frame(each.source, *messages))
        number += len(messages)
    if parts:
        yield number - 1, session.step(*_ending(planned))


def _opening(planned: Plan, parts: Sequence[LoadPart]) -> list[object]:
    """The log clock is now, as in the run; all clients are there before any sends, and nobody else."""
    fed = {part.source for part in parts}
    others = [end_stream(source.name) for source in planned.sources if source.name not in fed]
    connected = [watermark(0), *others] if _needs_time(planned) and fed else []
    return [clock(at=time.time_ns()), *connected]


def _ending(planned: Plan) -> list[object]:
    """Clients go, and what is open closes."""
    return [end_stream(), clock(_END_OF_STAGE * len(planned.stages))] if _needs_time(planned) else []


def _needs_time(planned: Plan) -> bool:
    return any(stage.needs_time for stage in planned.stages)


def _messages(source: Source, part: LoadPart) -> list[Any]:
    """As a client's: bytes, or objects."""
    if source.from_ is not None:
        return list(part.columns[VALUE])
    return Columns.of_batch(source.schema, batch_of(source.schema.arrow, dict(part.columns))).messages()


def _message_bytes(source: Source, part: LoadPart) -> int:
    """Of one message, on average."""
    if source.from_ is not None:
        return 1 + sum(map(len, part.columns[VALUE])) // part.messages
    return 1 + sum(column.nbytes for column in part.columns.values()) // part.messages


def _schemas(planned: Plan) -> dict[str, list[Schema]]:
    """By sink, of its messages."""
    found: defaultdict[str, list[Schema]] = defaultdict(list)
    for stage in planned.stages:
        for output in stage.outputs:
            if isinstance(output.target, Sink) and output.schema not in found[output.target.name]:
                found[output.target.name].append(output.schema)
    return found


def _encoder(schemas: Sequence[Schema]) -> Callable[[list[Any]], list[bytes]]:
    """Messages as subscribers get them: what an encoder made as it is, else JSON."""
    by_fields = {frozenset(field.name for field in each.fields): each for each in schemas}

    def schema_of_message(message: Any) -> Schema:
        if isinstance(message, dict):
            return by_fields[frozenset(message)]
        return next(each for each in schemas if isinstance(message, each.made_class))

    def encode(messages: list[Any]) -> list[bytes]:
        if messages and isinstance(messages[0], bytes):
            return messages
        if len(schemas) == 1:
            rows = zip(*schemas[0].field_values(messages), strict=True)
            return [json_line_of_values(schemas[0], row) for row in rows]
        with_schemas = [(schema_of_message(each), each) for each in messages]
        return [
            json_line_of_values(schema, [values[0] for values in schema.field_values([each])])
            for schema, each in with_schemas
        ]

    return encode
