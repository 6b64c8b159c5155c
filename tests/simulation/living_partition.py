"""A partition whose workers die between records: each new one takes over what was saved, and folds the rest again.

A worker that has saved lives on. What it saves next goes on from that, where these are increments of a chain.
"""

from __future__ import annotations

from random import Random
from typing import Any

from bettong.application.nodes.stateful import Stateful
from bettong.application.timers import Clock
from bettong.worker.output.framing import OutputRecord
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.references.versions import ReferenceTables, StoredVersions
from bettong.worker.stage_program import StageProgram
from bettong.worker.state.group_tables import CountTable
from bettong.worker.state.records import RecordTable
from tests.samples.state_tables import small_increments

# Of a record: something is saved before it, and the worker dies before it.
_SAVES, _DIES = 0.3, 0.15


class LivingPartition:
    """The log of a partition, what its records led to, and the worker of the moment."""

    def __init__(
        self, program: StageProgram, of: Assignment, random: Random, references: StoredVersions
    ) -> None:
        self.worker = PartitionWorker(program, of, ReferenceTables(references))
        self._references = references
        self._program = program
        self._of = of
        self._random = random
        # Of states that end, of groups that are full before their timeout, and of timers in records that a call sets
        # to a later time, what is due next is known by a bound, which may be too early where one has ended before its
        # time, and is exact again after a restore.
        self._has_bounds = any(
            (
                node.lifetime is not None
                and (node.timers or node.delete_when is not None or node.lifetime.clock is Clock.EVENT)
            )
            or (
                type(node) is Stateful
                and node.timers
                and isinstance(self.worker.tables[node.name], RecordTable)
            )
            or isinstance(self.worker.tables[node.name], CountTable)
            for node in program.stateful()
        )
        self._log: list[bytes] = []
        self._given: list[list[OutputRecord]] = []
        # The increments of a chain, oldest first, which may begin with a snapshot: (root, offset, bytes) of each.
        self._saved: list[tuple[int, int, bytes]] = []
        # Of the worker of the moment, which has lived on since.
        self._snapshot: tuple[int, bytes] | None = None

    def fold(self, value: bytes) -> list[OutputRecord]:
        """Folds the next record. Raises as PartitionWorker does."""
        self._log.append(value)
        self._given.append(self.worker.fold(self.worker.next_offset, value))
        return self._given[-1]

    def die(self) -> None:
        """Saves, and dies, now and then. Raises AssertionError where a new worker gives something else."""
        with small_increments():
            if self._random.random() < _SAVES and self.worker.next_offset:
                self._save()
            if self._random.random() < _DIES:
                self._restore()

    def _save(self) -> None:
        if self._random.random() < 0.3:
            self._snapshot = (self.worker.next_offset, self.worker.snapshot())
            return
        increment, stored = self.worker.increment()
        self._saved.append((increment.root, increment.offset, stored))

    def _restore(self) -> None:
        before = self._state()
        if self._snapshot is not None and self._random.random() < 0.7:
            # What goes on from a snapshot are increments of a worker that was made from it.
            self._saved = [(0, *self._snapshot)]
        self._snapshot = None
        self.worker = PartitionWorker(self._program, self._of, ReferenceTables(self._references))
        root = self._saved[-1][0] if self._saved else 0
        for _, offset, stored in self._saved:
            if offset >= root:
                self.worker.restore(stored)
        for offset in range(self.worker.next_offset, len(self._log)):
            again = self.worker.fold(offset, self._log[offset])
            assert again == self._given[offset], f"record {offset} gives something else after a restore"
        assert self._state() == before, "another state after a restore"

    def _state(self) -> list[Any]:
        """What the worker knows, as people see it: whatever a state holds, a restored one looks the same."""
        tables = {name: sorted(table.items(), key=repr) for name, table in self.worker.tables.items()}
        watermark_ns, _ = self.worker.watermark
        due_ns = None if self._has_bounds else self.worker.due_ns
        counters = self.worker.counters.SerializeToString()
        return [tables, watermark_ns, due_ns, counters, self.worker.accounts.now()]
