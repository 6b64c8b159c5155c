"""Messages of a frame that cannot be processed: collected while its rows pass a stage, then framed as dead letters."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from bettong.application.on_error import DEAD_LETTER, SKIP, STOP, OnError
from bettong.failure_sites import FailureSites
from bettong.frames.columns import Columns
from bettong.frames.refused import Refused, reason_text
from bettong.frames.text import json_line_of_values
from bettong.identifiers import PartitionId
from bettong.topics import DEAD_LETTERS, dead_letter_topic
from bettong.user_errors import traceback_of
from bettong.v1.frame_pb2 import DeadLetter
from bettong.worker.batch import Batch
from bettong.worker.exclusions import ExcludedTimer, Exclusion
from bettong.worker.fired import Firing
from bettong.worker.output.framing import FrameDestination, FrameEmitter, OutputRecord, origin_of


@dataclass(frozen=True, slots=True)
class FailedMessage:
    """Why `computation` could not process the message at `index` of the frame. `traceback`: see `Reason`."""

    computation: str
    reason: str
    index: int
    traceback: tuple[str, ...] = ()


@dataclass(slots=True)
class DeadLetters:
    """The messages of one frame that failed, in the order in which they did, and how many were skipped.

    `on_error`: by computation, dead letters by default. `stopping`: the first message that must stop its partition. The
    results of messages behind it do not matter.
    """

    on_error: Mapping[str, OnError] = field(default_factory=dict)
    found: list[FailedMessage] = field(default_factory=list)
    skipped: int = 0
    stopping: FailedMessage | None = None
    # Failed rows by the computation that counts them, and whether they were skipped. Nearly always none.
    failed_rows: dict[tuple[str, bool], int] | None = None
    # By computation, how many of `found` its `take_new` has read.
    _passed: dict[str, int] = field(default_factory=dict)

    def take_new(self, computation: str) -> list[FailedMessage]:
        """The failures of a computation since the last call for it."""
        start = self._passed.get(computation, 0)
        self._passed[computation] = len(self.found)
        return [failed for failed in self.found[start:] if failed.computation == computation]

    def add(
        self, computation: str, reason: str, index: int, *, row_of: str = "", is_counted: bool = True
    ) -> None:
        """Records that a message could not be processed. `row_of`: whose row it is, where not `computation`'s.

        `is_counted`: whether it is the first failure of that row.
        """
        policy = self.on_error.get(computation, DEAD_LETTER)
        if is_counted:
            if self.failed_rows is None:
                self.failed_rows = {}
            whose = (row_of or computation, policy == SKIP)
            self.failed_rows[whose] = self.failed_rows.get(whose, 0) + 1
        self._refuse(policy, computation, reason, index)

    def leave_out(self, computation: str, reason: str, index: int, *, is_logged: bool) -> None:
        """Records a message that is withheld from the computation, in which it killed a worker.

        `is_logged`: its exclusion is in the log already, so it stops nothing, whatever `on_error` is now.
        """
        policy = self.on_error.get(computation, DEAD_LETTER)
        if is_logged and policy == STOP:
            policy = DEAD_LETTER
        self._refuse(policy, computation, reason, index)

    def _refuse(self, policy: OnError, computation: str, reason: str, index: int) -> None:
        if policy == SKIP:
            self.skipped += 1
            return
        failed = FailedMessage(computation, reason_text(reason), index, traceback_of(reason))
        if policy != STOP:
            self.found.append(failed)
        elif self.stopping is None or index < self.stopping.index:
            self.stopping = failed

    def note_sites(self, sites: FailureSites) -> None:
        """Records where in the user's code they failed."""
        for failed in self.found:
            sites.note(failed.computation, failed.reason, failed.traceback)
        if self.stopping is not None:
            sites.note(self.stopping.computation, self.stopping.reason, self.stopping.traceback)

    def is_stopped_before(self, index: int) -> bool:
        """Whether a message before that index stops the partition."""
        return self.stopping is not None and self.stopping.index < index

    def before_stop(self, batches: Sequence[Batch]) -> Sequence[Batch]:
        """The rows of messages before the one that stops the partition; all where none does."""
        if self.stopping is None:
            return batches
        kept = (batch.before(self.stopping.index) for batch in batches)
        return [batch for batch in kept if batch.length]

    def in_order(self) -> list[FailedMessage]:
        """The failures, by message, so that their order does not depend on how messages were batched into frames."""
        return sorted(self.found, key=lambda failed: failed.index)


@dataclass(slots=True)
class FiringDeadLetters(DeadLetters):
    """The firings of one call of `Operator.on_time` that failed, there or in later computations.

    An index counts the firings of the call. The caller sets `firing`, which returns the one at an index, before it adds
    any or returns rows. `exclusion`: says which of them must not be called, since they killed a worker; the caller
    calls `exclude` with each of those.
    """

    exclusion: Exclusion | None = None
    firing: Callable[[int], Firing] | None = None

    def left_out(self, owner: str, firings: int) -> dict[int, ExcludedTimer]:
        """Of so many firings of a computation, those that must not be called: see `exclusion`. Needs `firing`."""
        timers = self.exclusion.of_timers(owner) if self.exclusion is not None else {}
        found = {}
        for index in range(firings) if timers else ():
            why = timers.get(b"") or timers.get(self.text(index))
            if why is not None:
                found[index] = why
        return found

    def add_all(self, computation: str, found: Iterable[tuple[int, str | ExcludedTimer]]) -> None:
        """Records firings that failed, and why, or that are left out."""
        for index, why in sorted(found, key=itemgetter(0)):
            if isinstance(why, str):
                self.add(computation, why, index)
            else:
                self.exclude(why, index)

    def exclude(self, timer: ExcludedTimer, index: int) -> None:
        """Records a firing that is left out: see `exclusion`."""
        is_logged = self.exclusion is not None and self.exclusion.is_logged
        self.leave_out(timer.computation, timer.reason, index, is_logged=is_logged)

    def text(self, index: int) -> bytes:
        """The firing as text, which stands for a message."""
        assert self.firing is not None  # noqa: S101 - set before anything can fail
        return self.firing(index).text()


@dataclass(frozen=True, slots=True)
class DeadLetterFraming:
    """Makes frames of the dead letters of input frames. `id`: the partition where they failed.

    `emitter`, here and below, makes the output frames of the input frame that they come from.
    """

    application: str
    id: PartitionId

    def failed(
        self,
        emitter: FrameEmitter,
        found: DeadLetters,
        message: Callable[[int], bytes],
        *,
        as_received: bool = False,
        whole_record: bool = False,
    ) -> Iterator[OutputRecord]:
        """The records of messages that failed; `message(index)` returns one, as JSON unless `as_received`."""
        return self._framed(
            emitter,
            (
                self._dead_letter(
                    emitter,
                    failed,
                    message(failed.index),
                    as_received=as_received,
                    whole_record=whole_record,
                    fired=isinstance(found, FiringDeadLetters),
                )
                for failed in found.in_order()
            ),
        )

    def refused(self, emitter: FrameEmitter, messages: Sequence[Refused]) -> Iterator[OutputRecord]:
        """The records of messages that the sender refused: their computation is the source."""
        return self._framed(
            emitter,
            (
                self._dead_letter(
                    emitter,
                    FailedMessage(emitter.frame.stream, each.reason, each.index, traceback_of(each.reason)),
                    each.message,
                    as_received=each.as_received,
                    truncated=each.truncated,
                )
                for each in messages
            ),
        )

    def _dead_letter(
        self,
        emitter: FrameEmitter,
        failed: FailedMessage,
        message: bytes,
        *,
        as_received: bool,
        truncated: bool = False,
        whole_record: bool = False,
        fired: bool = False,
    ) -> bytes:
        size_max = emitter.body_bytes_max // 2
        frame = emitter.frame
        return DeadLetter(
            computation=failed.computation,
            reason=failed.reason,
            traceback=failed.traceback,
            origin=frame.origin,
            sequence=frame.sequence,
            index=failed.index,
            message=message[:size_max],
            as_received=as_received,
            truncated=truncated or len(message) > size_max,
            whole_record=whole_record,
            fired=fired,
        ).SerializeToString()

    def _framed(self, emitter: FrameEmitter, dead_letters: Iterator[bytes]) -> Iterator[OutputRecord]:
        origin = origin_of(DEAD_LETTERS, self.id)
        to = FrameDestination(dead_letter_topic(self.application), self.id.partition, origin)
        return emitter.rows(to, list(dead_letters))


def message_text(columns: Columns) -> Callable[[int], bytes]:
    """A function that returns the message at an index of a frame as JSON, for dead letters. Runs no user code."""

    def text(index: int) -> bytes:
        row = columns.slice(index, index + 1)
        values = [row.values(at)[0] for at in range(len(columns.schema.fields))]
        return json_line_of_values(columns.schema, values)

    return text
