"""Delivers the messages of log records to every connector that lacks them, by the delivery rule.

Every connector of a route has its own progress in each partition and resumes there: records below it are skipped for
this connector only. So the log is read once, from the lowest progress, and a connector that was unavailable catches up.
"""

import copy
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from typing import Generic

from bettong.edges.kafka_log import Record
from bettong.held_time import HeldTime
from bettong.identifiers import TopicPartition
from bettong.worker.output.framing import OutputRecord
from bettong_receiver.delivery.batcher import SinkBatcher
from bettong_receiver.delivery.connector import Message, SinkBatch, SinkConnector
from bettong_receiver.delivery.observations import DeliveryLog
from bettong_receiver.delivery.route import Route, SinkRecord
from bettong_receiver.progress import DeliveryCounts, DeliveryProgress, SinkPartition

# Gets batches that were delivered, and for how many seconds they had been read by then.
OnDelivered = Callable[[Sequence[SinkBatch[Message]], float], None]
# Interval for storing positions that moved without messages (ticks, duplicates): they only save reading again.
_MOVED_S = 5.0


class Delivery(Generic[Message]):
    """The open connectors of one route, and the progress of each.

    `deliver`, `finish` and `close` belong to one thread; other methods may be called from any. After any error except
    one of the log, only close it, because it may have delivered half a round; the next one resumes from the stored
    positions.
    """

    def __init__(
        self,
        route: Route[Message],
        application: str,
        beginnings: Mapping[SinkPartition, int],
        *,
        append: Callable[[Sequence[OutputRecord]], None],
        held: HeldTime,
        on_delivered: OnDelivered[Message],
        monotonic_s: Callable[[], float],
        log: DeliveryLog,
    ) -> None:
        """Opens the connectors. `beginnings`: the first offset of each partition's log now; `held`: measures the time
        spent waiting for connectors, and keeps running when one has failed.

        `append` returns once dead letters are durable in the log; `on_delivered` gets the batches that the first
        connector has stored, and how many seconds ago they were read. Raises SinkError.
        """
        self._inputs = {each.topic: each for each in route.inputs}
        self._topics = {each.sink: each.topic for each in route.inputs}
        self._append = append
        self._held = held
        self._on_delivered = on_delivered
        self._monotonic_s = monotonic_s
        self._log = log
        self._lock = threading.Lock()
        self._next_moved_s = monotonic_s() + _MOVED_S
        self._feeds: list[tuple[SinkConnector[Message], SinkBatcher[Message]]] = []
        with ExitStack() as undo:
            for make_connector in route.connectors:
                connector = undo.enter_context(closing(make_connector()))
                stored = connector.open(beginnings)
                batcher = SinkBatcher(application, route.inputs, beginnings=beginnings, stored=stored)
                self._feeds.append((connector, batcher))
            self._opened = undo.pop_all()
        # Frames in a connector's current `deliver` call. Read by any thread.
        self.delivering = 0
        self._first = self._feeds[0][1]
        self._offsets = self._first.offsets(beginnings)

    def starts(self) -> dict[TopicPartition, int]:
        """For each (topic, partition) the lowest offset that any connector lacks."""
        starts = [batcher.starts() for _, batcher in self._feeds]
        return {self._topic_partition(key): min(each[key] for each in starts) for key in self._offsets}

    def deliver(self, records: Sequence[Record]) -> bool:
        """Delivers records; returns whether there was anything to deliver. Call it regularly, also without records.

        Raises SinkError when a connector fails, LogError when dead letters cannot be written.
        """
        sink_records = [SinkRecord(self._inputs[each.topic], each) for each in records]
        now_s = self._monotonic_s()
        with_moved = now_s >= self._next_moved_s
        if with_moved:
            self._next_moved_s = now_s + _MOVED_S
        has_delivered = False
        for connector, batcher in self._feeds:
            batcher.resume_dead_letters(sink_records)
            self._append_dead_letters(batcher)
            with self._lock:
                batches = batcher.fold(sink_records)
            if with_moved:
                with_messages = {batch.key for batch in batches}
                batches += [batch for batch in batcher.moved_batches() if batch.key not in with_messages]
            self._deliver_batches(connector, batcher, batches, now_s)
            with self._held:
                connector.flush()
            self._append_dead_letters(batcher)
            has_delivered |= bool(batches)
        if records:
            keys = {each.key for each in sink_records}
            self._offsets |= self._first.offsets(keys)
            self._log.gaps(self._first.gaps(keys))
            self._log.faults(sink_records)
        return has_delivered

    def finish(self) -> None:
        """Stores everything delivered, at a clean stop. Raises SinkError."""
        for connector, batcher in self._feeds:
            self._deliver_batches(connector, batcher, batcher.moved_batches(), self._monotonic_s())
            with self._held:
                connector.finish()

    def close(self) -> None:
        """Releases the connectors. Never raises."""
        self._opened.close()

    def progress(self, sink: str) -> dict[int, DeliveryProgress]:
        """A consistent copy of the first connector's progress in each partition of a sink."""
        with self._lock:
            return {
                partition: copy.deepcopy(progress)
                for (name, partition), progress in self._first.progress.items()
                if name == sink
            }

    def counts(self) -> dict[str, DeliveryCounts]:
        """The first connector's counts, by sink."""
        found = {sink: DeliveryCounts() for sink in self._topics}
        for (sink, _), progress in self._first.progress.items():
            found[sink].add(progress.counts)
        return found

    def offsets(self) -> dict[TopicPartition, int]:
        """For each (topic, partition) the next offset of the first connector."""
        return {self._topic_partition(key): each for key, each in self._offsets.items()}

    def _topic_partition(self, key: SinkPartition) -> TopicPartition:
        sink, partition = key
        return TopicPartition(self._topics[sink], partition)

    def _deliver_batches(
        self,
        connector: SinkConnector[Message],
        batcher: SinkBatcher[Message],
        batches: Sequence[SinkBatch[Message]],
        read_s: float,
    ) -> None:
        if not batches:
            return
        self.delivering = sum(len(batch.frames) for batch in batches)
        with self._held:
            refused = connector.deliver(batches)
        self.delivering = 0
        with self._lock:
            batcher.delivered(batches, refused)
        if batcher is self._first:
            self._on_delivered(batches, self._monotonic_s() - read_s)
        self._log.refused(refused)

    def _append_dead_letters(self, batcher: SinkBatcher[Message]) -> None:
        if dead_letters := batcher.dead_letters():
            self._append(dead_letters)
            batcher.appended()
