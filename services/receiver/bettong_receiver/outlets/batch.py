"""Records of a sink's topic in, one lot of messages a partition out, by the delivery rule. Pure."""

from collections.abc import Callable, Iterable, Mapping
from typing import Generic

from bettong.edges.kafka_log import Record
from bettong.errors import FrameError
from bettong.frames.frame import Frame, decode
from bettong_receiver.errors import PositionError
from bettong_receiver.outlets.outlet import Lot, Message
from bettong_receiver.positions import Place
from bettong_receiver.positions import decode as decode_position
from bettong_receiver.positions import encode as encode_position
from bettong_receiver.progress import Progress


class Batch(Generic[Message]):
    """How far one outlet is, and what it gets next."""

    def __init__(
        self,
        application: str,
        sink: str,
        read: Callable[[Frame], list[Message]],
        *,
        beginnings: Mapping[int, int],
        stored: Mapping[int, bytes | None],
    ) -> None:
        """`read` raises FrameError for a frame that is not of the sink; `beginnings`: where the logs begin now.

        Raises PositionError for a stored position that cannot be trusted.
        """
        self._read = read
        self._places = {partition: Place(application, sink, partition) for partition in beginnings}
        self.progress = {
            partition: self._restored(partition, stored.get(partition), beginning)
            for partition, beginning in beginnings.items()
        }
        self._stored = self.offsets()

    def offsets(self) -> dict[int, int]:
        """For each partition the record that comes next."""
        return {partition: progress.offset for partition, progress in self.progress.items()}

    def fold(self, records: Iterable[Record]) -> tuple[list[Lot[Message]], list[tuple[Record, FrameError]]]:
        """Takes records; the lots of the partitions with messages, and the records that could not be read."""
        messages: dict[int, list[Message]] = {}
        faults: list[tuple[Record, FrameError]] = []
        for record in records:
            progress = self.progress[record.partition]
            try:
                frame: Frame | None = decode(record.value)
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
            messages.setdefault(record.partition, []).extend(found)
        return [self._lot(partition, found) for partition, found in messages.items()], faults

    def moved(self) -> list[Lot[Message]]:
        """Empty lots for the partitions whose position is behind what was folded."""
        return [
            self._lot(each, []) for each, offset in self.offsets().items() if offset != self._stored[each]
        ]

    def delivered(self, lots: Iterable[Lot[Message]]) -> None:
        """The outlet has them."""
        self._stored |= {lot.partition: lot.offset for lot in lots}

    def _lot(self, partition: int, messages: list[Message]) -> Lot[Message]:
        progress = self.progress[partition]
        position = encode_position(self._places[partition], progress)
        return Lot(partition, messages, progress.offset, position)

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
