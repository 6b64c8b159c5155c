"""An application in memory that is given another number of partitions between two steps."""

from __future__ import annotations

from bettong.application.application import Application
from bettong.frames.frame import Repartition, repartition_record
from bettong.identifiers import PartitionId, SequenceNumber
from bettong.ingest.session import Session, SourceRoute
from bettong.snapshots import snapshot as codec
from bettong.testing import AppSession
from bettong.testing.memory_clients import MemoryClients
from bettong.testing.memory_partition import MemoryPartition
from bettong.testing.memory_processor import FRAME_BYTES_MAX
from bettong.testing.running import ReadyApplication
from bettong.v1.ingest_pb2 import Hello
from bettong.v1.snapshot_pb2 import Snapshot
from bettong.worker.partition import Assignment
from bettong.worker.references.versions import ReferenceTables
from bettong.worker.repartitioning.heads import NewGeneration, new_heads
from bettong.worker.repartitioning.states import with_states


class _Clients(MemoryClients):
    """Of a sender of some generation."""

    generation = 0

    def _session(self, route: SourceRoute, name: str, acknowledged: int) -> Session:
        hello = Hello(source=route.source.name, stream=name, acknowledged=acknowledged)
        return Session(route, hello, [-1] * self._partitions, generation=self.generation)


class RepartitionedSession(AppSession):
    """A session whose clients connect anew after each change, as those of an application that was stopped do."""

    def __init__(
        self, app: Application | ReadyApplication, *, partitions: int = 1, compiled: bool = False
    ) -> None:
        super().__init__(app, partitions=partitions, compiled=compiled)
        self.generation = 0
        self._clients: _Clients = _Clients(self._plan, partitions)
        # Of partitions that are not in use now.
        self._left: dict[PartitionId, list[bytes]] = {}

    def repartition(self, partitions: int) -> None:
        """From now on there are so many."""
        self.generation += 1
        plan, processor = self._plan, self._processor
        begins = Repartition(self.generation, partitions)
        old = {
            stage.name: [each for id_, each in processor.partitions.items() if id_.stage == stage.name]
            for stage in plan.stages
        }
        logs = {id_: list(each._log) for id_, each in processor.partitions.items()}
        for id_, log in self._left.items():
            logs.setdefault(id_, log)
        for stage in plan.stages:
            for number in range(max(partitions, len(old[stage.name]))):
                logs.setdefault(PartitionId(stage.name, number), []).append(
                    repartition_record(stage.name, begins)
                )
        head = new_heads(
            plan,
            {stage: [self._head(each) for each in found] for stage, found in old.items()},
            NewGeneration(
                self.generation,
                partitions,
                {
                    stage: [len(logs[PartitionId(stage, number)]) for number in range(partitions)]
                    for stage in old
                },
            ),
        )
        new: dict[PartitionId, MemoryPartition] = {}
        for found in old.values():
            workers = [each.worker for each in found]
            for id_, data, _ in with_states(workers[0].program, workers, partitions, head):
                new[id_] = self._partition(found[0], id_, partitions, logs[id_], data)
        self._left = {id_: log for id_, log in logs.items() if id_ not in new}
        processor.partitions = new
        self._ticked_ns = dict.fromkeys(new, -1)
        self._connect_anew(partitions)

    def _partition(
        self,
        like: MemoryPartition,
        id_: PartitionId,
        partitions: int,
        log: list[bytes],
        data: bytes,
    ) -> MemoryPartition:
        assignment = Assignment(self._plan.application, id_.partition, partitions, FRAME_BYTES_MAX)
        made = MemoryPartition(like._program, assignment, lambda: ReferenceTables(self._references))
        made._log = log
        made._outputs = [[] for _ in log]
        made._saved = [(len(log), data)]
        made.crash()
        assert made.worker.next_offset == len(log)
        return made

    def _head(self, partition: MemoryPartition) -> Snapshot:
        worker = partition.worker
        return codec.decode(worker.snapshot(), application=self._plan.application, partition=worker.id)

    def _connect_anew(self, partitions: int) -> None:
        clients = self._clients
        clients._partitions, clients.generation = partitions, self.generation
        known, clients._clients = clients._clients, {}
        now_ns = self._now_ns or 0
        for (source, name), client in known.items():
            self._append(list(clients._connect(source, name, now_ns)))
            made = clients._clients[source, name]
            made.last, made.watermark_ns = client.last, client.watermark_ns
            durable = SequenceNumber(client.last.sequence if client.last is not None else 0)
            made.session = clients._session(made.route, name, durable)
            self._append(made.session.open(now_ns / 1e9, now_ns, durable).appends)
