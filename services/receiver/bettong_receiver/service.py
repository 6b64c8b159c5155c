"""The life of a receiver: wait for Kafka and Redis, deliver and serve, stop cleanly.

starting ──> waiting ──> running ──(SIGTERM)──> stopping: not serving, subscriptions ended, positions saved
                ^           │
                └───────────┘  while a broker or Redis is unavailable; deliveries resume by themselves
"""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor

import grpc
from grpc_health.v1 import health_pb2_grpc

from bettong.application.plan import Plan
from bettong.config.receiver import ReceiverSettings
from bettong.config.setting_faults import listening_fault
from bettong.edges.grpc_server import OTHER_CALLS_MAX, Bound, ClientShares, Receiving, ServerSecurity
from bettong.edges.metrics_endpoint import Identity, MetricsEndpoint
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.edges.serving import Serving
from bettong.edges.trace_export import TraceExport
from bettong.errors import BettongError, SettingsError
from bettong.logs import Logger
from bettong.services import RECEIVER
from bettong_receiver.delivery.tasks import SinkTasks
from bettong_receiver.formats import formats
from bettong_receiver.opening import Opening
from bettong_receiver.reporting import LAG_WAIT_S_MAX, TOPICS_KNOWN_S, Reporter
from bettong_receiver.routes import routes
from bettong_receiver.servicer import PERMISSIONS, SUBSCRIBE, SubscribeServicer, handlers
from bettong_receiver.status import RUNNING, STOPPING, ReceiverStatus

_GRACE_S = 2.0
# A subscription resumes from a position per partition, and a position has a sequence number, about 50 bytes, for each
# stage that leads to the sink. Enough for five stages at 4,096 partitions, the maximum, or more at fewer.
REQUEST_BYTES_MAX = 1024 * 1024
REQUESTS_BYTES_MAX = 16 * 1024 * 1024
# Pings detect a subscriber whose machine vanished without closing the connection: 20 s + 10 s.
_OPTIONS = (
    ("grpc.max_receive_message_length", REQUEST_BYTES_MAX),
    # Requests are small: flow-control windows need not grow with the bandwidth.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.so_reuseport", 0),
    ("grpc.max_send_message_length", -1),
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
)


class Receiver:
    """One receiver process. Create it on its event loop; call `run` once."""

    def __init__(
        self, settings: ReceiverSettings, plan: Plan, log: Logger, traces: TraceExport | None = None
    ) -> None:
        """`traces`: None disables spans."""
        report = traces.report if traces is not None else None
        self._settings = settings
        self._log = log
        self._security = ServerSecurity(
            settings, PERMISSIONS, _request_limits(), log, {SUBSCRIBE: REQUEST_BYTES_MAX}
        )
        self._formats = formats(plan)
        self._status = ReceiverStatus(time.time, log)
        self._stopping = threading.Event()
        self._store = RedisStore(settings.redis_connection, plan.application)
        self._opening = Opening(settings, plan, self._formats, self._status, self._stopping)
        self._tasks = SinkTasks(
            routes(plan, settings, self._store, on_redis_wait=self._report_redis),
            plan.application,
            open_reader=self._opening.reader,
            open_writer=self._opening.writer,
            status=self._status,
            log=log,
            measures=settings.measures,
            report=report,
        )
        live = LiveMetrics(self._store)
        self._metrics = MetricsEndpoint(
            settings.metrics_listen, Identity(RECEIVER.name, plan.application, settings.instance), live, log
        )
        self._serving = Serving("bettong.v1.SubscribeService")
        self._servicer = SubscribeServicer(
            self._formats,
            subscribers_max=settings.receiver_subscribers_max,
            shares=ClientShares(
                settings.receiver_subscribers_per_client_max,
                what="subscriptions",
                setting="BETTONG_RECEIVER_SUBSCRIBERS_PER_CLIENT_MAX",
                remedy="end some",
            ),
            bytes_max=settings.receiver_subscribers_bytes_max,
            ahead_bytes_max=settings.receiver_subscriber_bytes_max,
            stall_s=settings.receiver_stall_ms / 1000,
            open_admin=self._opening.admin,
            open_reader=self._opening.subscriber_reader,
            log=log,
            report=report,
        )
        self._reporter = Reporter(
            live,
            self._opening.admin(answer_wait_s_max=LAG_WAIT_S_MAX, topics_known_s=TOPICS_KNOWN_S),
            self._status,
            log,
            instance=settings.instance,
            interval_s=settings.live_interval_ms / 1000,
            tasks=self._tasks,
            room=self._servicer.room,
            topics={sink: each.topic for sink, each in self._formats.items()},
            extra=lambda: self._security.metrics() | (traces.metrics() if traces is not None else {}),
        )
        self._background: list[asyncio.Task[None]] = []

    async def run(self, stop: asyncio.Event) -> None:
        """Serves until `stop` is set. Raises a BettongError with the remedy when it cannot continue."""
        with self._metrics:
            await self._run(stop)

    async def _run(self, stop: asyncio.Event) -> None:
        await self._serving.say(serving=False)
        server = self._server()
        await server.start()
        await self._security.answer_probes(
            lambda probed: health_pb2_grpc.add_HealthServicer_to_server(self._serving.servicer, probed)
        )
        self._run_in_background(self._servicer.watch())
        self._run_in_background(self._security.watch())
        self._run_in_background(self._reporter.write())
        stopped = asyncio.create_task(self._serving.drain(stop, self._settings.drain_ms / 1000))
        work = asyncio.create_task(self._work())
        try:
            await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
            self._status.set_state(STOPPING)
            await self._serving.stop()
            self._servicer.stop()
            self._stopping.set()
            await work
        except BettongError as error:
            self._status.set_failed(str(error))
            raise
        finally:
            for task in (*self._background, stopped):
                task.cancel()
            await server.stop(_GRACE_S)
            await self._security.close()
            await self._reporter.write_once()
            self._reporter.close()
            self._store.close()
            self._log.info("stopped")

    async def _work(self) -> None:
        """Waits for Kafka, then delivers until `_stopping` is set."""
        beginnings = await asyncio.to_thread(self._opening.beginnings)
        if beginnings is None:
            return
        runners = self._tasks.runners(beginnings, self._stopping)
        serving = asyncio.create_task(self._serve_once_open())
        try:
            await self._run_concurrently(runners)
        finally:
            await serving

    async def _serve_once_open(self) -> None:
        if not await asyncio.to_thread(self._tasks.wait_open, self._stopping):
            return
        self._servicer.serve(self._tasks.progress)
        self._run_in_background(self._reporter.follow_lag())
        self._status.set_state(RUNNING)
        await self._serving.say(serving=True)

    async def _run_concurrently(self, runners: list[Callable[[], None]]) -> None:
        """Runs each function on its own thread. When one fails, stops the others and raises its error."""
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(len(runners), "delivery") as threads:
            running = [loop.run_in_executor(threads, runner) for runner in runners]
            await asyncio.wait(running, return_when=asyncio.FIRST_EXCEPTION)
            self._stopping.set()
            await asyncio.wait(running)
        for each in running:
            each.result()

    def _server(self) -> grpc.aio.Server:
        server = grpc.aio.server(
            interceptors=self._security.interceptors,
            options=(*_OPTIONS, *self._security.options),
            maximum_concurrent_rpcs=self._settings.receiver_subscribers_max + OTHER_CALLS_MAX,
        )
        server.add_generic_rpc_handlers((handlers(self._servicer),))
        health_pb2_grpc.add_HealthServicer_to_server(self._serving.servicer, server)
        listen = self._settings.receiver_listen
        try:
            self._security.listen(server, listen)
        except RuntimeError as error:
            raise SettingsError(listening_fault("BETTONG_RECEIVER_LISTEN", listen, error)) from None
        self._log.info("listening", address=listen)
        return server

    def _report_redis(self, why: str | None) -> None:
        if why is None:
            self._status.clear_waiting("Redis")
        else:
            self._status.set_waiting("Redis", why)

    def _run_in_background(self, work: Coroutine[object, None, None]) -> None:
        """Runs a coroutine in the background until the receiver stops."""
        task = asyncio.create_task(work)
        task.add_done_callback(self._log_failure)
        self._background.append(task)

    def _log_failure(self, task: "asyncio.Task[None]") -> None:
        """Logs the failure of a background task, which does not stop the receiver."""
        if not task.cancelled() and task.exception() is not None:
            self._log.error(
                "a background task ended unexpectedly; start this receiver again to have it back",
                task=getattr(task.get_coro(), "__qualname__", ""),
                exc_info=task.exception(),
            )


def _request_limits() -> Receiving:
    """The memory limits for partly received requests."""
    return Receiving(
        of_all=Bound(REQUESTS_BYTES_MAX, "16 MiB of all requests"),
        of_connection=Bound(8 * REQUEST_BYTES_MAX, "8 MiB of one connection"),
        message_bytes_max=REQUEST_BYTES_MAX,
    )
