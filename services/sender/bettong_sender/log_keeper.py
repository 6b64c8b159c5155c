"""Keeps a log open: waits for Kafka, creates the topics, and reopens the log after a failure."""

import asyncio
import contextlib
import time
from datetime import UTC, datetime

from structlog.stdlib import BoundLogger

from bettong.application.plan import Plan
from bettong.config.sender import SenderSettings
from bettong.edges.kafka_log import LogAdmin, LogWriter
from bettong.edges.partitioning_log import PreparedTopics, prepare_topics
from bettong.edges.serving import Serving
from bettong.errors import LogError, LogUnavailableError
from bettong.identifiers import stream_of
from bettong_sender.generation_watch import GenerationWatch
from bettong_sender.intake import Intake
from bettong_sender.status import State

# One wait for the broker, in a thread; after each the keeper checks whether it must stop.
_WAIT_S = 2.0
_POLL_S = 0.1

# The log answers within milliseconds; a longer silence is logged.
_SILENCE_S_MAX = 3.0

# Sessions have waited for frames in flight by then; clients resend frames without a receipt.
_CLOSE_S_MAX = 2.0


class LogKeeper:
    """Attaches the log to the intake and detaches it, and sets the health status accordingly."""

    def __init__(
        self,
        settings: SenderSettings,
        plan: Plan,
        intake: Intake,
        serving: Serving,
        logger: BoundLogger,
    ) -> None:
        self._settings = settings
        self._application, self._topics = plan.application, plan.topics
        self._intake = intake
        self._logger = logger
        self._serving = serving
        self._log: LogWriter | None = None
        self._identities: dict[str, str] = {}
        self._prepared = PreparedTopics((), 0, 0)
        self._prepared_s = 0.0

    async def run(self, stopping: asyncio.Event) -> None:
        """Returns when `stopping` is set, leaving the log open. Raises LogError when the topics cannot be used."""
        while not stopping.is_set():
            self._log = await self._opened(stopping)
            if self._log is None:
                return
            with self._asking() as watch:
                self._intake.use(self._log, self._identities, self._prepared.generation, watch.is_current)
                self._say(State.RUNNING)
                await self._serving.say(serving=True)
                await self._watch(self._log, watch, stopping)
            if stopping.is_set():
                return
            self._logger.warning("the log failed and is opened anew", reason=str(self._log.failure))
            self._intake.go_without(f"waiting for Kafka at {self._settings.kafka}")
            await self._serving.say(serving=False)
            await self.close()

    async def close(self) -> None:
        """Flushes for a bounded time and closes the log."""
        if self._log is not None:
            await asyncio.to_thread(self._log.close, _CLOSE_S_MAX)
            self._log = None

    async def _opened(self, stopping: asyncio.Event) -> LogWriter | None:
        """The log, as soon as Kafka answers; None when `stopping` is set before."""
        warned = False
        while not stopping.is_set():
            try:
                log = await asyncio.to_thread(self._open)
            except LogUnavailableError as error:
                detail = f"waiting for Kafka at {self._settings.kafka}"
                self._intake.go_without(detail)
                self._say(State.WAITING, detail)
                if not warned:
                    self._logger.warning(detail, reason=str(error))
                    warned = True
                await _pause(stopping)
            else:
                self._logger.info("Kafka answers", kafka=self._settings.kafka)
                return log
        return None

    def _open(self) -> LogWriter:
        """In a thread. Raises LogUnavailableError when no broker answers in time."""
        settings = self._settings
        with LogAdmin(settings.kafka_connection) as admin:
            admin.wait(_WAIT_S, lambda _: None)
            prepared_s = time.monotonic()
            prepared = prepare_topics(
                admin,
                settings.kafka_connection,
                self._application,
                self._topics,
                partitions=settings.partitions,
                replication=settings.replication,
                frame_bytes_max=settings.frame_bytes_max,
            )
            self._identities = admin.identities(self._topics)
            on_one_broker = admin.on_one_broker(self._topics)
        self._prepared, self._prepared_s = prepared, prepared_s
        if prepared.created:
            self._logger.info(
                "topics created", topics=sorted(prepared.created), partitions=settings.partitions
            )
        if on_one_broker:
            self._logger.warning(
                "records with a receipt may lie on one broker alone: set min.insync.replicas=2 with kafka-configs",
                topics=on_one_broker,
            )
        return LogWriter(
            settings.kafka_connection,
            frame_bytes_max=settings.frame_bytes_max,
            # The intake's bound of bytes is lower, and credits bound the count: this one is hardly ever reached.
            buffer_bytes_max=2 * settings.sender_buffer_bytes_max,
        )

    def _asking(self) -> GenerationWatch:
        admin = LogAdmin(self._settings.kafka_connection, answer_wait_s_max=_WAIT_S)
        where, application = self._settings.kafka_connection, self._application
        return GenerationWatch(
            admin,
            where,
            application,
            self._prepared,
            self._prepared_s,
            time.monotonic,
            self._intake.listed_since_s,
        )

    async def _watch(self, log: LogWriter, watch: GenerationWatch, stopping: asyncio.Event) -> None:
        """Returns when the log has failed or `stopping` is set; logs what takes long, and when it is over.

        Raises LogError when the application was repartitioned.
        """
        reported, waited = "", False
        while log.failure is None and not stopping.is_set():
            if watch.has_changed:
                raise LogError(
                    f"application {self._application!r} was repartitioned while this sender was cut off: start it"
                    " again, with the number of partitions that the application has now"
                )
            state, detail = self._found(asyncio.get_running_loop().time())
            if detail != reported:
                self._say(state, detail)
                if detail:
                    self._logger.warning(detail)
                elif not waited:
                    self._logger.info("all sources read frames, and all frames get receipts again")
            if waited and state is not State.WAITING:
                self._logger.info("Kafka answers again", kafka=self._settings.kafka)
            reported, waited = detail, state is State.WAITING
            await _pause(stopping)

    def _found(self, now_s: float) -> tuple[State, str]:
        """The state and detail of a sender that has a log."""
        progress = self._intake.progress
        if self._intake.holds_answers and self._intake.listed_since_s() is None:
            return State.RUNNING, (
                "Redis does not answer, so frames get no receipt: without it nobody knows whether the application is"
                " being repartitioned"
            )
        if progress.silent_s(now_s) > _SILENCE_S_MAX:
            kafka = self._settings.kafka
            return State.WAITING, f"waiting for Kafka at {kafka}: no answer for {_SILENCE_S_MAX:.0f} s"
        origin, seconds = progress.longest_frame(now_s)
        if seconds > _SILENCE_S_MAX:
            since = datetime.fromtimestamp(time.time() - seconds, UTC).isoformat(timespec="seconds")
            source = stream_of(origin)
            return State.RUNNING, (
                f"source {source} is busy with one frame of {origin} since {since}: it is decoded and split, and other"
                " clients of the source wait; smaller frames (BETTONG_FRAME_MESSAGES_MAX) or a faster decoder help"
            )
        return State.RUNNING, ""

    def _say(self, state: State, detail: str = "") -> None:
        self._intake.status.enter(state, int(time.time()), detail)


async def _pause(stopping: asyncio.Event) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stopping.wait(), _POLL_S)
