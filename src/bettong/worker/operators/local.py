"""`Stream.local`: combines messages of one key that are in, or late for, the same windows, before `key_by`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter, length_hint
from typing import Any

import msgpack  # type: ignore[import-untyped]
import numpy as np

from bettong.application.key import fields_of, key_reader
from bettong.application.on_error import STOP
from bettong.application.windows.kinds import Ranges
from bettong.application.windows.partials import Partials
from bettong.frames.columns import Array, Columns
from bettong.frames.key_values import key_bytes
from bettong.user_errors import ANY_ERROR, reason_of
from bettong.worker.batch import Batch
from bettong.worker.calling.results import Failure, Results
from bettong.worker.operators.operator import Operator, OperatorParts, WithoutTime, derived
from bettong.worker.output.dead_letters import DeadLetters
from bettong.worker.progress import FoldProgress
from bettong.worker.windows.partials import PackedAccumulators, window_classes
from bettong.worker.windows.ranges import RangeWindows

# A partial that is larger than its messages is divided until it is not, or has at most the small size; one above the
# large size always is. The input frame held the messages, and the least frame size that can be set holds the small
# size.
_SMALL_BYTES = 8192
_LARGE_BYTES = 65_536


def local_operator(node: Partials, parts: OperatorParts) -> Operator:
    """The operator of `local`."""
    return LocalOperator(node, parts.progress, of_each=parts.needs_each_watermark)


@dataclass(slots=True)
class _Group:
    """Rows of one key, pane and class, in order, and their accumulator. `step`: see `window_classes`."""

    rows: list[int]
    accumulator: Any
    step: int


@dataclass(frozen=True, slots=True)
class _Partial:
    """A group, or a part of it, as it is sent. `row`: the first one, which represents all."""

    row: int
    packed: bytes
    messages: int


class LocalOperator(WithoutTime):
    """See Operator. Nothing is kept from one batch to the next.

    `combined`: how many messages its results combine, since the caller last set this to 0. `of_each`: whether the next
    stage needs the watermark before each message: see `Stage.needs_each_watermark`.
    """

    def __init__(self, node: Partials, progress: FoldProgress, *, of_each: bool) -> None:
        kind = node.plain.windowing.kind
        assert isinstance(kind, Ranges)  # noqa: S101 - no others are combined
        self.name = node.name
        self.combined = 0
        self._node = node
        self._key = node.plain_keyed.key
        self._of_each = of_each
        self._progress = progress
        self._kind = kind
        self._windows = RangeWindows(kind, node.plain.windowing)
        self._aggregation = node.plain.windowing.aggregation
        self._packed = PackedAccumulators(node.plain)

    def on_batch(self, batch: Batch, dead_letters: DeadLetters) -> Batch:
        """See Operator."""
        if callable(self._key):
            batch, keys = self._computed_keys(batch, dead_letters)
        else:
            keys = self._key_fields(batch)
        failures: list[Failure] = []
        found: list[_Partial] = []
        for group in self._groups(batch, keys, failures):
            try:
                found += self._divided(batch, group)
            except ANY_ERROR as error:
                failures += [(row, reason_of(error)) for row in group.rows]
        found.sort(key=attrgetter("row"))
        results = self._results(keys, found, failures)
        self.combined += sum(each.messages for each in found)
        return derived(self.name, batch, results, dead_letters)

    def _key_fields(self, batch: Batch) -> Sequence[Any]:
        assert not callable(self._key)  # noqa: S101 - there are fields
        columns = [batch.columns.values(batch.schema.position(part)) for part in fields_of(self._key)]
        return list(zip(*columns, strict=True)) if columns else [()] * batch.length

    def _computed_keys(self, batch: Batch, dead_letters: DeadLetters) -> tuple[Batch, Sequence[bytes]]:
        """The rows that have a key, and the keys' bytes; the others are failures of `key_by`, as without partials."""
        read, target = key_reader(self._key, batch.schema), self._node.plain_keyed.name
        kept: list[int] = []
        keys: list[bytes] = []
        rows = iter(range(batch.length))
        messages = iter(self._progress.messages(target, batch, rows))
        while True:
            try:
                for row, message in zip(rows, messages, strict=True):
                    key = read(message)
                    key_bytes(key)
                    keys.append(msgpack.packb(key))
                    kept.append(row)
            except ANY_ERROR as error:
                row = batch.length - 1 - length_hint(rows)
                dead_letters.add(target, reason_of(error), batch.source(row), row_of=self.name)
                if dead_letters.stopping is None:
                    continue
            self._progress.enter(self.name)
            return (batch if len(kept) == batch.length else batch.take(np.array(kept, np.int64))), keys

    def _groups(self, batch: Batch, keys: Sequence[Any], failures: list[Failure]) -> list[_Group]:
        """The rows by key, pane and class; those that cannot be added become failures."""
        aggregation, latest_ns = self._aggregation, self._windows.latest_ns
        initial, update = aggregation.initial, aggregation.update
        times = batch.event_times()
        panes, steps = window_classes(self._kind, times, batch.message_watermarks(), of_each=self._of_each)
        is_checked = bool(batch.length) and int(times.max()) > latest_ns
        groups: list[_Group] = []
        last: dict[tuple[Any, int], _Group] = {}
        rows = iter(range(batch.length))
        messages = iter(self._progress.messages(self.name, batch, rows))
        while True:
            try:
                for row, message in zip(rows, messages, strict=True):
                    if is_checked:
                        self._windows.check(int(times[row]))
                    at = (keys[row], panes[row])
                    group = last.get(at)
                    if group is None or group.step != steps[row]:
                        last[at] = _Group([row], update(initial(), message), steps[row])
                        groups.append(last[at])
                    else:
                        group.accumulator = update(group.accumulator, message)
                        group.rows.append(row)
            except ANY_ERROR as error:
                failures.append((batch.length - 1 - length_hint(rows), reason_of(error)))
                if self._node.on_error != STOP:
                    continue
            return groups

    def _divided(self, batch: Batch, group: _Group) -> Sequence[_Partial]:
        """A group as partials that a frame can hold. Raises what the user's functions raise, and UnfitError."""
        packed, count = self._packed.pack(group.accumulator), len(group.rows)
        size = len(packed)
        if size <= _SMALL_BYTES or count == 1 or size <= min(_LARGE_BYTES, _bytes_of(batch, count)):
            return [_Partial(group.rows[0], packed, count)]
        found: list[_Partial] = []
        for rows in np.array_split(np.array(group.rows, np.int64), min(count, 2 * -(-size // _SMALL_BYTES))):
            found += self._divided(batch, _Group(rows.tolist(), self._folded(batch, rows), group.step))
        return found

    def _folded(self, batch: Batch, rows: Array) -> Any:
        accumulator = self._aggregation.initial()
        for message in batch.take(rows).columns:
            accumulator = self._aggregation.update(accumulator, message)
        return accumulator

    def _results(
        self, keys: Sequence[Any], found: Sequence[_Partial], failures: Sequence[Failure]
    ) -> Results:
        first = [keys[each.row] for each in found]
        if callable(self._key):
            of_key = [first]
        else:
            of_key = [[key[index] for key in first] for index in range(len(fields_of(self._key)))]
        own: list[list[Any]] = [[each.packed for each in found], [each.messages for each in found]]
        columns = Columns.of_values(self._node.schema, [*of_key, *own])
        return Results(columns, np.array([each.row for each in found], np.int64), failures)


def _bytes_of(batch: Batch, rows: int) -> int:
    """About how many bytes so many rows take."""
    return batch.columns.size_bytes() * rows // batch.length
