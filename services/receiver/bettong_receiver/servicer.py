"""The gRPC service: admits subscribers, and sends results to them. The contract is `subscribe.proto`."""

import asyncio
import gc
import itertools
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import grpc

from bettong.config.access import Read
from bettong.edges.grpc_server import ClientShares, Permissions, caller, close_connection
from bettong.edges.kafka_log import LogAdmin, LogReader
from bettong.errors import LogError, LogTruncatedError, LogUnavailableError
from bettong.identifiers import TopicPartition
from bettong.ingest.refusal import Refusal
from bettong.listing import first_named
from bettong.logs import Logger
from bettong.traces import Report
from bettong.v1 import subscribe_pb2 as pb
from bettong_receiver.formats import SinkFormat
from bettong_receiver.progress import DeliveryProgress
from bettong_receiver.room import ConnectedSubscriber, Room
from bettong_receiver.subscriptions import (
    LogFacts,
    OutgoingResponse,
    RefusedSubscription,
    Subscription,
    SubscriptionRefusal,
    reader_bytes,
    starts,
)
from bettong_receiver.tracing import SubscriberTracing

_CODES = {
    SubscriptionRefusal.INVALID: grpc.StatusCode.INVALID_ARGUMENT,
    SubscriptionRefusal.OUT_OF_RANGE: grpc.StatusCode.OUT_OF_RANGE,
}

Context = grpc.aio.ServicerContext[pb.SubscribeRequest, bytes]

# Partitions that a status lists; proxies would truncate a list of 4096.
_NAMED_MAX = 16
_NAME_CHARACTERS_MAX = 128

# The receiver's own progress in a sink, by partition.
Newest = Callable[[str], Mapping[int, DeliveryProgress]]


def _shortened(sink: str) -> str:
    """Truncates a requested name for error messages: names of sinks are shorter than the limit."""
    return sink[:_NAME_CHARACTERS_MAX]


SUBSCRIBE = "/bettong.v1.SubscribeService/Subscribe"

# The permission that a token needs.
PERMISSIONS: Permissions = {SUBSCRIBE: lambda request: Read(_shortened(request.sink))}

# A request and the tables built from it take six times its bytes (measured); this leaves a margin.
_POSITIONS_TIMES = 8
# Shortest time between two garbage collections after subscribers have left.
_COLLECT_S = 5.0
# How long a subscriber waits until the readers of those that have left are closed. Each of their requests to Kafka is
# given up after 10 s.
_READER_WAIT_S = 30.0
# The most partitions that a sink can have: see BETTONG_PARTITIONS.
_POSITIONS_MAX = 4096


def handlers(servicer: "SubscribeServicer") -> grpc.GenericRpcHandler:
    """The RPC handler for a server: as protoc generates it, except that responses are already serialized."""
    subscribe: grpc.RpcMethodHandler[pb.SubscribeRequest, bytes] = grpc.unary_stream_rpc_method_handler(
        servicer.Subscribe, request_deserializer=pb.SubscribeRequest.FromString
    )
    return grpc.method_handlers_generic_handler(
        pb.DESCRIPTOR.services_by_name["SubscribeService"].full_name, {"Subscribe": subscribe}
    )


class SubscribeServicer:
    """Serves subscribers, each on its own thread, from the call of `serve` until `stop`.

    A subscriber that does not read for `stall_s` is disconnected; when `bytes_max` are held for all, the one that has
    stalled for longest: see `Room`. Up to `ahead_bytes_max` are read ahead for each. Create it on the event loop.
    """

    def __init__(
        self,
        formats: Mapping[str, SinkFormat],
        *,
        subscribers_max: int,
        shares: ClientShares,
        bytes_max: int,
        ahead_bytes_max: int,
        stall_s: float,
        open_admin: Callable[[], LogAdmin],
        open_reader: Callable[[Mapping[TopicPartition, int]], LogReader],
        log: Logger,
        report: Report | None = None,
    ) -> None:
        """`report`: None disables spans."""
        self._report = report
        self._subscriptions = itertools.count(1)
        self._formats = formats
        self._subscribers_max = subscribers_max
        self._shares = shares
        self._open_admin = open_admin
        self._open_reader = open_reader
        self._log = log
        self._newest: Newest | None = None
        self._stopping = asyncio.Event()
        self._left = asyncio.Event()
        self._ahead_bytes_max = ahead_bytes_max
        self.room = Room(
            readers_max=subscribers_max, bytes_max=bytes_max, stall_s=stall_s, clock_s=time.monotonic
        )

    def serve(self, newest: Newest) -> None:
        """Accepts subscriptions from now on. `newest(sink)`: the receiver's own progress."""
        self._newest = newest

    async def watch(self) -> None:
        """Disconnects subscribers that do not read, and collects the garbage of others. Runs until cancelled."""
        await asyncio.gather(self.room.watch(), self._collect())

    async def _collect(self) -> None:
        """Collects the reference cycles that subscribers leave, which Python's collector would not reach for hours."""
        while True:
            await self._left.wait()
            await asyncio.sleep(_COLLECT_S)
            self._left.clear()
            gc.collect()

    def stop(self) -> None:
        """Ends every subscription with UNAVAILABLE, within one poll."""
        self._stopping.set()

    async def Subscribe(self, request: pb.SubscribeRequest, context: Context) -> None:  # noqa: N802 - gRPC's name
        """See `subscribe.proto`."""
        if request.sink not in self._formats:
            known = ", ".join(self._formats)
            await context.abort(
                grpc.StatusCode.NOT_FOUND, f"no sink {_shortened(request.sink)!r}; there are {known}"
            )
        newest = self._newest
        if newest is None:
            await context.abort(
                grpc.StatusCode.UNAVAILABLE, "the receiver waits for Kafka; subscribe again later"
            )
        # Checked before the first wait, because empty positions take 24 times their bytes in memory.
        if (positions := len(request.positions)) > _POSITIONS_MAX:
            text = f"{positions} positions; a sink has at most {_POSITIONS_MAX} partitions, expected one for each"
            del request
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, text)
        try:
            with self._shares.share(caller(context)):
                await self._serve(request, newest, context)
        except Refusal as refusal:
            await context.abort(grpc.StatusCode[refusal.code.value], str(refusal))

    async def _serve(self, request: pb.SubscribeRequest, newest: Newest, context: Context) -> None:
        """Serves a subscriber until it leaves or is disconnected."""
        if (subscribers := len(self.room.subscribers)) >= self._subscribers_max:
            await context.abort(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                f"{subscribers} subscribers, at most BETTONG_RECEIVER_SUBSCRIBERS_MAX={self._subscribers_max}",
            )
        positions_bytes = _POSITIONS_TIMES * request.ByteSize()
        if not self.room.has_room_for(reader_bytes(self._ahead_bytes_max) + positions_bytes):
            await context.abort(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                f"{subscribers} subscribers that read have all of BETTONG_RECEIVER_SUBSCRIBERS_BYTES_MAX"
                f"={self.room.bytes_max}; subscribe again later, or raise it",
            )
        self._log.info("subscriber connected", sink=request.sink, peer=context.peer())
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine runs in a task
        subscriber = self.room.add(task, sink=request.sink, address=context.peer())
        subscriber.positions = positions_bytes
        try:
            await self._send_results(request, newest, context, subscriber)
            await context.abort(grpc.StatusCode.UNAVAILABLE, "the receiver stops; subscribe again")
        except RefusedSubscription as error:
            await context.abort(_CODES[error.refusal], str(error))
        except LogTruncatedError as error:
            await context.abort(grpc.StatusCode.OUT_OF_RANGE, str(error))
        except LogError as error:
            await context.abort(
                grpc.StatusCode.UNAVAILABLE, f"{error}; subscribe again from the last position"
            )
        except asyncio.CancelledError:
            if not subscriber.reason:
                raise
            task.uncancel()
            await self._disconnect(request.sink, context, subscriber)
        finally:
            self.room.remove(subscriber)
            self._left.set()
            self._log.info("subscriber disconnected", sink=request.sink, peer=context.peer())

    async def _send_results(
        self,
        request: pb.SubscribeRequest,
        newest: Newest,
        context: Context,
        subscriber: ConnectedSubscriber,
    ) -> None:
        """Reads a round once gRPC has accepted the previous one: no records are read for a subscriber that stalls."""
        loop, peer = asyncio.get_running_loop(), context.peer()
        reader = reader_bytes(self._ahead_bytes_max) + subscriber.positions
        try:
            async with asyncio.timeout(_READER_WAIT_S):
                if not await self.room.await_reader(subscriber, reader, unless=self._stopping.is_set):
                    return
        except TimeoutError:
            raise LogUnavailableError(
                f"readers of subscribers that have left are not closed after {_READER_WAIT_S:g} s; does Kafka answer?"
            ) from None
        thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="subscriber")
        opened: list[Subscription] = []
        try:
            await self.room.reserve(subscriber, reader)
            await loop.run_in_executor(thread, lambda: opened.append(self._subscribe(request, newest, peer)))
            (subscription,) = opened
            await self._write(subscription, subscription.opening(), context, subscriber)
            while not self._stopping.is_set():
                found = await loop.run_in_executor(thread, subscription.round)
                await self._write(subscription, found, context, subscriber)
        finally:
            reader_closed = self.room.reader_left(subscriber)

            def closed() -> None:
                reader_closed()
                self._left.set()

            try:
                # On the same thread, after a call that may still run there when the subscriber has left.
                thread.submit(_close, opened).add_done_callback(lambda _: _call_on(loop, closed))
            except RuntimeError:  # no thread could be started, so there is nothing to close
                closed()
            thread.shutdown(wait=False)

    async def _write(
        self,
        subscription: Subscription,
        responses: list[OutgoingResponse],
        context: Context,
        subscriber: ConnectedSubscriber,
    ) -> None:
        subscriber.sending = sum(len(each.data) for each in responses)
        await self.room.reserve(subscriber, subscription.held + subscriber.positions + subscriber.sending)
        for each in responses:
            self.room.write_begun(subscriber)
            await context.write(each.data)
            self.room.write_ended(subscriber)
            subscription.accepted(each)
            subscriber.sent[each.partition] = each.offset

    async def _disconnect(self, sink: str, context: Context, subscriber: ConnectedSubscriber) -> None:
        """Disconnects a subscriber with a status, which queues behind unread responses: so the wait is bounded."""
        sent = sorted(subscriber.sent.items())
        named = [f"partition {partition} offset {offset}" for partition, offset in sent]
        text = (
            f"this subscriber of {sink!r} {subscriber.reason}; it was sent all before"
            f" {first_named(named, _NAMED_MAX)}; subscribe again from the last position received"
        )
        self._log.warning("subscriber does not read", sink=sink, peer=context.peer(), reason=text)
        ending = asyncio.ensure_future(context.abort(grpc.StatusCode.ABORTED, text))
        forced = asyncio.create_task(subscriber.must_disconnect.wait())
        try:
            await asyncio.wait(
                (ending, forced), timeout=self.room.stall_s, return_when=asyncio.FIRST_COMPLETED
            )
            if ending.done():
                await ending
            close_connection(context.peer())
            # gRPC's error about a status that it could not send is of no use.
            await asyncio.gather(ending, return_exceptions=True)
        finally:
            forced.cancel()

    def _subscribe(self, request: pb.SubscribeRequest, newest: Newest, peer: str) -> Subscription:
        sink_format = self._formats[request.sink]
        with self._open_admin() as admin:
            facts = LogFacts(
                beginnings=_of_one_topic(admin.beginnings([sink_format.topic])),
                ends=_of_one_topic(admin.ends([sink_format.topic])),
            )
        progress = starts(request, facts=facts, newest=newest(request.sink))
        report, name = self._report, f"subscriber {next(self._subscriptions)} at {peer}"
        return Subscription(
            sink_format,
            progress,
            self._open_reader,
            ahead_bytes_max=self._ahead_bytes_max,
            tracing=SubscriberTracing(report, request.sink, name) if report is not None else None,
        )


def _of_one_topic(offsets: Mapping[TopicPartition, int]) -> dict[int, int]:
    return {partition: offset for (_, partition), offset in offsets.items()}


def _call_on(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    """Calls it on a loop, from another thread; not at all once the loop is closed."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(call)


def _close(subscriptions: list[Subscription]) -> None:
    for subscription in subscriptions:
        subscription.close()
