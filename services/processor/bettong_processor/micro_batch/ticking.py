"""TICKs under the micro-batch schedule: the driver writes them, for no task runs in an idle partition.

Tasks report with their metrics when something is due in their partition; `Progress` reads that, and which logs are
folded to their ends. A batch folds a TICK as any record, and reports what is due next.
"""

import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from bettong.clocks import CheckedClock
from bettong.edges.kafka_log import LogWriter
from bettong.errors import LogError, StoreError
from bettong.frames.frame import tick_record
from bettong.identifiers import TopicPartition
from bettong.logs import Logger
from bettong_processor.progress import Idle
from bettong_processor.ticks import TickPacing

# Of the producer's buffer: one TICK a partition is in flight, of some hundred bytes.
BUFFER_BYTES_MAX = 1024 * 1024
# Between two polls of what is due. Unless something is, they send no request.
_POLL_S = 0.1
# Before a new writer is made, after a failure of the log.
_PAUSE_S = 5.0
_CLOSE_S_MAX = 1.0

Partitions = Mapping[TopicPartition, Idle]


class RedisClock(Protocol):
    """The clock of Redis."""

    def time_ns(self) -> int:
        """See RedisStore."""


class Ticking:
    """Writes TICKs in its own thread, from `start` to `stop`."""

    def __init__(
        self,
        stages: Mapping[str, str],
        idle: Callable[[], Partitions],
        *,
        awaited: Collection[str],
        clock: CheckedClock,
        redis: RedisClock,
        connect: Callable[[], LogWriter],
        log: Logger,
    ) -> None:
        """`stages`: the stages in which something may become due, by their topics. `idle`: see Progress.

        `awaited`: the topics of stages whose partitions need a TICK even before their first record: see
        `Stage.is_awaited`. `connect` makes a writer when a TICK is due; it may block, and raise a BettongError.
        """
        self._stages = stages
        self._idle = idle
        self._awaited = awaited
        self._clock = clock
        self._redis = redis
        self._connect = connect
        self._log = log
        self._writer: LogWriter | None = None
        self._pacing: dict[TopicPartition, TickPacing] = {}
        self._stopping = threading.Event()

    def start(self) -> None:
        """Starts the thread, unless no stage ever has anything due."""
        if self._stages:
            threading.Thread(target=self._write_until_stopped, name="ticking", daemon=True).start()

    def stop(self) -> None:
        """Ends the thread soon; does not wait."""
        self._stopping.set()

    def write_due(self, now_s: float) -> None:
        """Appends the TICKs that are due. Raises the errors of `connect`, and LogError; after one call `close`."""
        if not self._due(self._clock.machine_ns(), now_s):
            return
        try:
            log_ns = self._clock.now_ns(self._redis.time_ns())
        except StoreError as error:
            self._log.debug("no TICK is written: Redis does not give the time", fault=str(error))
            return
        for log in self._due(log_ns, now_s):
            if self._writer is None:
                self._writer = self._connect()
            pacing = self._pacing[log]
            pacing.begin(now_s)
            try:
                self._writer.append(log, tick_record(self._stages[log.topic], log_ns), pacing.finish)
            except LogError as error:
                pacing.finish(error)
                raise

    def close(self) -> None:
        """Closes the writer; the next TICK makes another. Never raises."""
        if self._writer is not None:
            self._writer.close(_CLOSE_S_MAX)
            self._writer = None

    def _due(self, log_ns: int, now_s: float) -> list[TopicPartition]:
        """The partitions in which something is due at `log_ns`, and which may get a TICK now.

        If Redis has lost a partition's report, it gets a TICK too: the task that folds it reports again.
        """
        return [
            log
            for log, each in self._idle().items()
            if log.topic in self._stages
            and (self._may_be_due(log, each) if each.due_ns is None else each.due_ns <= log_ns)
            and self._pacing.setdefault(log, TickPacing()).allows(each.offset, now_s)
        ]

    def _may_be_due(self, log: TopicPartition, idle: Idle) -> bool:
        """Whether it is unknown if something is due. A partition that never had a record has nothing to report."""
        return not idle.is_reported and (idle.offset > 0 or log.topic in self._awaited)

    def _write_until_stopped(self) -> None:
        pause_s = _POLL_S
        while not self._stopping.wait(pause_s):
            pause_s = _POLL_S
            try:
                self.write_due(time.monotonic())
            except Exception as error:  # noqa: BLE001 - if the thread ended, TICKs would stop without a report
                self._log.warning(
                    "no TICK is written: what is due in idle partitions waits", fault=str(error)
                )
                self.close()
                pause_s = _PAUSE_S
        self.close()
