"""The running sender: gRPC server, health, intake, log and live metrics, from start to a clean stop."""

import asyncio
import contextlib
import signal
import time
import uuid
from collections.abc import Coroutine, Sequence

import grpc
from grpc_health.v1 import health_pb2_grpc
from structlog.stdlib import BoundLogger

from bettong.application.nodes.source import Source
from bettong.application.plan import Plan
from bettong.config.connection_settings import KafkaConnection
from bettong.config.sender import SenderSettings
from bettong.config.setting_faults import listening_fault
from bettong.edges.grpc_server import OTHER_CALLS_MAX, Bound, ClientShares, Receiving, ServerSecurity
from bettong.edges.kafka_log import LogAdmin
from bettong.edges.metrics_endpoint import Identity, MetricsEndpoint
from bettong.edges.redis_store import LiveMetrics, RedisDeaths, RedisLeases, RedisStore
from bettong.edges.serving import Serving
from bettong.edges.trace_export import TraceExport, exporting
from bettong.errors import SettingsError
from bettong.ingest.body import warm
from bettong.ingest.session import SourceRoute, messages_that_fit
from bettong.services import SENDER
from bettong.topics import dead_letter_topic, stage_topic
from bettong.traces import FrameSampling
from bettong_sender.external_sources import external_sources
from bettong_sender.guards import Guards
from bettong_sender.ingest_clock import IngestClock
from bettong_sender.intake import Intake, Limits
from bettong_sender.live import LiveReport
from bettong_sender.lock_watch import LockWatch
from bettong_sender.log_keeper import LogKeeper
from bettong_sender.ownership import Ownership
from bettong_sender.queues import queue_values
from bettong_sender.refusal_log import RefusalLog
from bettong_sender.servicer import PERMISSIONS, IngestServicer, handlers
from bettong_sender.source_feed import SourceFeed
from bettong_sender.status import SenderStatus, State
from bettong_sender.tick_writer import TickWriter
from bettong_sender.tracing import SenderTracing

# gRPC refuses messages larger than the frame limit and this; smaller ones the sender refuses, and names the limit.
_TRANSPORT_BYTES = 1024 * 1024

# Pings find clients that have vanished, and their sessions end.
_KEEPALIVE_MS = 20_000
_KEEPALIVE_ANSWER_MS = 10_000
_CLIENT_PING_MS_MIN = 5_000

# Sessions end within `feed.RECEIPTS_WAIT_S`; calls that take longer are cancelled.
_SESSIONS_STOP_S = 5.0
_SERVER_STOP_S = 1.0
# Leases are released, so that clients need not wait until they expire; Redis answers in milliseconds.
_RELEASES_STOP_S = 1.0


def routes_of(plan: Plan, settings: SenderSettings) -> dict[str, SourceRoute]:
    """Where each source's frames go."""
    return {source.name: _route(plan, source, settings) for source in plan.sources}


def _route(plan: Plan, source: Source, settings: SenderSettings) -> SourceRoute:
    stage, messages_max = plan.stage_of(source.name), settings.frame_messages_max
    if stage.judges_lateness:
        messages_max = min(messages_max, messages_that_fit(settings.frame_bytes_max))
    return SourceRoute(
        source=source,
        stage_topic=stage_topic(plan.application, stage.name),
        dead_letter_topic=dead_letter_topic(plan.application),
        partitions=settings.partitions,
        frame_bytes_max=settings.frame_bytes_max,
        frame_messages_max=messages_max,
        needs_time=stage.needs_time,
        judges_lateness=stage.judges_lateness,
        needs_each_watermark=stage.needs_each_watermark,
    )


def receiving_of(settings: SenderSettings) -> Receiving:
    """The bounds on bytes of messages that have arrived in part, or wait to be read."""
    return Receiving(
        of_all=Bound(settings.sender_receive_bytes_max, "BETTONG_SENDER_RECEIVE_BYTES_MAX"),
        of_connection=Bound(
            settings.sender_receive_bytes_per_connection_max,
            "BETTONG_SENDER_RECEIVE_BYTES_PER_CONNECTION_MAX",
        ),
        message_bytes_max=settings.frame_bytes_max + _TRANSPORT_BYTES,
    )


def shares_of(settings: SenderSettings) -> ClientShares:
    """How many sessions each client may have."""
    return ClientShares(
        settings.sender_sessions_per_client_max,
        what="sessions",
        setting="BETTONG_SENDER_SESSIONS_PER_CLIENT_MAX",
        remedy="end some sessions, use fewer streams",
    )


async def serve(settings: SenderSettings, plan: Plan, logger: BoundLogger) -> None:
    """Serves until SIGTERM or SIGINT, then opens no new sessions, flushes the frames in flight, and stops.

    Raises SettingsError when it cannot listen, LogError when the topics of the application cannot be used.
    """
    stop_requested = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop_requested.set)
    status = SenderStatus(int(time.time()))
    sources = external_sources(plan, settings)
    routes = routes_of(plan, settings)
    limits = Limits(settings.sender_credits, settings.sender_sessions_max, settings.sender_buffer_bytes_max)
    receiving = receiving_of(settings)
    security = ServerSecurity(settings, PERMISSIONS, receiving, logger)
    identity = Identity(SENDER.name, plan.application, settings.instance)
    with (
        exporting(settings, SENDER.name, plan.application, logger) as traces,
        RedisStore(settings.redis_connection, plan.application) as store,
        contextlib.closing(
            Guards(
                routes,
                folder=settings.sender_marks / plan.application,
                store=RedisDeaths(store),
                logger=logger,
            )
        ) as guards,
    ):
        clock = IngestClock(time.time_ns, store.time_ns, logger)
        tracing = _tracing(settings, traces)
        intake = Intake(
            plan.application, routes, limits, status, clock=clock.now_ns, guards=guards, tracing=tracing
        )
        intake.refusal_log = RefusalLog(logger)
        await guards.refresh()
        await clock.ask()
        ownership = Ownership(
            RedisLeases(store, lease_ms=settings.sender_lease_ms),
            instance=settings.instance,
            lease_s=settings.sender_lease_ms / 1000,
            new_token=lambda: uuid.uuid4().hex,
            log_is_new=lambda: _log_is_new(settings.kafka_connection, plan.topics),
            logger=logger,
        )
        feeds = [SourceFeed(source, intake, logger) for source in sources]
        with (
            LockWatch(settings.sender_lock_ms_max / 1000),
            MetricsEndpoint(settings.metrics_listen, identity, live := LiveMetrics(store), logger),
            LiveReport(
                live,
                settings.instance,
                lambda: _live_record(status, intake, security, traces),
                settings.live_interval_ms / 1000,
                logger,
            ) as report,
        ):
            intake.listed_since_s = report.listed_since_s
            await _serve(
                settings, plan, security, receiving, intake, clock, ownership, feeds, stop_requested, logger
            )


def _tracing(settings: SenderSettings, traces: TraceExport | None) -> SenderTracing | None:
    return SenderTracing(FrameSampling(settings.trace_ratio), traces.report) if traces is not None else None


def _live_record(
    status: SenderStatus, intake: Intake, security: ServerSecurity, traces: TraceExport | None
) -> dict[str, str | int | float]:
    """The live record. May be called from another thread."""
    own = status.metrics() | queue_values(intake)
    return own | security.metrics() | (traces.metrics() if traces is not None else {})


async def _serve(
    settings: SenderSettings,
    plan: Plan,
    security: ServerSecurity,
    receiving: Receiving,
    intake: Intake,
    clock: IngestClock,
    ownership: Ownership,
    feeds: list[SourceFeed],
    stop_requested: asyncio.Event,
    logger: BoundLogger,
) -> None:
    """Serves until `stop_requested` is set and the drain time has passed, then stops."""
    stopping = asyncio.Event()
    serving = Serving("bettong.v1.IngestService")
    servicer = IngestServicer(intake, ownership, shares_of(settings), receiving, stopping, logger)
    server = await _listen(settings, security, servicer, serving)
    keeper = LogKeeper(settings, plan, intake, serving, logger)
    logger.info("listening", address=settings.sender_listen, sources=sorted(intake.routes))
    draining = asyncio.create_task(serving.drain(stop_requested, settings.drain_ms / 1000))
    draining.add_done_callback(lambda _: stopping.set())
    ticking = TickWriter(intake, settings.tick_ms / 1000)
    tasks = (ownership.run(), security.watch(), ticking.run(), clock.run())
    background = [asyncio.create_task(each) for each in tasks]
    reading: list[asyncio.Task[None]] = []
    try:
        for route in intake.routes.values():
            await asyncio.to_thread(warm, route.source, settings.partitions)
        for feed in feeds:
            reading.append(asyncio.create_task(feed.run(stopping)))
            # A feed ends when `stopping` is set; before that only by a bug of ours, which ends the sender.
            reading[-1].add_done_callback(lambda _: stopping.set())
        await _await_first(keeper.run(stopping), *background)
        await await_ended(reading, _SESSIONS_STOP_S)
    finally:
        stopping.set()
        if reading:
            await asyncio.wait(reading, timeout=_SESSIONS_STOP_S)
        logger.info("stopping", sessions=intake.status.sessions)
        intake.status.enter(State.STOPPING, int(time.time()))
        await serving.stop()
        await intake.await_closed(_SESSIONS_STOP_S)
        await server.stop(_SERVER_STOP_S)
        await security.close()
        await ownership.await_released(_RELEASES_STOP_S)
        draining.cancel()
        for task in background:
            task.cancel()
        await asyncio.to_thread(intake.close)
        await keeper.close()
        logger.info("stopped", messages=intake.status.messages, frames=intake.status.frames)


def _log_is_new(kafka: KafkaConnection, topics: tuple[str, ...]) -> bool:
    """Whether nothing was ever appended to the topics. Raises LogError."""
    with LogAdmin(kafka) as admin:
        return not any(admin.ends(topics).values())


async def _await_first(keeping: Coroutine[None, None, None], *background: asyncio.Task[None]) -> None:
    """Returns when one of them has ended, and raises what it raised."""
    task = asyncio.create_task(keeping)
    done, _ = await asyncio.wait((task, *background), return_when=asyncio.FIRST_COMPLETED)
    for each in done:
        each.result()


async def await_ended(feeds: Sequence[asyncio.Task[None]], s_max: float) -> None:
    """Returns when all feeds have ended; cancels them after `s_max`, as a decoder may never return.

    Raises what one of them raised.
    """
    if feeds:
        done, late = await asyncio.wait(feeds, timeout=s_max)
        for each in late:
            each.cancel()
        for each in done:
            each.result()


async def _listen(
    settings: SenderSettings, security: ServerSecurity, servicer: IngestServicer, serving: Serving
) -> grpc.aio.Server:
    server = grpc.aio.server(
        interceptors=security.interceptors,
        options=[
            ("grpc.max_receive_message_length", settings.frame_bytes_max + _TRANSPORT_BYTES),
            # With probing, the windows of HTTP/2 grow up to 128 MB per call, unread. Without, a call holds 64 KB until
            # it is read, and then one message.
            ("grpc.http2.bdp_probe", 0),
            ("grpc.so_reuseport", 0),
            ("grpc.keepalive_time_ms", _KEEPALIVE_MS),
            ("grpc.keepalive_timeout_ms", _KEEPALIVE_ANSWER_MS),
            ("grpc.http2.min_ping_interval_without_data_ms", _CLIENT_PING_MS_MIN),
            *security.options,
        ],
        maximum_concurrent_rpcs=settings.sender_sessions_max + OTHER_CALLS_MAX,
    )
    server.add_generic_rpc_handlers((handlers(servicer),))
    health_pb2_grpc.add_HealthServicer_to_server(serving.servicer, server)
    await serving.say(serving=False)
    try:
        security.listen(server, settings.sender_listen)
    except RuntimeError as error:
        text = listening_fault("BETTONG_SENDER_LISTEN", settings.sender_listen, error)
        raise SettingsError(text) from None
    await server.start()
    await security.answer_probes(
        lambda probed: health_pb2_grpc.add_HealthServicer_to_server(serving.servicer, probed)
    )
    return server
