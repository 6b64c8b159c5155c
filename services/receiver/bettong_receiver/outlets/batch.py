"""Records of a sink's topic in, one lot of messages a partition out, by the delivery rule. Pure."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Generic, NamedTuple

from bettong.edges.kafka_log import Record
from bettong.errors import FrameError
from bettong.frames.frame import Frame, decode
from bettong.worker.output.framing import OutputRecord
from bettong_receiver.errors import PositionError
from bettong_receiver.formats import frame_of
from bettong_receiver.outlets.outlet import Lot, Message, Refused
from bettong_receiver.outlets.refusals import Refusals
from bettong_receiver.positions import Place
from bettong_receiver.positions import decode as decode_position
from bettong_receiver.positions import encode as encode_position
from bettong_receiver.progress import Progress

# As the stored offset of a position that should be stored again.
_STALE = -1


class _Piece(NamedTuple):
    """The messages of a lot from `start` on are those of this frame, up to the next piece."""

    start: int
    offset: int
    frame: Frame


class Batch(Generic[Message]):
    """How far one outlet is, and what it gets next."""

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
        self._paid: list[tuple[int, int]] = []
        self._places = {partition: Place(application, sink, partition) for partition in beginnings}
        self.progress = {
            partition: self._restored(partition, stored.get(partition), beginning)
            for partition, beginning in beginnings.items()
        }
        self._stored = self.offsets()
        self._last = {partition: progress.debt.last for partition, progress in self.progress.items()}

    def offsets(self) -> dict[int, int]:
        """For each partition the record that comes next."""
        return {partition: progress.offset for partition, progress in self.progress.items()}

    def starts(self) -> dict[int, int]:
        """For each partition the record to read first: one whose letters are owed, else the one that comes next."""
        return {
            partition: min([progress.offset, *progress.debt.owed])
            for partition, progress in self.progress.items()
        }

    def settle(self, records: Iterable[Record]) -> None:
        """Makes the letters of records whose dead letters are owed since an earlier delivery: see `letters`."""
        for record in records:
            owed = self.progress[record.partition].debt.owed.get(record.offset)
            if owed is not None:
                self._write(record.partition, record.offset, decode(record.value), owed)

    def letters(self) -> list[OutputRecord]:
        """Dead letters that are to be appended to the log, in order. Then call `posted`."""
        return self._letters

    def posted(self) -> None:
        """The letters are durable: positions stored from now on owe them no more."""
        for partition, offset in self._paid:
            debt = self.progress[partition].debt
            debt.last = self._last[partition]
            del debt.owed[offset]
            self._stored[partition] = _STALE
        self._letters, self._paid = [], []

    def fold(self, records: Iterable[Record]) -> tuple[list[Lot[Message]], list[tuple[Record, FrameError]]]:
        """Takes records; the lots of the partitions with messages, and the records that could not be read."""
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
            lot = messages.setdefault(record.partition, [])
            self._pieces.setdefault(record.partition, []).append(_Piece(len(lot), record.offset, frame))
            lot.extend(found)
        return [self._lot(partition, found) for partition, found in messages.items()], faults

    def moved(self) -> list[Lot[Message]]:
        """Empty lots for the partitions whose position is behind what was folded."""
        return [
            self._lot(each, []) for each, offset in self.offsets().items() if offset != self._stored[each]
        ]

    def delivered(self, lots: Iterable[Lot[Message]], refused: Refused) -> None:
        """The outlet has them, but for what it refused, which may have led to `letters`."""
        self._stored |= {lot.partition: lot.offset for lot in lots}
        for number, reasons in refused.items():
            progress = self._refusing(number, reasons)
            self.progress[number] = progress
            frames = {piece.offset: piece.frame for piece in self._pieces[number]}
            for offset, owed in progress.debt.owed.items():
                self._write(number, offset, frames[offset], owed)

    def _lot(self, number: int, messages: list[Message]) -> Lot[Message]:
        progress = self.progress[number]
        position = encode_position(self._places[number], progress)
        refusing = None if self._refusals.stops else partial(self._position_refusing, number)
        return Lot(number, messages, progress.offset, position, refusing)

    def _position_refusing(self, number: int, refused: Mapping[int, str]) -> bytes:
        return encode_position(self._places[number], self._refusing(number, refused))

    def _refusing(self, number: int, refused: Mapping[int, str]) -> Progress:
        """The progress of a partition of which these messages of its lot were refused."""
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
        self._paid.append((number, offset))

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
