"""The gRPC service: who may subscribe, and results to those who do. The contract is `subscribe.proto`."""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import grpc

from bettong.access import Read
from bettong.edges.grpc_server import Wishes
from bettong.edges.kafka_log import LogAdmin, LogReader
from bettong.errors import LogError, LogHoleError
from bettong.logs import Logger
from bettong.v1 import subscribe_pb2 as pb
from bettong.v1.subscribe_pb2_grpc import SubscribeServiceServicer
from bettong_receiver.formats import SinkFormat
from bettong_receiver.progress import Progress
from bettong_receiver.subscriptions import LogFacts, Refusal, Refused, Subscription, starts

_CODES = {
    Refusal.INVALID: grpc.StatusCode.INVALID_ARGUMENT,
    Refusal.OUT_OF_RANGE: grpc.StatusCode.OUT_OF_RANGE,
}

Context = grpc.aio.ServicerContext[pb.SubscribeRequest, pb.SubscribeResponse]

# Where the receiver itself has delivered a sink to, by partition.
Newest = Callable[[str], Mapping[int, Progress]]


# What a token must allow.
WISHES: Wishes = {"/bettong.v1.SubscribeService/Subscribe": lambda request: Read(request.sink)}


class SubscribeServicer(SubscribeServiceServicer):
    """Serves subscribers, each on a thread of its own, from when `serve` gives it a log to read until `stop`."""

    def __init__(
        self,
        formats: Mapping[str, SinkFormat],
        *,
        subscribers_max: int,
        open_admin: Callable[[], LogAdmin],
        open_reader: Callable[[Mapping[tuple[str, int], int]], LogReader],
        log: Logger,
    ) -> None:
        self._formats = formats
        self._subscribers_max = subscribers_max
        self._open_admin = open_admin
        self._open_reader = open_reader
        self._log = log
        self._newest: Newest | None = None
        self._stopping = asyncio.Event()
        self.subscribers = 0

    def serve(self, newest: Newest) -> None:
        """From now on subscriptions are taken. `newest(sink)`: how far the receiver itself has delivered."""
        self._newest = newest

    def stop(self) -> None:
        """Ends every subscription with UNAVAILABLE, within the time of one poll."""
        self._stopping.set()

    async def Subscribe(  # type: ignore[override]  # noqa: N802 - gRPC's name; grpc.aio takes coroutines that write
        self, request: pb.SubscribeRequest, context: Context
    ) -> None:
        """See the proto."""
        if request.sink not in self._formats:
            known = ", ".join(self._formats)
            await context.abort(grpc.StatusCode.NOT_FOUND, f"no sink {request.sink!r}; there are {known}")
        newest = self._newest
        if newest is None:
            await context.abort(
                grpc.StatusCode.UNAVAILABLE, "the receiver waits for Kafka; subscribe again later"
            )
        if self.subscribers >= self._subscribers_max:
            await context.abort(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                f"{self.subscribers} subscribers, at most BETTONG_RECEIVER_SUBSCRIBERS_MAX={self._subscribers_max}",
            )
        self.subscribers += 1
        self._log.info("subscriber comes", sink=request.sink, peer=context.peer())
        try:
            await self._send_results(request, newest, context)
            await context.abort(grpc.StatusCode.UNAVAILABLE, "the receiver stops; subscribe again")
        except Refused as error:
            await context.abort(_CODES[error.refusal], str(error))
        except LogHoleError as error:
            await context.abort(grpc.StatusCode.OUT_OF_RANGE, str(error))
        except LogError as error:
            await context.abort(
                grpc.StatusCode.UNAVAILABLE, f"{error}; subscribe again from the last position"
            )
        finally:
            self.subscribers -= 1
            self._log.info("subscriber goes", sink=request.sink, peer=context.peer())

    async def _send_results(self, request: pb.SubscribeRequest, newest: Newest, context: Context) -> None:
        """Reads a round when gRPC has taken the one before, so a subscriber that does not read is not read for."""
        loop = asyncio.get_running_loop()
        thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="subscriber")
        opened: list[Subscription] = []
        try:
            await loop.run_in_executor(thread, lambda: opened.append(self._subscribe(request, newest)))
            for response in opened[0].opening():
                await context.write(response)
            while not self._stopping.is_set():
                for response in await loop.run_in_executor(thread, opened[0].round):
                    await context.write(response)
        finally:
            # Behind the call that may still be under way on that thread, when the subscriber went meanwhile.
            thread.submit(_close, opened)
            thread.shutdown(wait=False)

    def _subscribe(self, request: pb.SubscribeRequest, newest: Newest) -> Subscription:
        sink_format = self._formats[request.sink]
        with self._open_admin() as admin:
            facts = LogFacts(
                beginnings=_of_one_topic(admin.beginnings([sink_format.topic])),
                ends=_of_one_topic(admin.ends([sink_format.topic])),
            )
        progress = starts(request, facts=facts, newest=newest(request.sink))
        return Subscription(sink_format, progress, self._open_reader)


def _of_one_topic(offsets: Mapping[tuple[str, int], int]) -> dict[int, int]:
    return {partition: offset for (_, partition), offset in offsets.items()}


def _close(subscriptions: list[Subscription]) -> None:
    for subscription in subscriptions:
        subscription.close()
