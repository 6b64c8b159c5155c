"""Cases out of recorded logs: what a stage really read, as inputs for a test.

A recorded log is the records of an application's topics as they lie in Kafka: topic, partition, offset and the frame's
bytes. `bettong.edges.kafka_log.Record` is one; `read_log` reads those of a file, which `bettong log` writes: a line of
JSON each, the frame in base64. Only topics of stages that sources lead to matter here: what stages give each other is
computed again.
"""

from __future__ import annotations

import base64
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from heapq import merge
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from bettong.application.application import Application
from bettong.application.plan import Plan, plan
from bettong.errors import CaseError, FrameError
from bettong.frames.columns import Columns
from bettong.frames.frame import Frame, FrameKind, decode
from bettong.identifiers import Origin
from bettong.schema.key_types import KeyValue
from bettong.testing.inputs import ClientFrame, ClockStep, Step, WatermarkInput, clock
from bettong.topics import stage_topic
from bettong.worker.batch import FrameKeys


class Recorded(Protocol):
    """A record of a log."""

    @property
    def topic(self) -> str:
        """The topic's name."""

    @property
    def partition(self) -> int:
        """Of the topic."""

    @property
    def offset(self) -> int:
        """Of the record in its partition."""

    @property
    def value(self) -> bytes:
        """A frame."""


@dataclass(frozen=True, slots=True)
class LoggedRecord:
    """A record out of a file."""

    topic: str
    partition: int
    offset: int
    value: bytes


Span = tuple[datetime | None, datetime | None]


def case_from(
    app: Application, log: Iterable[Recorded], *, key: KeyValue | None = None, span: Span = (None, None)
) -> list[Step]:
    """A recorded log as inputs of `run` and `check`: the messages in their frames, the clock, and watermarks.

    `key`: only messages of that key, as the sources have it. `span`: only what was taken in from one time on, and
    before another. Watermarks that left-out messages had brought stay, so what was late is late again. States begin
    empty: let the span begin where the key does, or does not depend on what came before. What senders refused has no
    message, and is left out.
    """
    planned = plan(app)
    reader = _Reader(planned, key)
    steps: list[Step] = []
    now_ns = 0
    for frame in _frames(planned, log):
        found = reader.steps(frame, wanted=_is_taken_in_within(frame, span))
        if found:
            if not steps:
                steps.append(clock(at=frame.ingest_ns))
            elif frame.ingest_ns > now_ns:
                steps.append(ClockStep(step_ns=frame.ingest_ns - now_ns))
            now_ns = max(now_ns, frame.ingest_ns)
            steps += found
    if not any(isinstance(step, ClientFrame) for step in steps):
        raise CaseError(f"the log holds no message of key {key!r} in that span")
    return steps


def read_log(path: Path | str) -> list[LoggedRecord]:
    """The records of a file that `write_log` wrote. Raises CaseError for a line that is none."""
    found = []
    for number, line in enumerate(Path(path).read_text().splitlines(), 1):
        try:
            fields = json.loads(line)
            value = base64.b64decode(fields["value"], validate=True)
            found.append(LoggedRecord(fields["topic"], fields["partition"], fields["offset"], value))
        except (ValueError, TypeError, KeyError) as error:
            raise CaseError(
                f"{path}, line {number}: no record of a log ({error}); `bettong log` writes them"
            ) from None
    return found


def write_log(log: Iterable[Recorded]) -> Iterator[str]:
    """The lines of a file for `read_log`, each with its end."""
    for record in log:
        fields = {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "value": base64.b64encode(record.value).decode(),
        }
        yield json.dumps(fields) + "\n"


def is_within(value: bytes, span: Span) -> bool:
    """Whether a record was taken in then. What is no frame was at no time."""
    try:
        return _is_taken_in_within(decode(value), span)
    except FrameError:
        return False


class _Reader:
    """Turns frames of sources into steps, and knows how far each client had brought event time."""

    def __init__(self, planned: Plan, key: KeyValue | None) -> None:
        self._plan = planned
        self._key = key
        self._watermarks: dict[Origin, int] = {}
        self._emitted_ns: defaultdict[Origin, int] = defaultdict(int)
        self._clients: set[Origin] = set()

    def steps(self, frame: Frame, *, wanted: bool) -> list[Step]:
        """What a frame leads to; its watermark is noted in any case."""
        found: list[Step] = []
        if wanted and frame.columns is not None:
            messages = self._messages(frame)
            if messages:
                found += self._with_watermarks(frame, messages)
        self._watermarks[frame.origin] = max(self._watermarks.get(frame.origin, 0), frame.watermark_ns)
        if wanted:
            found += [
                step for origin in self._clients for step in self._watermark(origin, self._watermarks[origin])
            ]
        return found

    def _messages(self, frame: Frame) -> list[tuple[int, Any]]:
        """Those of the key, each with its index."""
        stage = self._plan.stage_of(frame.stream)
        entry = next(each for each in stage.inputs if each.stream == frame.stream)
        if frame.schema != entry.schema.fingerprint:
            raise CaseError(
                f"frame {frame.sequence} of {frame.origin!r}: its schema is not that of {entry.schema.name}: another"
                " version of the application recorded it"
            )
        columns = Columns.of_payload(entry.schema, frame.columns or b"")
        messages = list(enumerate(columns))
        if self._key is None:
            return messages
        if entry.key is None:
            raise CaseError(f"source {frame.stream!r} has no key; leave out key=")
        keys = FrameKeys(entry, columns).values()
        return [each for each, key in zip(messages, keys, strict=True) if key == self._key]

    def _with_watermarks(self, frame: Frame, messages: list[tuple[int, Any]]) -> list[Step]:
        """A frame; or one a message, with the watermarks between them, where a message of it was late."""
        origin = frame.origin
        found = self._watermark(origin, self._watermarks.get(origin, 0)) if origin in self._clients else []
        self._clients.add(origin)
        client = origin.partition("/")[2]
        if not frame.message_watermarks:
            return [*found, ClientFrame(frame.stream, tuple(each for _, each in messages), client)]
        own: list[int] = np.frombuffer(frame.message_watermarks, "<i8").tolist()
        for index, message in messages:
            found += self._watermark(origin, own[index])
            found.append(ClientFrame(frame.stream, (message,), client))
        return found

    def _watermark(self, origin: Origin, at_ns: int) -> list[Step]:
        """A step that sets the watermark; none where the origin has come that far already."""
        if at_ns <= self._emitted_ns[origin]:
            return []
        self._emitted_ns[origin] = at_ns
        source, _, client = origin.partition("/")
        return [WatermarkInput(at_ns, source, client)]


def _frames(planned: Plan, log: Iterable[Recorded]) -> Iterator[Frame]:
    """The frames of sources without repetitions, in the order in which they were taken in."""
    sources = {source.name for source in planned.sources}
    topics = {stage_topic(planned.application, stage.name) for stage in planned.stages}
    partitions: defaultdict[tuple[str, int], list[Recorded]] = defaultdict(list)
    for record in log:
        if record.topic in topics:
            partitions[record.topic, record.partition].append(record)
    parts = []
    for records in partitions.values():
        highest: dict[Origin, int] = {}
        frames: list[Frame] = []
        for record in sorted(records, key=lambda each: each.offset):
            try:
                frame = decode(record.value)
            except FrameError:
                continue  # a dead letter in production, and nobody's message
            is_data = frame.kind is FrameKind.DATA and frame.stream in sources
            if is_data and frame.sequence > highest.get(frame.origin, 0):
                highest[frame.origin] = frame.sequence
                frames.append(frame)
        parts.append(frames)
    return merge(*parts, key=lambda frame: frame.ingest_ns)


def _is_taken_in_within(frame: Frame, span: Span) -> bool:
    at = datetime.fromtimestamp(frame.ingest_ns / 1e9, UTC)
    first, until = span
    return (first is None or at >= first) and (until is None or at < until)
