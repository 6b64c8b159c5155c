"""Feeds a source from an external system: each of its partitions is a stream, divided into frames by `batcher`.

    open boundary log (fences older readers) ─> open streams ─> poll ─> batch ─> store boundaries ─> send ─> poll ...
         ^                                                               │
         └─── wait, longer each time <─── any fault ─────────────────────┘

Only the stored boundaries outlive a fault, so it is handled as a crash is.
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
from bettong.ingest.requests import ROW_BYTES_MAX
from bettong.v1.ingest_pb2 import Hello, IngestFrame
from bettong_sender.batcher import BatchBoundaries, Batcher, ExternalBatch, bytes_that_fit
from bettong_sender.beginning import begin, key_of
from bettong_sender.feed import Feed
from bettong_sender.intake import Intake

_POLL_MS = 100
# Records per poll: each poll costs a transaction, and at least one frame per partition.
_RECORDS_MAX = 40_000
# `durable` is stored with each new boundary, and without one so often: a restart then reads fewer records again.
_STORE_MOVED_S = 1.0
# How often the partitions are checked: an external topic may gain some, or be made anew.
_PARTITIONS_S = 30.0
_RECEIPTS_WAIT_S = 2.0
# Between two looks whether Redis lists the sender again.
_LISTED_S = 0.2
_RETRY_S = 0.5
_RETRY_S_MAX = 30.0
# A smaller round costs what its transaction, its frames and its wake-ups cost, however few records it has.
SMALL_ROUND_RECORDS = 1_000
SMALL_ROUND_BYTES = 1024 * 1024
_REST_S_MAX = 0.05

_Result = TypeVar("_Result")
_Polled = dict[int, tuple[ExternalRecords | None, int]]


@dataclass(frozen=True, slots=True)
class ExternalSource:
    """An external system to read, for a source, and how its parts are opened. The functions block and raise LogError.

    `batch_records_max`: see `records_that_fit`.
    """

    source: str
    transport: Transport
    open_boundary_log: Callable[[], TransactionalTopic]
    open_reader: Callable[[], ExternalReader]
    frame_bytes_max: int
    batch_records_max: int


class _Stream:
    """One partition's session at the intake. `moved`: `durable` has moved since it was stored."""

    def __init__(self, feed: Feed, batcher: Batcher, *, name: str, frame_bytes_max: int) -> None:
        """`name`: the partition, for messages."""
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
        """Receives receipts until the feed has finished. Raises Refusal."""
        while (receipt := await self.feed.receipt()) is not None:
            self._credits += receipt.credits
            self.moved |= self.batcher.acknowledge(SequenceNumber(receipt.acknowledged))
            self._changed.set()

    async def send(self, batch: ExternalBatch) -> None:
        """Passes a batch to the feed, once there is a credit for it. Raises Refusal."""
        while not self._credits:
            self._changed.clear()
            await self._changed.wait()
        self._credits -= 1
        frame = IngestFrame(sequence=batch.end, sent_ns=batch.sent_ns)
        frame.rows.messages.extend(batch.values)
        # The sender that stored the boundaries has fenced all others: no lease is needed.
        size = sum(map(len, batch.values))
        await self.feed.take(frame, size, lease=None, oversized=self._oversized(batch))

    async def all_appended(self) -> None:
        """Returns when all records that were sent are appended to the log. Raises Refusal."""
        await self.feed.all_appended()

    def _oversized(self, batch: ExternalBatch) -> dict[int, str]:
        """Why records fit no frame, by row; smaller batches would not help. Empty when all fit."""
        most = self._frame_bytes_max - ROW_BYTES_MAX
        if max(map(len, batch.values)) <= most:
            return {}
        return {
            row: f"the record at offset {offset} of {self._name} has {len(value)} bytes, at most"
            f" {most} are taken (BETTONG_FRAME_BYTES_MAX)"
            for row, (offset, value) in enumerate(zip(batch.offsets, batch.values, strict=True))
            if len(value) > most
        }


class SourceFeed:
    """Reads one external system for one source until it is stopped."""

    def __init__(self, external: ExternalSource, intake: Intake, logger: BoundLogger) -> None:
        self._external = external
        self._intake = intake
        self._logger = logger.bind(source=external.source, reads=external.transport.title)
        self._backoff = Backoff(_RETRY_S, _RETRY_S_MAX)
        self._reader_thread = ThreadPoolExecutor(1, "reading")
        self._store_thread = ThreadPoolExecutor(1, "boundaries")
        # Before the first poll, the status must not show it as a source that is read.
        intake.status.sources[external.source] = (
            f"source {external.source}: {external.transport.title} is being opened"
        )

    async def run(self, stopping: asyncio.Event) -> None:
        """Until `stopping` is set. Waits out every fault of the log and the external system; the status shows it."""
        try:
            while not stopping.is_set():
                try:
                    if await self._await_listed(stopping):
                        await self._session(stopping)
                except* (LogError, Refusal) as faults:
                    await self._wait(faults.exceptions[0], stopping)
        finally:
            self._reader_thread.shutdown(wait=False)
            self._store_thread.shutdown(wait=False)

    async def _wait(self, fault: BaseException, stopping: asyncio.Event) -> None:
        self._show(str(fault))
        with suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), self._backoff.next_s())

    async def _await_listed(self, stopping: asyncio.Event) -> bool:
        """Waits until Redis lists this sender, as what it appends counts only then; False if it stops before."""
        while self._intake.listed_since_s() is None and not stopping.is_set():
            self._show("this sender does not reach Redis, so the application may be repartitioned meanwhile")
            with suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), _LISTED_S)
        return not stopping.is_set()

    def _show(self, reason: str) -> None:
        """Shows in the status why the source is not read; logs it once."""
        detail = f"source {self._external.source}: {reason}"
        if self._intake.status.sources.get(self._external.source) != detail:
            self._logger.warning("an external source cannot be read, and is retried", reason=reason)
        self._intake.status.sources[self._external.source] = detail

    async def _session(self, stopping: asyncio.Event) -> None:
        """Reads from opening to the first fault. Raises ExceptionGroups of LogError and Refusal, or one of them."""
        boundary_log: TransactionalTopic | None = None
        reader: ExternalReader | None = None
        streams: dict[int, _Stream] = {}
        try:
            boundary_log = await _run_in(self._store_thread, self._external.open_boundary_log)
            stored = await _run_in(self._store_thread, boundary_log.open)
            reader = await _run_in(self._reader_thread, self._external.open_reader)
            bounds = await _run_in(self._reader_thread, lambda: reader.bounds(reader.partitions()))
            # After the bounds: with those of a topic that is made anew meanwhile never goes the former one's identity.
            identity = await _run_in(self._reader_thread, reader.identity)
            begun = begin(self._external.transport, stored, bounds, identity=identity)
            await self._store(boundary_log, {partition: each.boundaries for partition, each in begun.items()})
            # Once for all partitions: it may take a second.
            await self._intake.guards.refresh()
            for partition, each in begun.items():
                if each.lost:
                    self._logger.error("records lost", partition=partition, lost=each.lost, on_lost="skip")
                streams[partition] = self._stream(partition, each.boundaries)
                await streams[partition].open()
            starts = {partition: each.start for partition, each in begun.items()}
            await _run_in(self._reader_thread, lambda: reader.assign(starts))
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
            # Queued behind the calls that still run in these threads.
            if reader is not None:
                self._reader_thread.submit(reader.close)
            if boundary_log is not None:
                self._store_thread.submit(boundary_log.close)

    async def _pump(
        self,
        boundary_log: TransactionalTopic,
        reader: ExternalReader,
        streams: Mapping[int, _Stream],
        stopping: asyncio.Event,
    ) -> None:
        """Reads and sends until `stopping` is set, or the partitions have changed.

        It polls the next records while it sends a batch, and not before: records that arrive while boundaries are
        stored all belong to the next batch. After a small round it pauses before it polls: see `rest_s`.
        """
        clock = asyncio.get_running_loop().time
        opened_s = clock()
        next_moved_s = opened_s + _STORE_MOVED_S
        next_check_s = opened_s + _PARTITIONS_S
        poll = self._start_poll(reader, streams)
        try:
            while not stopping.is_set():
                polled, lag = await poll
                begun_s = clock()
                stores_moved = begun_s >= next_moved_s
                if stores_moved:
                    next_moved_s = clock() + _STORE_MOVED_S
                batches = await self._divide(boundary_log, streams, polled, stores_moved=stores_moved)
                small = is_small([batch for _, batch in batches])
                if not small:
                    poll = self._start_poll(reader, streams)
                if batches and not await self._await_listed(stopping):
                    return
                for stream, batch in batches:
                    await stream.send(batch)
                for stream, _ in batches:
                    await stream.all_appended()
                if small:
                    await asyncio.sleep(rest_s(clock() - begun_s))
                    poll = self._start_poll(reader, streams)
                self._note_success(lag)
                if clock() - opened_s >= _RETRY_S_MAX:
                    self._backoff.reset()
                if clock() >= next_check_s:
                    next_check_s = clock() + _PARTITIONS_S
                    if await _run_in(self._reader_thread, lambda: _is_another(reader, streams)):
                        self._logger.info("the partitions of the external topic have changed")
                        return
        finally:
            poll.cancel()
            if not poll.cancelled():
                poll.exception()  # else asyncio would log it: the session ends by another fault

    async def _divide(
        self,
        boundary_log: TransactionalTopic,
        streams: Mapping[int, _Stream],
        polled: _Polled,
        *,
        stores_moved: bool,
    ) -> list[tuple[_Stream, ExternalBatch]]:
        """The batches of the polled records. They may be sent: their boundaries are stored.

        With `stores_moved`, it also stores how far streams are durable.
        """
        batches: list[tuple[_Stream, ExternalBatch]] = []
        changed: dict[int, BatchBoundaries] = {}
        for partition, (records, position) in polled.items():
            stream = streams[partition]
            found, is_new = stream.batcher.batches(records, position)
            stream.moved |= stream.batcher.pass_over(position)
            batches += [(stream, batch) for batch in found]
            if is_new or (stores_moved and stream.moved):
                changed[partition] = stream.batcher.boundaries
        for partition in changed:
            streams[partition].moved = False  # before storing: a receipt that arrives meanwhile sets it again
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

    def _start_poll(
        self, reader: ExternalReader, streams: Mapping[int, _Stream]
    ) -> asyncio.Future[tuple[_Polled, int]]:
        return _run_in(self._reader_thread, lambda: _poll(reader, list(streams)))

    async def _store(self, boundary_log: TransactionalTopic, changed: Mapping[int, BatchBoundaries]) -> None:
        if changed:
            values = {
                key_of(self._external.transport, partition): each.encode()
                for partition, each in changed.items()
            }
            await _run_in(self._store_thread, lambda: boundary_log.append([], values))

    def _note_success(self, lag: int) -> None:
        """Clears the source's fault in the status: a round was read and sent."""
        status = self._intake.status
        status.source_lags[self._external.source] = lag
        if status.sources.pop(self._external.source, None) is not None:
            self._logger.info("the external source answers")


def is_small(batches: Sequence[ExternalBatch]) -> bool:
    """Whether a round of these batches is so small that its cost does not depend on its size."""
    return (
        sum(len(each.values) for each in batches) < SMALL_ROUND_RECORDS
        and sum(sum(map(len, each.values)) for each in batches) < SMALL_ROUND_BYTES
    )


def rest_s(took_s: float) -> float:
    """How long to pause after a small round that took `took_s`: as long, at most 50 ms.

    Without pauses, rounds become smaller until they use the whole machine, and then each takes longer. A record that
    arrives alone after a while does not wait.
    """
    return min(took_s, _REST_S_MAX)


def _run_in(thread: ThreadPoolExecutor, call: Callable[[], _Result]) -> asyncio.Future[_Result]:
    """Runs a call in the thread of the reader or of the boundary log, one call after the other."""
    return asyncio.get_running_loop().run_in_executor(thread, call)


def _poll(reader: ExternalReader, partitions: list[int]) -> tuple[_Polled, int]:
    """The new records and the position of each partition, and how many records are not read yet."""
    found = reader.poll(_POLL_MS, _RECORDS_MAX)
    polled: _Polled = {each: (found.get(each), reader.position(each)) for each in partitions}
    return polled, reader.lag()


def _is_another(reader: ExternalReader, streams: Mapping[int, _Stream]) -> bool:
    """Whether there are other partitions than these streams', or it was made anew, which `begin` then refuses."""
    if reader.partitions() != sorted(streams):
        return True
    identity = reader.identity()
    known = {stream.batcher.boundaries.identity for stream in streams.values()}
    return bool(identity) and known != {identity}
