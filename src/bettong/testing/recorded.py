"""Cases from recorded logs: the records that a stage has read, as inputs for a test.

A recorded log has the records of an application's topics as stored in Kafka: topic, partition, offset and the frame's
bytes. `bettong.edges.kafka_log.Record` is one; for those of a file see `logged`. The records between stages are
computed again: of their topics only records matter that name a version of a reference table.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from heapq import merge
from typing import Any

import numpy as np

from bettong.application.application import Application
from bettong.application.plan import Plan, plan
from bettong.errors import CaseError, FrameError, SchemaError
from bettong.frames.columns import Columns
from bettong.frames.frame import Frame, FrameKind, decode
from bettong.identifiers import Origin, ReferenceVersion
from bettong.schema.key_types import KeyValue
from bettong.testing.inputs import (
    ClientFrame,
    ClockStep,
    EndOfStream,
    Reference,
    Step,
    WatermarkInput,
    clock,
)
from bettong.testing.logged import Recorded, Span, is_before_end, is_within, tables_in
from bettong.topics import stage_topic
from bettong.worker.batch import FrameKeys
from bettong.worker.generations import is_outdated
from bettong.worker.references.table import ReferenceTable


def case_from(
    app: Application, log: Iterable[Recorded], *, key: KeyValue | None = None, span: Span = (None, None)
) -> list[Step]:
    """A recorded log as inputs of `run` and `check`: the messages in their frames, the clock, watermarks, the ends of
    clients' streams, and the versions of reference tables.

    `key`: only messages of that key, as the sources have it. `span`: only messages received from the first time on,
    and before the second. Watermarks of left-out messages stay, so late messages are late again. States begin empty:
    let the span begin where the key does, or where it does not depend on earlier messages. Messages that senders
    refused are left out. Partitions see a new version of a table one after the other, within milliseconds; here all
    see it where the first one did.

    Raises CaseError where there is no such message, or a table that messages saw is missing.
    """
    planned = plan(app)
    records = list(log)
    reader, tables = _Reader(planned, key), _Tables(planned, records)
    steps: list[Step] = []
    now_ns = 0
    for frame in _without_early_ends(_frames(planned, records)):
        if frame.reference is not None:
            switches = is_before_end(frame, span) and tables.switch(frame.reference)
            found = [tables.step(frame.reference.series)] if switches and steps else []
        else:
            found = reader.steps(frame, wanted=is_within(frame, span))
        if found:
            if not steps:
                steps += [*tables.now(), clock(at=frame.ingest_ns)]
            elif frame.ingest_ns > now_ns:
                steps.append(ClockStep(step_ns=frame.ingest_ns - now_ns))
            now_ns = max(now_ns, frame.ingest_ns)
            steps += found
    if not any(isinstance(step, ClientFrame) for step in steps):
        what = f" of key {key!r}" if key is not None else ""
        when = " in that span" if any(each is not None for each in span) else ""
        raise CaseError(f"the log holds no message{what} for a source of {planned.application!r}{when}")
    return steps


class _Tables:
    """The reference tables of an application, as the log names them."""

    def __init__(self, planned: Plan, log: Iterable[Recorded]) -> None:
        self._joins = {
            source.series(join): (join, source)
            for stage in planned.stages
            for join, source in stage.references.items()
        }
        self._data = tables_in(planned, log)
        # Before any record names one, messages see the lowest stored version: see `worker.references.versions`.
        self._versions = {
            series: min(each for each in self._data if each.series == series)
            for series in {each.series for each in self._data}
        }

    def now(self) -> list[Step]:
        """The versions that messages see now."""
        return list(map(self.step, self._joins))

    def switch(self, version: ReferenceVersion) -> bool:
        """Notes that a record names a version; returns whether messages see another one from here on."""
        known = self._versions.get(version.series)
        if version.series not in self._joins or (known is not None and version <= known):
            return False
        self._versions[version.series] = version
        return True

    def step(self, series: str) -> Step:
        """The version of a series that messages see now, as an input. Raises CaseError where the log has none."""
        join, source = self._joins[series]
        version = self._versions.get(series)
        data = self._data.get(version) if version is not None else None
        if data is None:
            what = f"version {version.number} of the table" if version is not None else "table"
            raise CaseError(
                f"the log holds no {what} of join_reference {join!r}; `bettong log` writes it, too"
            )
        try:
            return Reference(join, ReferenceTable.decode(source, data).columns.messages())
        except SchemaError as error:
            raise CaseError(f"the table of join_reference {join!r}: {error}") from None


class _Reader:
    """Turns frames of sources into steps, and tracks the watermark of each client."""

    def __init__(self, planned: Plan, key: KeyValue | None) -> None:
        self._plan = planned
        self._key = key
        self._watermarks: dict[Origin, int] = {}
        self._emitted_ns: defaultdict[Origin, int] = defaultdict(int)
        self._clients: set[Origin] = set()

    def steps(self, frame: Frame, *, wanted: bool) -> list[Step]:
        """The steps of a frame; its watermark is noted in any case."""
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
            if frame.kind is FrameKind.END:
                found += self._end(frame)
        return found

    def _end(self, frame: Frame) -> list[Step]:
        """A step where a client of the case has finished; none without event time, where it has no effect."""
        if frame.origin not in self._clients or not self._plan.stage_of(frame.stream).needs_time:
            return []
        self._clients.remove(frame.origin)
        return [EndOfStream(frame.stream, frame.origin.partition("/")[2])]

    def _messages(self, frame: Frame) -> list[tuple[int, Any]]:
        """The messages of the key, each with its index."""
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
        """A frame; or, where a message of it was late, one per message with the watermarks between them."""
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
        """A step that sets the watermark; none where the origin's is as late already."""
        if at_ns <= self._emitted_ns[origin]:
            return []
        self._emitted_ns[origin] = at_ns
        source, _, client = origin.partition("/")
        return [WatermarkInput(at_ns, source, client)]


def _frames(planned: Plan, log: Iterable[Recorded]) -> list[Frame]:
    """The frames of sources without duplicates, and those that name tables, in the order of their ingest times."""
    topics = {stage_topic(planned.application, stage.name) for stage in planned.stages}
    sources = {source.name for source in planned.sources}
    logs: defaultdict[str, defaultdict[int, list[Recorded]]] = defaultdict(lambda: defaultdict(list))
    for record in log:
        if record.topic in topics:
            logs[record.topic][record.partition].append(record)
    parts = [
        frames
        for partitions in logs.values()
        for frames in _unrepeated([_readable(records) for records in partitions.values()], sources)
    ]
    return list(merge(*parts, key=lambda frame: frame.ingest_ns))


def _readable(records: Iterable[Recorded]) -> list[Frame]:
    """The frames of a partition."""
    frames = []
    for record in sorted(records, key=lambda each: each.offset):
        with suppress(FrameError):  # a dead letter in production, not a message
            frames.append(decode(record.value))
    return frames


def _unrepeated(logs: Sequence[Iterable[Frame]], sources: Collection[str]) -> list[list[Frame]]:
    """The frames that each partition of a stage took from sources, and those that name tables.

    After a repartitioning, frames that one partition had taken before count for all of them, as in the delivery tables
    that they resumed with.
    """
    taken: list[list[Frame]] = [[] for _ in logs]
    known: dict[Origin, int] = {}
    by_generation = [_by_generation(frames) for frames in logs]
    for generation in sorted(set().union(*by_generation)):
        tables = []
        for of_partition, found in zip(by_generation, taken, strict=True):
            tables.append(highest := dict(known))
            for frame in of_partition.get(generation, ()):
                if is_outdated(frame, generation):
                    continue
                is_of_source = frame.stream in sources
                if (
                    frame.kind is FrameKind.DATA
                    and is_of_source
                    and frame.sequence > highest.get(frame.origin, 0)
                ):
                    highest[frame.origin] = frame.sequence
                    found.append(frame)
                elif frame.kind is FrameKind.REFERENCE or (frame.kind is FrameKind.END and is_of_source):
                    found.append(frame)
        for origin, sequence in (each for table in tables for each in table.items()):
            known[origin] = max(known.get(origin, 0), sequence)
    return taken


def _by_generation(frames: Iterable[Frame]) -> dict[int, list[Frame]]:
    """The frames of a partition's log by generation; each mark begins another one."""
    found: defaultdict[int, list[Frame]] = defaultdict(list)
    generation = 0
    for frame in frames:
        if frame.repartition is not None:
            generation = max(generation, frame.repartition.generation)
        else:
            found[generation].append(frame)
    return found


def _without_early_ends(frames: list[Frame]) -> list[Frame]:
    """The frames with only the last of each origin's ENDs, one per partition, unless frames of the origin follow."""
    last = {
        frame.origin: index
        for index, frame in enumerate(frames)
        if frame.kind in (FrameKind.DATA, FrameKind.END)
    }
    return [
        frame
        for index, frame in enumerate(frames)
        if frame.kind is not FrameKind.END or last[frame.origin] == index
    ]
