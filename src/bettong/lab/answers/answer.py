"""The expected results of a load: those of the application in memory, over the same messages (`bettong.testing`)."""

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

# Messages of a frame in memory: results do not depend on it, and larger frames are no faster.
_FRAME_MESSAGES = 1_000
# Each stage makes other frames of these, which may have 1 MiB at most.
_FRAME_BYTES = 1 << 18
# After the last message: a partition without messages reports that within 5 s.
_END_OF_STAGE = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class ReferenceInput:
    """An application and all messages that it gets: one part for each source, none of them empty."""

    app: Application
    planned: Plan
    parts: Sequence[LoadPart]
    compiled: bool


def expected_results(reference: ReferenceInput) -> Mapping[str, Sequence[bytes]]:
    """All results, by sink. Raises LabError if the application stops, or there are no results."""
    session = AppSession(reference.app, compiled=reference.compiled)
    results: dict[str, list[bytes]] = {sink.name: [] for sink in reference.planned.sinks}
    for _, sink, found in _encoded(session, reference, frame_messages=_FRAME_MESSAGES):
        results[sink] += found
    outcome = session.outcome
    if outcome.stopped is not None:
        raise LabError(f"the application stops at one of the messages, in memory too: {outcome.stopped}")
    if reference.parts and not any(results.values()):
        dead = outcome.dead_letters
        why = f": {len(dead):,} messages are dead letters, the first for {dead[0].reason}" if dead else ""
        raise LabError(f"these messages lead to no results, so nothing can be measured{why}")
    return {sink: tuple(found) for sink, found in results.items()}


def message_numbers(reference: ReferenceInput) -> Mapping[bytes, Sequence[int]]:
    """By result, the numbers of the messages that led to it, as sent. One by one, which takes ten times as long."""
    session = AppSession(reference.app, compiled=reference.compiled)
    found: defaultdict[bytes, list[int]] = defaultdict(list)
    for number, _, results in _encoded(session, reference, frame_messages=1):
        for each in results:
            found[each].append(number)
    return found


def _encoded(
    session: AppSession, reference: ReferenceInput, *, frame_messages: int
) -> Iterator[tuple[int, str, list[bytes]]]:
    """The results of each sink, with the number of the first message of the frame that led to them."""
    encode = {sink: _encoder(schemas) for sink, schemas in _schemas(reference.planned).items()}
    for number, found in _stepped(session, reference, frame_messages=frame_messages):
        for sink, messages in found.items():
            yield number, sink, encode[sink](messages)


def _stepped(
    session: AppSession, reference: ReferenceInput, *, frame_messages: int
) -> Iterator[tuple[int, dict[str, list[Any]]]]:
    planned, parts, number = reference.planned, reference.parts, 0
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
    """Sets the log clock to now, as in the run; connects all clients before any sends; ends all other sources."""
    fed = {part.source for part in parts}
    others = [end_stream(source.name) for source in planned.sources if source.name not in fed]
    connected = [watermark(0), *others] if _needs_time(planned) and fed else []
    return [clock(at=time.time_ns()), *connected]


def _ending(planned: Plan) -> list[object]:
    """Ends all streams, and closes what is open."""
    return [end_stream(), clock(_END_OF_STAGE * len(planned.stages))] if _needs_time(planned) else []


def _needs_time(planned: Plan) -> bool:
    return any(stage.needs_time for stage in planned.stages)


def _messages(source: Source, part: LoadPart) -> list[Any]:
    """Messages as a client sends them: bytes, or objects."""
    if source.from_ is not None:
        return list(part.columns[VALUE])
    return Columns.of_batch(source.schema, batch_of(source.schema.arrow, dict(part.columns))).messages()


def _message_bytes(source: Source, part: LoadPart) -> int:
    """The size of one message, on average."""
    if source.from_ is not None:
        return 1 + sum(map(len, part.columns[VALUE])) // part.messages
    return 1 + sum(column.nbytes for column in part.columns.values()) // part.messages


def _schemas(planned: Plan) -> dict[str, list[Schema]]:
    """The schemas of messages, by sink."""
    found: defaultdict[str, list[Schema]] = defaultdict(list)
    for stage in planned.stages:
        for output in stage.outputs:
            if isinstance(output.target, Sink) and output.schema not in found[output.target.name]:
                found[output.target.name].append(output.schema)
    return found


def _encoder(schemas: Sequence[Schema]) -> Callable[[list[Any]], list[bytes]]:
    """Encodes messages as subscribers get them: bytes of an encoder as they are, others as JSON."""
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
