"""The life of a receiver: wait for Kafka and Redis, deliver and serve, stop without leaving anything half done.

starting ──> waiting ──> running ──(SIGTERM)──> stopping: health off, subscribers sent away, positions saved
                ^           │
                └───────────┘  a broker or Redis that goes away is waited for; deliveries go on by themselves
"""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import grpc
from grpc_health.v1 import health_pb2_grpc

from bettong.application.plan import Plan
from bettong.edges.grpc_server import Entrance
from bettong.edges.kafka_log import LogReader
from bettong.edges.metrics_endpoint import Identity, MetricsEndpoint
from bettong.edges.redis_store import LiveFigures, RedisStore
from bettong.edges.serving import Serving
from bettong.errors import BettongError, LogError, SettingsError
from bettong.logs import Logger
from bettong.settings import ReceiverSettings
from bettong_receiver.connectors.routes import routes
from bettong_receiver.connectors.tasks import SinkTasks
from bettong_receiver.delivery import Delivery, Target
from bettong_receiver.formats import formats
from bettong_receiver.opening import Opening
from bettong_receiver.progress import SinkPartition
from bettong_receiver.reporting import LAG_WAIT_S_MAX, Reporter
from bettong_receiver.servicer import WISHES, SubscribeServicer, handlers
from bettong_receiver.status import RUNNING, STOPPING, Status

# How long one look at the log lasts: a stop, a sync and Redis wait no longer than this when it is quiet.
_POLL_MS = 50
# Of a round, beside the reader's own limit on bytes: so many small frames are delivered together at most.
_RECORDS_MAX = 10_000
_GRACE_S = 2.0
# A subscriber whose machine is gone without a word is noticed by pings: 20 s + 10 s.
_OPTIONS = (
    # A request is small; windows that grow by what the line carries are for more.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.so_reuseport", 0),
    ("grpc.max_send_message_length", -1),
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
)


class Receiver:
    """One receiver process. Make it where its event loop runs; `run` it once."""

    def __init__(self, settings: ReceiverSettings, plan: Plan, log: Logger) -> None:
        self._settings = settings
        self._log = log
        self._entrance = Entrance(settings, WISHES, log)
        self._formats = formats(plan)
        self._status = Status(time.time, log)
        self._stopping = threading.Event()
        self._store = RedisStore(settings.redis_place, plan.application)
        self._opening = Opening(settings, plan, self._formats, self._store, self._status, self._stopping)
        self._tasks = SinkTasks(
            routes(plan, settings, self._store),
            plan.application,
            open_reader=self._opening.own_reader,
            open_writer=self._opening.writer,
            status=self._status,
            log=log,
        )
        live = LiveFigures(self._store)
        self._metrics = MetricsEndpoint(
            settings.metrics_listen, Identity("receiver", plan.application, settings.instance), live, log
        )
        self._reporter = Reporter(
            live,
            self._opening.admin(answer_wait_s_max=LAG_WAIT_S_MAX),
            self._status,
            log,
            instance=settings.instance,
            interval_s=settings.live_interval_ms / 1000,
            skipped=self._tasks.skipped,
        )
        self._serving = Serving("bettong.v1.SubscribeService")
        self._servicer = SubscribeServicer(
            self._formats,
            subscribers_max=settings.receiver_subscribers_max,
            bytes_max=settings.receiver_subscribers_bytes_max,
            ahead_bytes_max=settings.receiver_subscriber_bytes_max,
            stall_s=settings.receiver_stall_ms / 1000,
            open_admin=self._opening.admin,
            open_reader=self._opening.subscriber_reader,
            log=log,
        )
        self._delivery: Delivery | None = None
        self._beside: list[asyncio.Task[None]] = []

    async def run(self, stop: asyncio.Event) -> None:
        """Serves until `stop` is set. Raises a BettongError that says what to do when it cannot go on."""
        with self._metrics:
            await self._run(stop)

    async def _run(self, stop: asyncio.Event) -> None:
        await self._serving.say(serving=False)
        server = self._server()
        await server.start()
        await self._entrance.answer_probes(
            lambda probed: health_pb2_grpc.add_HealthServicer_to_server(self._serving.servicer, probed)
        )
        self._also(self._servicer.watch())
        self._also(self._reporter.write(lambda: self._delivery, lambda: self._servicer.subscribers))
        stopped = asyncio.create_task(self._serving.drain(stop, self._settings.drain_ms / 1000))
        work = asyncio.create_task(self._work())
        try:
            await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
            self._status.enter(STOPPING)
            await self._serving.stop()
            self._servicer.stop()
            self._stopping.set()
            await work
        except BettongError as error:
            self._status.fails(str(error))
            raise
        finally:
            for task in (*self._beside, stopped):
                task.cancel()
            await server.stop(_GRACE_S)
            await self._entrance.close()
            await self._reporter.write_once(self._delivery, self._servicer.subscribers)
            self._reporter.close()
            self._store.close()
            self._log.info("stopped")

    async def _work(self) -> None:
        """Waits for what is missing, then delivers until `_stopping`."""
        opened = await asyncio.to_thread(self._open)
        if opened is None:
            return
        self._delivery, reader, beginnings = opened
        self._servicer.serve(self._delivery.progress)
        self._also(self._reporter.follow_lag(self._delivery, self._tasks.offsets))
        tasks = self._tasks.works(beginnings, self._stopping)
        self._status.enter(RUNNING)
        await self._serving.say(serving=True)
        delivery = self._delivery
        await self._side_by_side([lambda: self._deliver(delivery, reader), *tasks])

    async def _side_by_side(self, works: list[Callable[[], None]]) -> None:
        """Runs each on a thread of its own; when one fails the others are stopped, and its error is raised."""
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(len(works), "delivery") as threads:
            running = [loop.run_in_executor(threads, work) for work in works]
            await asyncio.wait(running, return_when=asyncio.FIRST_EXCEPTION)
            self._stopping.set()
            await asyncio.wait(running)
        for each in running:
            each.result()

    def _open(self) -> tuple[Delivery, LogReader, Mapping[SinkPartition, int]] | None:
        """Everything that is needed to deliver; None when asked to stop while it was waited for."""
        with ExitStack() as undo:
            beginnings = self._opening.beginnings()
            if beginnings is None:
                return None
            redis = self._opening.redis(beginnings)
            if redis is None:
                return None
            undo.callback(redis.close, saving=False)
            targets: list[Target] = [redis]
            files = self._opening.files(beginnings)
            if files is not None:
                undo.callback(files.close, saving=False)
                targets.insert(0, files)
            delivery = Delivery(
                self._formats, targets, clock_ns=time.time_ns, monotonic_s=time.monotonic, log=self._log
            )
            reader = self._opening.reader(delivery.starts())
            if reader is None:
                return None
            undo.pop_all()
            return delivery, reader, beginnings

    def _deliver(self, delivery: Delivery, reader: LogReader) -> None:
        """The loop of all deliveries, on a thread of its own."""
        saving = False
        try:
            while not self._stopping.is_set():
                delivery.round(reader.poll(_POLL_MS, _RECORDS_MAX))
            saving = True
        except LogError:
            # Raised by `poll`, between two rounds.
            saving = True
            raise
        finally:
            reader.close()
            delivery.close(saving=saving)

    def _server(self) -> grpc.aio.Server:
        server = grpc.aio.server(
            interceptors=self._entrance.interceptors, options=(*_OPTIONS, *self._entrance.options)
        )
        server.add_generic_rpc_handlers((handlers(self._servicer),))
        health_pb2_grpc.add_HealthServicer_to_server(self._serving.servicer, server)
        listen = self._settings.receiver_listen
        try:
            self._entrance.listen(server, listen)
        except RuntimeError:
            raise SettingsError(
                f"BETTONG_RECEIVER_LISTEN: cannot listen on {listen!r}; expected host:port, free on this machine"
            ) from None
        self._log.info("listening", address=listen)
        return server

    def _also(self, work: Coroutine[object, None, None]) -> None:
        """Runs beside the deliveries until the end."""
        task = asyncio.create_task(work)
        task.add_done_callback(self._notice)
        self._beside.append(task)

    def _notice(self, task: "asyncio.Task[None]") -> None:
        """What runs beside is not worth a stop, but its end must not go unseen."""
        if not task.cancelled() and task.exception() is not None:
            self._log.error("what runs beside the deliveries has ended", exc_info=task.exception())
