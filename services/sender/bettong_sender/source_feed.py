"""Feeds a source from an external system: each of its partitions is a stream, divided into frames by `batcher`.

    open boundary log (shuts out older readers) ─> open streams ─> poll ─> batch ─> store boundaries ─> send ─> poll ...
         ^                                                                   │
         └─── wait, longer each time <─── whatever went wrong ───────────────┘

Nothing is held over a failure but the stored boundaries, so a crash and a fault are the same to it.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from structlog.stdlib import BoundLogger

from bettong.application.external.transport import Transport
from bettong.backoff import Backoff
from bettong.edges.external_kafka import TransactionalTopic
from bettong.edges.external_reader import ExternalReader, ExternalRecords
from bettong.errors import LogError
from bettong.identifiers import SequenceNumber
from bettong.ingest.refusal import Refusal
from bettong.v1.ingest_pb2 import Hello, IngestFrame
from bettong_sender.batcher import BatchBoundaries, Batcher, ExternalBatch, bytes_that_fit
from bettong_sender.beginning import begin, key_of
from bettong_sender.feed import Feed
from bettong_sender.intake import Intake

_POLL_MS = 100
# Of a poll, when records wait: each costs a transaction, and at least one frame a partition.
_RECORDS_MAX = 40_000
# How far it is stored with each new boundary, and when nothing new comes, so often: it saves reading again.
_MOVED_S = 1.0
# An external system may grow partitions; they are looked for so often.
_PARTITIONS_S = 30.0
_RECEIPTS_WAIT_S = 2.0
_RETRY_S = 0.5
_RETRY_S_MAX = 30.0
# A round of less costs what its transaction, its frames and its wake-ups cost, however few they are.
SMALL_ROUND_RECORDS = 1_000
SMALL_ROUND_BYTES = 1024 * 1024
_REST_S_MAX = 0.05
# What a row costs protobuf on top: a tag, and a length of at most 5 bytes.
_ROW_BYTES = 6

_Found = TypeVar("_Found")
_Polled = dict[int, tuple[ExternalRecords | None, int]]


@dataclass(frozen=True, slots=True)
class ExternalSource:
    """What is read, and how its parts are made. The functions block and raise LogError.

    `batch_records_max`: see `records_that_fit`.
    """

    source: str
    transport: Transport
    open_boundary_log: Callable[[], TransactionalTopic]
    open_reader: Callable[[], ExternalReader]
    frame_bytes_max: int
    batch_records_max: int


class _Stream:
    """One partition's session with the intake."""

    def __init__(self, feed: Feed, batcher: Batcher, *, name: str, frame_bytes_max: int) -> None:
        """`name`: the partition, for people."""
        self.batcher = batcher
        self._name = name
        self._frame_bytes_max = frame_bytes_max
        self.feed = feed
        self.moved = False
        self._credits = 0
        self._changed = asyncio.Event()

    async def open(self) -> None:
        self._credits = await self.feed.open(self.batcher.boundaries.durable)

    async def listen(self) -> None:
        """Takes receipts until the feed has finished. Raises Refusal."""
        while (receipt := await self.feed.receipt()) is not None:
            self._credits += receipt.credits
            self.moved |= self.batcher.acknowledge(SequenceNumber(receipt.acknowledged))
            self._changed.set()

    async def send(self, batch: ExternalBatch) -> None:
        """Hands a batch over, when there is a credit for it. Raises Refusal."""
        while not self._credits:
            self._changed.clear()
            await self._changed.wait()
        self._credits -= 1
        frame = IngestFrame(sequence=batch.end, sent_ns=batch.sent_ns)
        frame.rows.messages.extend(batch.values)
        # The sender that stored the boundaries has shut out all others: that is the lease.
        await self.feed.take(frame, lease=None, oversized=self._oversized(batch))

    async def all_read(self) -> None:
        """Returns when all that was handed over is given to the log. Raises Refusal."""
        await self.feed.all_read()

    def _oversized(self, batch: ExternalBatch) -> dict[int, str]:
        """The records that no frame can hold. Sending less at a time is no remedy for them."""
        most = self._frame_bytes_max - _ROW_BYTES
        if max(map(len, batch.values)) <= most:
            return {}
        return {
            row: f"the record at offset {offset} of {self._name} has {len(value)} bytes, at most"
            f" {most} are taken (BETTONG_FRAME_BYTES_MAX)"
            for row, (offset, value) in enumerate(zip(batch.offsets, batch.values, strict=True))
            if len(value) > most
        }


class SourceFeed:
    """Reads one external system for one source, until told to stop."""

    def __init__(self, external: ExternalSource, intake: Intake, logger: BoundLogger) -> None:
        self._external = external
        self._intake = intake
        self._logger = logger.bind(source=external.source, reads=external.transport.title)
        self._backoff = Backoff(_RETRY_S, _RETRY_S_MAX)
        self._reading = ThreadPoolExecutor(1, "reading")
        self._storing = ThreadPoolExecutor(1, "boundaries")
        # Until it reads, who looks must not take it for a source that does.
        intake.status.sources[external.source] = (
            f"source {external.source}: {external.transport.title} is being opened"
        )

    async def run(self, stopping: asyncio.Event) -> None:
        """Waits out every fault of the log and of what is read, and says it in the status."""
        try:
            while not stopping.is_set():
                try:
                    await self._session(stopping)
                except* (LogError, Refusal) as faults:
                    await self._wait(faults.exceptions[0], stopping)
        finally:
            self._reading.shutdown(wait=False)
            self._storing.shutdown(wait=False)

    async def _wait(self, fault: BaseException, stopping: asyncio.Event) -> None:
        detail = f"source {self._external.source}: {fault}"
        if self._intake.status.sources.get(self._external.source) != detail:
            self._logger.warning("a source waits", reason=str(fault))
        self._intake.status.sources[self._external.source] = detail
        with suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), self._backoff.next_s())

    async def _session(self, stopping: asyncio.Event) -> None:
        """From opening to the first fault. Raises ExceptionGroups of LogError and Refusal, or one of them alone."""
        boundary_log: TransactionalTopic | None = None
        reader: ExternalReader | None = None
        streams: dict[int, _Stream] = {}
        try:
            boundary_log = await _on(self._storing, self._external.open_boundary_log)
            stored = await _on(self._storing, boundary_log.open)
            reader = await _on(self._reading, self._external.open_reader)
            bounds = await _on(self._reading, lambda: reader.bounds(reader.partitions()))
            begun = begin(self._external.transport, stored, bounds)
            await self._store(boundary_log, {partition: each.boundaries for partition, each in begun.items()})
            # Once for all partitions: it may take a second.
            await self._intake.guards.refresh()
            for partition, each in begun.items():
                if each.lost:
                    self._logger.error("records lost", partition=partition, lost=each.lost, on_lost="skip")
                streams[partition] = self._stream(partition, each.boundaries)
                await streams[partition].open()
            starts = {partition: each.start for partition, each in begun.items()}
            await _on(self._reading, lambda: reader.assign(starts))
            self._logger.info("reads an external source", partitions=len(starts))
            async with asyncio.TaskGroup() as group:
                listeners = [group.create_task(stream.listen()) for stream in streams.values()]
                await self._pump(boundary_log, reader, streams, stopping)
                for stream in streams.values():
                    stream.feed.finish()
                await asyncio.wait(listeners, timeout=_RECEIPTS_WAIT_S)
                for listener in listeners:
                    listener.cancel()
            await self._store(
                boundary_log, {each: stream.batcher.boundaries for each, stream in streams.items()}
            )
        finally:
            for stream in streams.values():
                stream.feed.close()
            # Behind what is still under way there.
            if reader is not None:
                self._reading.submit(reader.close)
            if boundary_log is not None:
                self._storing.submit(boundary_log.close)

    async def _pump(
        self,
        boundary_log: TransactionalTopic,
        reader: ExternalReader,
        streams: Mapping[int, _Stream],
        stopping: asyncio.Event,
    ) -> None:
        """Reads and sends until `stopping`, or until there are other partitions.

        It reads on while what was read is sent, and no sooner: what comes while boundaries are stored is of the next
        batch whole. Behind a small round it rests first: see `rest_s`.
        """
        clock = asyncio.get_running_loop().time
        opened_s = clock()
        next_moved_s = opened_s + _MOVED_S
        next_check_s = opened_s + _PARTITIONS_S
        reading = self._read(reader, streams)
        try:
            while not stopping.is_set():
                polled, lag = await reading
                begun_s = clock()
                moved = begun_s >= next_moved_s
                if moved:
                    next_moved_s = clock() + _MOVED_S
                batches = await self._divide(boundary_log, streams, polled, moved=moved)
                small = is_small([batch for _, batch in batches])
                if not small:
                    reading = self._read(reader, streams)
                for stream, batch in batches:
                    await stream.send(batch)
                for stream, _ in batches:
                    await stream.all_read()
                if small:
                    await asyncio.sleep(rest_s(clock() - begun_s))
                    reading = self._read(reader, streams)
                self._well(lag)
                if clock() - opened_s >= _RETRY_S_MAX:
                    self._backoff.reset()
                if clock() >= next_check_s:
                    next_check_s = clock() + _PARTITIONS_S
                    if await _on(self._reading, reader.partitions) != sorted(streams):
                        self._logger.info("the partitions of the external topic have changed")
                        return
        finally:
            reading.cancel()
            if not reading.cancelled():
                reading.exception()  # has been looked at: the session ends by another fault

    async def _divide(
        self,
        boundary_log: TransactionalTopic,
        streams: Mapping[int, _Stream],
        polled: _Polled,
        *,
        moved: bool,
    ) -> list[tuple[_Stream, ExternalBatch]]:
        """The batches of what was read, which may be sent: boundaries are stored (with `moved` also how far streams
        have come).
        """
        batches: list[tuple[_Stream, ExternalBatch]] = []
        changed: dict[int, BatchBoundaries] = {}
        for partition, (records, position) in polled.items():
            stream = streams[partition]
            found, is_new = stream.batcher.batches(records, position)
            stream.moved |= stream.batcher.pass_over(position)
            batches += [(stream, batch) for batch in found]
            if is_new or (moved and stream.moved):
                changed[partition] = stream.batcher.boundaries
        for partition in changed:
            streams[partition].moved = False  # before a receipt that comes while it is stored
        await self._store(boundary_log, changed)
        return batches

    def _stream(self, partition: int, boundaries: BatchBoundaries) -> _Stream:
        stream = self._external.transport.stream(partition)
        hello = Hello(source=self._external.source, stream=stream, acknowledged=boundaries.durable)
        return _Stream(
            self._intake.open_external(hello, self._external.transport.title),
            Batcher(
                boundaries,
                batch_bytes_max=bytes_that_fit(self._external.frame_bytes_max),
                batch_records_max=self._external.batch_records_max,
            ),
            name=f"partition {partition} of {self._external.transport.title}",
            frame_bytes_max=self._external.frame_bytes_max,
        )

    def _read(
        self, reader: ExternalReader, streams: Mapping[int, _Stream]
    ) -> asyncio.Future[tuple[_Polled, int]]:
        return _on(self._reading, lambda: _poll(reader, list(streams)))

    async def _store(self, boundary_log: TransactionalTopic, changed: Mapping[int, BatchBoundaries]) -> None:
        if changed:
            values = {
                key_of(self._external.transport, partition): each.encode()
                for partition, each in changed.items()
            }
            await _on(self._storing, lambda: boundary_log.append([], values))

    def _well(self, lag: int) -> None:
        """All went well, for now."""
        status = self._intake.status
        status.source_lags[self._external.source] = lag
        if status.sources.pop(self._external.source, None) is not None:
            self._logger.info("a source goes on")


def is_small(batches: Sequence[ExternalBatch]) -> bool:
    """Whether a round of these batches costs what a round costs, whatever it holds."""
    return (
        sum(len(each.values) for each in batches) < SMALL_ROUND_RECORDS
        and sum(sum(map(len, each.values)) for each in batches) < SMALL_ROUND_BYTES
    )


def rest_s(took_s: float) -> float:
    """How long a small round that took `took_s` is followed by none: as long, at most 50 ms.

    Rounds that follow each other at once get smaller until they take all of the machine, and then each takes longer; a
    record that comes alone after a while waits for no rest.
    """
    return min(took_s, _REST_S_MAX)


def _on(thread: ThreadPoolExecutor, call: Callable[[], _Found]) -> asyncio.Future[_Found]:
    """Reader and boundary log have a thread each; what one is asked for happens there, one call after the other."""
    return asyncio.get_running_loop().run_in_executor(thread, call)


def _poll(reader: ExternalReader, partitions: list[int]) -> tuple[_Polled, int]:
    """What came of each partition, and how many records are left."""
    found = reader.poll(_POLL_MS, _RECORDS_MAX)
    polled: _Polled = {each: (found.get(each), reader.position(each)) for each in partitions}
    return polled, reader.lag()
