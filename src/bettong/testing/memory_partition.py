"""A partition of a stage in memory: its log, the output of each record, and the current worker.

Worker, increments and restore are the real ones; a crash, too, is as in production: a new worker restores the newest
chain of increments, and replays the log from there.
"""

from __future__ import annotations

from collections.abc import Callable

from bettong.errors import CaseError
from bettong.frames.columns import Columns
from bettong.frames.frame import FrameKind, decode
from bettong.testing.source_text import text_of_value
from bettong.worker.output.framing import OutputRecord
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.references.versions import ReferenceTables
from bettong.worker.stage_program import StageProgram


class ReplayError(AssertionError):
    """A replayed record had another output: a function depends on more than message and state."""


class MemoryPartition:
    """One partition of one stage."""

    def __init__(
        self, program: StageProgram, assignment: Assignment, references: Callable[[], ReferenceTables]
    ) -> None:
        """`references`: makes the reference tables of a new process."""
        self.worker = PartitionWorker(program, assignment, references())
        self._program = program
        self._assignment = assignment
        self._references = references
        self._log: list[bytes] = []
        self._outputs: list[list[OutputRecord]] = []
        # The chain of increments, oldest first: (offset, bytes).
        self._saved: list[tuple[int, bytes]] = []

    def fold(self, value: bytes) -> list[OutputRecord]:
        """Appends a record to the log, and folds it. Raises as PartitionWorker does."""
        self._log.append(value)
        self._outputs.append(self.worker.fold(self.worker.next_offset, value))
        return self._outputs[-1]

    def save(self) -> None:
        """Saves the states; the worker continues."""
        if self.worker.next_offset:
            increment, stored = self.worker.increment()
            older = [each for each in self._saved if increment.root <= each[0] < increment.offset]
            self._saved = [*older, (increment.offset, stored)]

    def restore(self) -> None:
        """Saves the states, and restores them in a new worker."""
        self.save()
        self.crash()

    def crash(self) -> None:
        """Replaces the worker by a new one, which replays what was not saved. Raises ReplayError where that differs."""
        self.worker = PartitionWorker(self._program, self._assignment, self._references())
        for _, stored in self._saved:
            self.worker.restore(stored)
        for offset in range(self.worker.next_offset, len(self._log)):
            again = self.worker.fold(offset, self._log[offset])
            if again != self._outputs[offset]:
                raise ReplayError(self._difference(offset, again))

    def _difference(self, offset: int, again: list[OutputRecord]) -> str:
        stage = self._program.stage.name
        return (
            f"stage {stage!r}: a record that was replayed after a crash had another output. It was"
            f" {self._shown(self._outputs[offset])}, and now {self._shown(again)}. A function depends on more than its"
            " message and its state: a global, a clock, a random number, or data of a state outside its fields"
        )

    def _shown(self, records: list[OutputRecord]) -> str:
        schemas = {each.schema.fingerprint: each.schema for each in self._program.stage.outputs}
        found: list[str] = []
        for record in records:
            frame = decode(record.value)
            if frame.kind is not FrameKind.DATA:
                continue
            if frame.columns is not None:
                found += map(text_of_value, Columns.of_payload(schemas[frame.schema], frame.columns))
            else:
                found += map(repr, frame.rows or ())
        return ", ".join(found) or "nothing"


def check_partitions(partitions: int) -> None:
    """Raises CaseError for an invalid number of partitions."""
    if type(partitions) is not int or not 1 <= partitions <= 1024:
        raise CaseError(f"partitions={partitions!r}: expected a number from 1 to 1024")
