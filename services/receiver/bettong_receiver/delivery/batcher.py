"""Records of sinks' topics in, one batch a partition out, by the delivery rule. Pure."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Generic

from bettong.edges.kafka_log import Record
from bettong.errors import FrameError
from bettong.frames.frame import Frame, decode
from bettong.worker.output.framing import OutputRecord
from bettong_receiver.connectors.connector import FrameMessages, Message, Refused, SinkBatch
from bettong_receiver.delivery.refusals import Refusals
from bettong_receiver.errors import PositionError
from bettong_receiver.formats import frame_of
from bettong_receiver.positions import Place
from bettong_receiver.positions import decode as decode_position
from bettong_receiver.positions import encode as encode_position
from bettong_receiver.progress import Progress, SinkPartition

# As the stored offset of a position that should be stored again.
_STALE = -1


@dataclass(frozen=True, slots=True)
class SinkInput(Generic[Message]):
    """One sink as a connector gets it.

    `read` raises FrameError for a frame that is not of the sink. `refusals` is None where the connector refuses
    nothing.
    """

    sink: str
    topic: str
    read: Callable[[Frame], Sequence[Message]]
    refusals: Refusals | None = None


class Batcher(Generic[Message]):
    """How far one connector is in each partition, and what it gets next."""

    def __init__(
        self,
        application: str,
        inputs: Iterable[SinkInput[Message]],
        *,
        beginnings: Mapping[SinkPartition, int],
        stored: Mapping[SinkPartition, bytes | None],
    ) -> None:
        """`beginnings`: where the logs begin now. Raises PositionError for a stored position that cannot be trusted."""
        self._inputs = {each.sink: each for each in inputs}
        self._sinks = {each.topic: each.sink for each in self._inputs.values()}
        self._batches: dict[SinkPartition, SinkBatch[Message]] = {}
        self._letters: list[OutputRecord] = []
        self._written: list[tuple[SinkPartition, int]] = []
        self._places = {key: Place(application, *key) for key in beginnings}
        self.progress = {
            key: self._restored(key, stored.get(key), beginning) for key, beginning in beginnings.items()
        }
        self._stored = {key: progress.offset for key, progress in self.progress.items()}
        self._last = {key: progress.outbox.last for key, progress in self.progress.items()}

    def key_of(self, record: Record) -> SinkPartition:
        """Sink and partition of a record."""
        return self._sinks[record.topic], record.partition

    def offsets(self) -> dict[tuple[str, int], int]:
        """For each (topic, partition) the record that comes next."""
        return {self._source(key): progress.offset for key, progress in self.progress.items()}

    def starts(self) -> dict[tuple[str, int], int]:
        """For each (topic, partition) the record to read first: one whose letters are pending, else the next one."""
        return {
            self._source(key): min([progress.offset, *progress.outbox.pending])
            for key, progress in self.progress.items()
        }

    def resume_letters(self, records: Iterable[Record]) -> None:
        """Makes the letters of records whose dead letters are pending since an earlier delivery: see `letters`."""
        for record in records:
            key = self.key_of(record)
            reasons = self.progress[key].outbox.pending.get(record.offset)
            if reasons is not None:
                self._write(key, record.offset, decode(record.value), reasons)

    def letters(self) -> list[OutputRecord]:
        """Dead letters that are to be appended to the log, in order. Then call `appended`."""
        return self._letters

    def appended(self) -> None:
        """The letters are durable: positions stored from now on do not name them."""
        for key, offset in self._written:
            outbox = self.progress[key].outbox
            outbox.last = self._last[key]
            del outbox.pending[offset]
            self._stored[key] = _STALE
        self._letters, self._written = [], []

    def fold(
        self, records: Iterable[Record]
    ) -> tuple[list[SinkBatch[Message]], list[tuple[Record, FrameError]]]:
        """Takes records; the batches of the partitions with messages, and the records that could not be read."""
        frames: dict[SinkPartition, list[FrameMessages[Message]]] = {}
        faults: list[tuple[Record, FrameError]] = []
        for record in records:
            key = self.key_of(record)
            progress = self.progress[key]
            try:
                frame: Frame | None = frame_of(key[0], record.value)
            except FrameError as error:
                faults.append((record, error))
                frame = None
            if not progress.takes(record.offset, frame) or frame is None:
                continue
            try:
                messages = self._inputs[key[0]].read(frame)
            except FrameError as error:
                faults.append((record, error))
                progress.spoiled()
                continue
            progress.delivered(len(messages))
            frames.setdefault(key, []).append(FrameMessages(record.offset, frame, messages))
        self._batches = {key: self._batch(key, found) for key, found in frames.items()}
        return list(self._batches.values()), faults

    def moved(self) -> list[SinkBatch[Message]]:
        """Batches without messages for the partitions whose stored position lies below the progress."""
        return [
            self._batch(key, [])
            for key, progress in self.progress.items()
            if progress.offset != self._stored[key]
        ]

    def delivered(self, batches: Iterable[SinkBatch[Message]], refused: Refused) -> None:
        """The connector has them, but for what it refused, which may have led to `letters`."""
        self._stored |= {batch.key: batch.progress.offset for batch in batches}
        for key, reasons in refused.items():
            progress = self._refusing(key, reasons)
            self.progress[key] = progress
            frames = {each.offset: each.frame for each in self._batches[key].frames}
            for offset, pending in progress.outbox.pending.items():
                self._write(key, offset, frames[offset], pending)

    def _batch(self, key: SinkPartition, frames: list[FrameMessages[Message]]) -> SinkBatch[Message]:
        refusals = self._inputs[key[0]].refusals
        refusing = None if refusals is None or refusals.stops else partial(self._position_refusing, key)
        return SinkBatch(self._places[key], frames, self.progress[key], refusing)

    def _position_refusing(self, key: SinkPartition, refused: Mapping[int, str]) -> bytes:
        return encode_position(self._places[key], self._refusing(key, refused))

    def _refusing(self, key: SinkPartition, refused: Mapping[int, str]) -> Progress:
        """The progress of a partition of which these messages of its batch were refused."""
        found: dict[int, dict[int, str]] = {}
        frames = self._batches[key].frames
        starts = list(accumulate((len(each.messages) for each in frames), initial=0))
        for place, reason in refused.items():
            number = bisect_right(starts, place) - 1
            found.setdefault(frames[number].offset, {})[place - starts[number]] = reason
        return self._refusals(key).noted(self.progress[key], found)

    def _write(self, key: SinkPartition, offset: int, frame: Frame, reasons: Mapping[int, str]) -> None:
        records, self._last[key] = self._refusals(key).letters(
            key[1], offset, frame, reasons, self._last[key]
        )
        self._letters += records
        self._written.append((key, offset))

    def _refusals(self, key: SinkPartition) -> Refusals:
        refusals = self._inputs[key[0]].refusals
        if refusals is None:
            raise AssertionError(f"the connector of sink {key[0]!r} refuses nothing")
        return refusals

    def _source(self, key: SinkPartition) -> tuple[str, int]:
        return self._inputs[key[0]].topic, key[1]

    def _restored(self, key: SinkPartition, stored: bytes | None, beginning: int) -> Progress:
        if stored is None:
            return Progress.fresh(beginning)
        try:
            return decode_position(self._places[key], stored)[0]
        except PositionError as error:
            raise PositionError(
                f"the position stored for partition {key[1]}: {error}; restore it from a backup, or remove data"
                " and position together: results are written anew from the oldest record in the log"
            ) from None
