"""Records of a sink's topic in, one batch of messages a partition out, by the delivery rule. Pure."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Generic, NamedTuple

from bettong.edges.kafka_log import Record
from bettong.errors import FrameError
from bettong.frames.frame import Frame, decode
from bettong.worker.output.framing import OutputRecord
from bettong_receiver.connectors.connector import Message, Refused, SinkBatch
from bettong_receiver.connectors.refusals import Refusals
from bettong_receiver.errors import PositionError
from bettong_receiver.formats import frame_of
from bettong_receiver.positions import Place
from bettong_receiver.positions import decode as decode_position
from bettong_receiver.positions import encode as encode_position
from bettong_receiver.progress import Progress

# As the stored offset of a position that should be stored again.
_STALE = -1


class _Piece(NamedTuple):
    """The messages of a batch from `start` on are those of this frame, up to the next piece."""

    start: int
    offset: int
    frame: Frame


class Batcher(Generic[Message]):
    """How far one connector is, and what it gets next."""

    def __init__(
        self,
        application: str,
        sink: str,
        read: Callable[[Frame], Sequence[Message]],
        refusals: Refusals,
        *,
        beginnings: Mapping[int, int],
        stored: Mapping[int, bytes | None],
    ) -> None:
        """`read` raises FrameError for a frame that is not of the sink; `beginnings`: where the logs begin now.

        Raises PositionError for a stored position that cannot be trusted.
        """
        self._sink = sink
        self._read = read
        self._refusals = refusals
        self._pieces: dict[int, list[_Piece]] = {}
        self._letters: list[OutputRecord] = []
        self._written: list[tuple[int, int]] = []
        self._places = {partition: Place(application, sink, partition) for partition in beginnings}
        self.progress = {
            partition: self._restored(partition, stored.get(partition), beginning)
            for partition, beginning in beginnings.items()
        }
        self._stored = self.offsets()
        self._last = {partition: progress.outbox.last for partition, progress in self.progress.items()}

    def offsets(self) -> dict[int, int]:
        """For each partition the record that comes next."""
        return {partition: progress.offset for partition, progress in self.progress.items()}

    def starts(self) -> dict[int, int]:
        """For each partition the record to read first: one whose letters are pending, else the one that comes next."""
        return {
            partition: min([progress.offset, *progress.outbox.pending])
            for partition, progress in self.progress.items()
        }

    def settle(self, records: Iterable[Record]) -> None:
        """Makes the letters of records whose dead letters are pending since an earlier delivery: see `letters`."""
        for record in records:
            pending = self.progress[record.partition].outbox.pending.get(record.offset)
            if pending is not None:
                self._write(record.partition, record.offset, decode(record.value), pending)

    def letters(self) -> list[OutputRecord]:
        """Dead letters that are to be appended to the log, in order. Then call `posted`."""
        return self._letters

    def appended(self) -> None:
        """The letters are durable: positions stored from now on do not name them."""
        for partition, offset in self._written:
            outbox = self.progress[partition].outbox
            outbox.last = self._last[partition]
            del outbox.pending[offset]
            self._stored[partition] = _STALE
        self._letters, self._written = [], []

    def fold(
        self, records: Iterable[Record]
    ) -> tuple[list[SinkBatch[Message]], list[tuple[Record, FrameError]]]:
        """Takes records; the batches of the partitions with messages, and the records that could not be read."""
        messages: dict[int, list[Message]] = {}
        self._pieces = {}
        faults: list[tuple[Record, FrameError]] = []
        for record in records:
            progress = self.progress[record.partition]
            try:
                frame: Frame | None = frame_of(self._sink, record.value)
            except FrameError as error:
                faults.append((record, error))
                frame = None
            if not progress.takes(record.offset, frame) or frame is None:
                continue
            try:
                found = self._read(frame)
            except FrameError as error:
                faults.append((record, error))
                progress.spoiled()
                continue
            progress.delivered(len(found))
            batch = messages.setdefault(record.partition, [])
            self._pieces.setdefault(record.partition, []).append(_Piece(len(batch), record.offset, frame))
            batch.extend(found)
        return [self._batch(partition, found) for partition, found in messages.items()], faults

    def moved(self) -> list[SinkBatch[Message]]:
        """Empty batches for the partitions whose position is behind what was folded."""
        return [
            self._batch(each, []) for each, offset in self.offsets().items() if offset != self._stored[each]
        ]

    def delivered(self, batches: Iterable[SinkBatch[Message]], refused: Refused) -> None:
        """The connector has them, but for what it refused, which may have led to `letters`."""
        self._stored |= {batch.partition: batch.offset for batch in batches}
        for number, reasons in refused.items():
            progress = self._refusing(number, reasons)
            self.progress[number] = progress
            frames = {piece.offset: piece.frame for piece in self._pieces[number]}
            for offset, pending in progress.outbox.pending.items():
                self._write(number, offset, frames[offset], pending)

    def _batch(self, number: int, messages: list[Message]) -> SinkBatch[Message]:
        progress = self.progress[number]
        position = encode_position(self._places[number], progress)
        refusing = None if self._refusals.stops else partial(self._position_refusing, number)
        return SinkBatch(number, messages, progress.offset, position, refusing)

    def _position_refusing(self, number: int, refused: Mapping[int, str]) -> bytes:
        return encode_position(self._places[number], self._refusing(number, refused))

    def _refusing(self, number: int, refused: Mapping[int, str]) -> Progress:
        """The progress of a partition of which these messages of its batch were refused."""
        found: dict[int, dict[int, str]] = {}
        pieces = self._pieces[number]
        starts = [piece.start for piece in pieces]
        for place, reason in refused.items():
            piece = pieces[bisect_right(starts, place) - 1]
            found.setdefault(piece.offset, {})[place - piece.start] = reason
        return self._refusals.noted(self.progress[number], found)

    def _write(self, number: int, offset: int, frame: Frame, reasons: Mapping[int, str]) -> None:
        records, self._last[number] = self._refusals.letters(
            number, offset, frame, reasons, self._last[number]
        )
        self._letters += records
        self._written.append((number, offset))

    def _restored(self, partition: int, stored: bytes | None, beginning: int) -> Progress:
        if stored is None:
            return Progress.fresh(beginning)
        try:
            return decode_position(self._places[partition], stored)[0]
        except PositionError as error:
            raise PositionError(
                f"the position stored for partition {partition}: {error}; restore it from a backup, or remove data"
                " and position together: results are written anew from the oldest record in the log"
            ) from None
