"""Skips or dead-letters messages that a destination refuses for good, as the sink's `on_error` says. Pure.

The position stored with a batch also names its refused messages, so both are stored in one step. The dead letters are
appended to the log after that; after a crash those that the position names are appended again, with the same sequence
numbers, so each counts once ([decision 13](docs/decisions/0013-refused-rows-are-owed.md)).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from bettong.application.on_error import DEAD_LETTER, STOP, OnError
from bettong.frames.frame import Frame
from bettong.identifiers import PartitionId, SequenceNumber
from bettong.topics import DEAD_LETTERS
from bettong.worker.output.dead_letters import DeadLetterFraming, DeadLetters
from bettong.worker.output.framing import FrameEmitter, OutputRecord, origin_of
from bettong.worker.output.numbering import SentTable
from bettong_receiver.progress import DeadLetterOutbox, DeliveryProgress


@dataclass(frozen=True, slots=True)
class Refusals:
    """The rule of one sink. `messages` reads a frame as dead letters show its messages: JSON unless `as_received`."""

    application: str
    sink: str
    on_error: OnError
    messages: Callable[[Frame], Sequence[bytes]]
    as_received: bool
    frame_bytes_max: int

    @property
    def stops(self) -> bool:
        """Whether a refused message stops the sink."""
        return self.on_error == STOP

    def with_refusals(
        self, progress: DeliveryProgress, refused: Mapping[int, Mapping[int, str]]
    ) -> DeliveryProgress:
        """Progress that includes these refusals: reasons by frame offset and index."""
        if self.on_error == DEAD_LETTER:
            pending = progress.outbox.pending | {offset: dict(reasons) for offset, reasons in refused.items()}
            return replace(progress, outbox=DeadLetterOutbox(pending, progress.outbox.last))
        count = sum(map(len, refused.values()))
        return replace(progress, counts=replace(progress.counts, skipped=progress.counts.skipped + count))

    def dead_letters(
        self, partition: int, offset: int, frame: Frame, reasons: Mapping[int, str], last: SequenceNumber
    ) -> tuple[list[OutputRecord], SequenceNumber]:
        """The dead letters of the frame at `offset`, and their last sequence number; `last`: the previous one."""
        # No stage has a dot in its name.
        at = PartitionId(f"{self.sink}.destination", partition)
        origin = origin_of(DEAD_LETTERS, at)
        sent = SentTable.of([(origin, partition, last)])
        emitter = FrameEmitter(frame, offset, self.frame_bytes_max, sent)
        framing = DeadLetterFraming(self.application, at)
        dead_letters = DeadLetters()
        for index, reason in sorted(reasons.items()):
            dead_letters.add(self.sink, reason, index)
        messages = self.messages(frame)
        records = framing.failed(emitter, dead_letters, messages.__getitem__, as_received=self.as_received)
        return list(records), sent.sequences[origin, partition]
