"""Makes one batch per partition of the records of sinks, by the delivery rule. Pure."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from functools import partial
from itertools import accumulate
from typing import Generic

from bettong.delivery import Gap
from bettong.frames.frame import Frame
from bettong.worker.output.framing import OutputRecord
from bettong_receiver.delivery.connector import FrameMessages, Message, MovingPosition, Refused, SinkBatch
from bettong_receiver.delivery.refusals import Refusals
from bettong_receiver.delivery.route import SinkInput, SinkRecord
from bettong_receiver.errors import PositionError
from bettong_receiver.positions import PositionKey
from bettong_receiver.positions import decode as decode_position
from bettong_receiver.positions import encode as encode_position
from bettong_receiver.progress import DeliveryProgress, SinkPartition

# Stands for the stored offset where the position must be stored again.
_STALE = -1


class SinkBatcher(Generic[Message]):
    """The progress of one connector in each partition, and the batches that it gets next."""

    def __init__(
        self,
        application: str,
        inputs: Iterable[SinkInput[Message]],
        *,
        beginnings: Mapping[SinkPartition, int],
        stored: Mapping[SinkPartition, bytes | None],
    ) -> None:
        """`beginnings`: the first offset of each log now. Raises PositionError for a damaged or mismatched position."""
        self._refusals = {each.sink: each.refusals for each in inputs}
        self._batches: dict[SinkPartition, SinkBatch[Message]] = {}
        self._dead_letters: list[OutputRecord] = []
        self._written: list[tuple[SinkPartition, int]] = []
        self._moving = {
            key: _restored(PositionKey(application, *key), stored.get(key), beginning)
            for key, beginning in beginnings.items()
        }
        self._stored = self.offsets(self._moving)
        self._last = {key: each.progress.outbox.last for key, each in self._moving.items()}
        self._to_resume = {
            (key, offset): reasons
            for key, each in self._moving.items()
            for offset, reasons in each.progress.outbox.pending.items()
        }

    def offsets(self, keys: Iterable[SinkPartition]) -> dict[SinkPartition, int]:
        """The next offset of each of these partitions."""
        return {key: self._moving[key].progress.offset for key in keys}

    @property
    def progress(self) -> dict[SinkPartition, DeliveryProgress]:
        """The live progress of each partition."""
        return {key: each.progress for key, each in self._moving.items()}

    def gaps(self, keys: Iterable[SinkPartition]) -> dict[SinkPartition, Gap | None]:
        """The oldest gap in each of these partitions; None where there is none."""
        return {key: self._moving[key].progress.table.gap for key in keys}

    def starts(self) -> dict[SinkPartition, int]:
        """The offset from which to read each partition: the first with pending dead letters, else the next one."""
        return {
            key: min([progress.offset, *progress.outbox.pending]) for key, progress in self.progress.items()
        }

    def resume_dead_letters(self, records: Iterable[SinkRecord[Message]]) -> None:
        """Makes the dead letters of these records that an earlier delivery left pending: see `dead_letters`."""
        if not self._to_resume:
            return
        for record in records:
            reasons = self._to_resume.pop((record.key, record.offset), None)
            if reasons is not None and record.frame is not None:
                self._append_dead_letters(record.key, record.offset, record.frame, reasons)

    def dead_letters(self) -> list[OutputRecord]:
        """The records to append to the log, in order. Call `appended` afterwards."""
        return self._dead_letters

    def appended(self) -> None:
        """Call it once the dead letters are durable: positions stored from now on no longer name them."""
        for key, offset in self._written:
            outbox = self._moving[key].progress.outbox
            outbox.last = self._last[key]
            del outbox.pending[offset]
            self._stored[key] = _STALE
        self._dead_letters, self._written = [], []

    def fold(self, records: Iterable[SinkRecord[Message]]) -> list[SinkBatch[Message]]:
        """Advances past these records; returns the batches of the partitions that have messages to deliver."""
        frames: dict[SinkPartition, list[FrameMessages[Message]]] = {}
        moving = self._moving
        for record in records:
            key, frame = record.key, record.frame
            progress = moving[key].progress
            if not progress.advance(record.offset, frame) or frame is None:
                continue
            content = record.content()
            if content is None:
                progress.count_unreadable()
                continue
            progress.count_delivered(len(content.messages))
            if (found := frames.get(key)) is None:
                found = frames[key] = []
            found.append(content)
        self._batches = {key: self._batch(key, found) for key, found in frames.items()}
        return list(self._batches.values())

    def moved_batches(self) -> list[SinkBatch[Message]]:
        """Batches without messages, for the partitions whose stored position is behind their progress."""
        return [
            self._batch(key, [])
            for key, each in self._moving.items()
            if each.progress.offset != self._stored[key]
        ]

    def delivered(self, batches: Iterable[SinkBatch[Message]], refused: Refused) -> None:
        """Call it once the connector has stored these batches except `refused`, which may become `dead_letters`."""
        self._stored |= {batch.key: batch.moving.progress.offset for batch in batches}
        for key, reasons in refused.items():
            progress = self._progress_after_refusal(key, reasons)
            self._moving[key].progress = progress
            frames = {each.offset: each.frame for each in self._batches[key].frames}
            for offset, pending in progress.outbox.pending.items():
                self._append_dead_letters(key, offset, frames[offset], pending)
        self._batches = {}  # frees their messages before the next round is read

    def _batch(self, key: SinkPartition, frames: list[FrameMessages[Message]]) -> SinkBatch[Message]:
        refusals = self._refusals[key.sink]
        refusing = None if refusals is None or refusals.stops else partial(self._position_refusing, key)
        return SinkBatch(key, frames, self._moving[key], refusing)

    def _position_refusing(self, key: SinkPartition, refused: Mapping[int, str]) -> bytes:
        return encode_position(self._moving[key].key, self._progress_after_refusal(key, refused))

    def _progress_after_refusal(self, key: SinkPartition, refused: Mapping[int, str]) -> DeliveryProgress:
        """The progress of a partition when these messages of its batch are refused."""
        found: dict[int, dict[int, str]] = {}
        frames = self._batches[key].frames
        starts = list(accumulate((len(each.messages) for each in frames), initial=0))
        for index, reason in refused.items():
            number = bisect_right(starts, index) - 1
            found.setdefault(frames[number].offset, {})[index - starts[number]] = reason
        return self._refusals_of(key).with_refusals(self._moving[key].progress, found)

    def _append_dead_letters(
        self, key: SinkPartition, offset: int, frame: Frame, reasons: Mapping[int, str]
    ) -> None:
        records, self._last[key] = self._refusals_of(key).dead_letters(
            key.partition, offset, frame, reasons, self._last[key]
        )
        self._dead_letters += records
        self._written.append((key, offset))

    def _refusals_of(self, key: SinkPartition) -> Refusals:
        refusals = self._refusals[key.sink]
        if refusals is None:
            raise AssertionError(f"the connector of sink {key.sink!r} refuses nothing")
        return refusals


def _restored(key: PositionKey, stored: bytes | None, beginning: int) -> MovingPosition:
    if stored is None:
        return MovingPosition(key, DeliveryProgress.fresh(beginning))
    try:
        return MovingPosition(key, decode_position(key, stored)[0])
    except PositionError as error:
        raise PositionError(
            f"the position stored for partition {key.partition}: {error}; restore it from a backup, or remove data"
            " and position together: results are rewritten from the oldest record in the log"
        ) from None
