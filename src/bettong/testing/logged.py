"""Recorded logs: records as stored in Kafka, and the versions of reference tables that they name.

`read_log` reads them from a file, which `bettong log` writes: a line of JSON each, the frame in base64. A version of a
table is a record too, of a topic name that is impossible in Kafka:

    {application}.references/{series}    partition 0, the version's number as its offset, the table's bytes
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from bettong.application.plan import Plan
from bettong.errors import CaseError, FrameError
from bettong.frames.frame import Frame, decode
from bettong.identifiers import ReferenceVersion
from bettong.topics import stage_topic
from bettong.worker.references.table import fingerprint_of
from bettong.worker.references.versions import StoredVersions

# Kafka's topic names cannot contain a slash.
_TABLES = ".references/"


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
    """A record from a file."""

    topic: str
    partition: int
    offset: int
    value: bytes


# From the first time on, and before the second.
Span = tuple[datetime | None, datetime | None]


def read_log(path: Path | str) -> list[LoggedRecord]:
    """The records of a file that `write_log` wrote. Raises CaseError for an invalid line."""
    found = []
    for number, line in enumerate(Path(path).read_text().splitlines(), 1):
        try:
            fields = json.loads(line)
            value = base64.b64decode(fields["value"], validate=True)
            found.append(LoggedRecord(fields["topic"], fields["partition"], fields["offset"], value))
        except (ValueError, TypeError, KeyError) as error:
            raise CaseError(
                f"{path}, line {number}: not a record of a log ({error}); `bettong log` writes such files"
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


def with_tables(
    planned: Plan, log: Iterable[Recorded], span: Span, tables: StoredVersions
) -> Iterator[Recorded]:
    """A log, followed by the versions of reference tables that messages of a span see.

    Of stages after a `key_by` only the records that name versions are kept. Raises StoreError.
    """
    named = _NamedVersions(planned)
    sources = {stage_topic(planned.application, planned.stage_of(each.name).name) for each in planned.sources}
    for record in log:
        frame = _frame_of(record)
        if frame is not None and frame.reference is not None:
            named.note(record, frame.reference, frame, span)
            yield record
        elif record.topic in sources:
            yield record
    for version in named.needed(tables):
        data = tables.load(version)
        if data is not None:
            yield table_record(planned.application, version, data)


def is_needed(record: Recorded, span: Span) -> bool:
    """Whether `case_from` needs a record: received in that span, or a table, or a record that names one before its end.

    Records that are not frames are never needed.
    """
    if _TABLES in record.topic:
        return True
    frame = _frame_of(record)
    if frame is None:
        return False
    return is_before_end(frame, span) if frame.reference is not None else is_within(frame, span)


class _NamedVersions:
    """The versions that the records of a log name, and which of them a span of it needs."""

    def __init__(self, planned: Plan) -> None:
        self._joins = {
            source.series(join) for stage in planned.stages for join, source in stage.references.items()
        }
        self._within: set[ReferenceVersion] = set()
        self._before: dict[tuple[str, int, str], ReferenceVersion] = {}

    def note(self, record: Recorded, version: ReferenceVersion, frame: Frame, span: Span) -> None:
        """Notes that a record names a version."""
        if version.series not in self._joins or not is_before_end(frame, span):
            return
        if is_within(frame, span):
            self._within.add(version)
        else:
            self._before[record.topic, record.partition, version.series] = version

    def needed(self, tables: StoredVersions) -> list[ReferenceVersion]:
        """The versions in force at the beginning of the span, and those named in it."""
        found = self._within | set(self._before.values())
        for series in self._joins - {each.series for each in self._before.values()}:
            found.update(tables.versions(series)[:1])
        return sorted(found)


def table_record(application: str, version: ReferenceVersion, data: bytes) -> LoggedRecord:
    """A version of a reference table, as a record of a log."""
    return LoggedRecord(_table_topic(application, version.series), 0, version.number, data)


def tables_in(planned: Plan, log: Iterable[Recorded]) -> dict[ReferenceVersion, bytes]:
    """The versions of an application's tables that a log holds."""
    topics = {
        _table_topic(planned.application, series): series
        for stage in planned.stages
        for join, source in stage.references.items()
        for series in (source.series(join),)
    }
    return {
        ReferenceVersion(topics[each.topic], each.offset, fingerprint_of(each.value)): each.value
        for each in log
        if each.topic in topics
    }


def is_within(frame: Frame, span: Span) -> bool:
    """Whether a frame was received in a span."""
    first = span[0]
    return (first is None or _taken_in_at(frame) >= first) and is_before_end(frame, span)


def is_before_end(frame: Frame, span: Span) -> bool:
    """Whether a frame was received before the end of a span."""
    until = span[1]
    return until is None or _taken_in_at(frame) < until


def _taken_in_at(frame: Frame) -> datetime:
    return datetime.fromtimestamp(frame.ingest_ns / 1e9, UTC)


def _table_topic(application: str, series: str) -> str:
    return f"{application}{_TABLES}{series}"


def _frame_of(record: Recorded) -> Frame | None:
    try:
        return decode(record.value)
    except FrameError:
        return None
