"""Lag of the stages' partitions, and which of them stall: what a driver reports, under either schedule.

It compares the ends of the logs in Kafka with the offsets that partitions have reported, so records that no task folds
count as well. Lag is up to where the logs ended before these reports were due (`bettong.earlier_ends`): what came since
may be folded already.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from bettong import metrics
from bettong.config.processor import ProcessorSettings
from bettong.earlier_ends import EarlierEnds
from bettong.edges.kafka_log import LogAdmin
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.errors import LogError, StoreError
from bettong.identifiers import PartitionId, TopicPartition, in_use
from bettong.logs import Logger
from bettong_processor.reporting import held_up
from bettong_processor.rest import Rest

# Between two checks, and so the age of what `status` shows. Each check sends a request to the broker and to Redis.
_POLL_S = 0.5
# How long the list of topics is cached: a run's partitions never change.
_TOPICS_KNOWN_S = 5.0
# A broker that does not answer within this is reported as unreachable: reports are to be true within 2 s.
_ANSWER_WAIT_S_MAX = 1.5
# A partition whose offset has not moved for this long although records wait is reported. Longer than a usual
# micro-batch, which moves offsets at its end.
STALLED_S_MIN = 3.0

Offsets = Mapping[TopicPartition, int]


class LogOffsets(Protocol):
    """Where logs begin and end."""

    def ends(self, topics: Mapping[str, str]) -> Offsets:
        """See LogAdmin."""

    def beginnings(self, topics: Mapping[str, str]) -> Offsets:
        """See LogAdmin."""

    def close(self) -> None:
        """See LogAdmin."""


@dataclass(frozen=True, slots=True)
class Idle:
    """A partition whose log is folded to its end, `offset`. `due_ns`: see PartitionWorker; None: nothing is due.

    `is_reported`: whether the partition has reported `due_ns` for this offset; else it is unknown.
    """

    offset: int
    due_ns: int | None
    is_reported: bool


class ReportedPartitions(Protocol):
    """The live records of partitions."""

    def partitions(self) -> Mapping[PartitionId, Mapping[str, str]]:
        """See LiveMetrics."""


@dataclass(slots=True)
class Stalls:
    """Since when the offset of each partition with lag has not moved. Pure; seconds of one monotonic clock."""

    _seen: dict[TopicPartition, tuple[int, float]] = field(default_factory=dict)

    def observe(self, ends: Offsets, offsets: Offsets, now_s: float) -> dict[TopicPartition, float]:
        """Adds an observation; returns for how many seconds each partition with lag has not moved."""
        before, self._seen = self._seen, {}
        for partition, offset in offsets.items():
            if ends.get(partition, 0) > offset:
                known = before.get(partition)
                self._seen[partition] = known if known is not None and known[0] == offset else (offset, now_s)
        return {partition: now_s - since_s for partition, (_, since_s) in self._seen.items()}


class Progress:
    """Checks in its own thread, from `start` to `stop`, for Kafka may be unreachable for long."""

    def __init__(
        self,
        log: LogOffsets,
        reported: ReportedPartitions,
        stages: Mapping[str, str],
        *,
        partitions: int,
        report_interval_s: float,
        clock: Callable[[], float],
        logger: Logger,
        committed: Callable[[], Offsets] = dict,
    ) -> None:
        """`stages`: by their topics, each with `partitions` in use. `report_interval_s`: of partitions.

        `committed`: offsets by (topic, partition) that are known from elsewhere to be folded, as Redis may have lost
        the partitions' reports.
        """
        self._log = log
        self._reported = reported
        self._stages = stages
        self._partitions = partitions
        self._clock = clock
        self._logger = logger
        self._committed = committed
        self._stalls = Stalls()
        self._metrics: dict[str, str | float] = {}
        self._idle: Mapping[TopicPartition, Idle] = {}
        self._waits_for = ""
        self._ends: Offsets = {}
        self._earlier = EarlierEnds[TopicPartition](report_interval_s)
        self._rest = Rest(clock())
        self._stopping = threading.Event()

    @classmethod
    def of(
        cls,
        settings: ProcessorSettings,
        store: RedisStore,
        stages: Mapping[str, str],
        logger: Logger,
        committed: Callable[[], Offsets] = dict,
    ) -> "Progress":
        """For the settings' Kafka, with its own client, and the partitions' live records in Redis."""
        log = LogAdmin(
            settings.kafka_connection,
            answer_wait_s_max=_ANSWER_WAIT_S_MAX,
            topics_known_s=_TOPICS_KNOWN_S,
        )
        reported = LiveMetrics(store)
        return cls(
            log,
            reported,
            stages,
            partitions=settings.partitions,
            report_interval_s=settings.live_interval_ms / 1000,
            clock=time.monotonic,
            logger=logger,
            committed=committed,
        )

    def start(self) -> None:
        """Starts the thread."""
        threading.Thread(target=self._run, name="progress", daemon=True).start()

    def stop(self) -> None:
        """Ends the checks soon; does not wait."""
        self._stopping.set()

    def metrics(self) -> Mapping[str, str | float]:
        """The lag, in total and of each partition, and the stalled partitions. Empty while Kafka or Redis is away."""
        return self._metrics

    def idle(self) -> Mapping[TopicPartition, Idle]:
        """The partitions without lag, by topic and number. Empty while Kafka or Redis is away."""
        return self._idle

    def waits_for(self) -> str:
        """Why Kafka cannot be read, or what holds partitions up; "" for nothing."""
        return self._waits_for

    @property
    def at_rest(self) -> bool:
        """Whether for a while no record has arrived, and there is no lag."""
        return self._rest.has_begun(self._clock())

    def check(self) -> None:
        """One check. Raises unexpected errors only."""
        self._check()
        if not self._idle or len(self._idle) < len(self._ends):
            self._rest.end(self._clock())

    def _check(self) -> None:
        try:
            ends = in_use(self._log.ends(self._stages), self._partitions)
            ends_before = self._earlier.before(self._clock())
            self._earlier.add(ends, self._clock())
            reported = in_use(self._reported.partitions(), self._partitions)
            offsets = self._folded(ends, reported)
        except LogError as error:
            self._metrics, self._idle, self._waits_for = {}, {}, str(error)
            return
        except StoreError:
            self._metrics, self._idle, self._waits_for = {}, {}, ""
            return
        self._waits_for = held_up(reported)
        if ends != self._ends:
            self._ends = ends
            self._rest.end(self._clock())
        self._idle = idle(ends, offsets, reported, self._stages)
        stalls = self._stalls.observe(ends, offsets, self._clock())
        self._metrics = {
            **metrics.lags(ends if ends_before is None else ends_before, offsets, self._stages),
            **{
                f"{metrics.STALLED.name}/{self._stages[topic]}/{partition}": round(seconds, 1)
                for (topic, partition), seconds in stalls.items()
                if seconds >= STALLED_S_MIN
            },
        }

    def _folded(self, ends: Offsets, reported: Mapping[PartitionId, Mapping[str, str]]) -> Offsets:
        """See `folded`. At rest the broker is not asked where logs begin: no log begins behind its end."""
        committed = self._committed()
        offsets = folded(ends, {}, reported, self._stages, committed)
        if offsets == ends:
            return offsets
        return folded(ends, self._log.beginnings(self._stages), reported, self._stages, committed)

    def _run(self) -> None:
        try:
            while not self._stopping.wait(_POLL_S):
                self.check()
        except Exception as error:  # noqa: BLE001 - whatever ends this thread is reported
            if not self._stopping.is_set():
                self._waits_for = f"lag is not measured any more: start the processor again ({error!r})"
                self._logger.warning(
                    "lag is not measured any more, start the processor again", fault=repr(error)
                )
        finally:
            self._metrics, self._idle = {}, {}
            self._log.close()


def folded(
    ends: Offsets,
    begins: Offsets,
    reported: Mapping[PartitionId, Mapping[str, str]],
    stages: Mapping[str, str],
    committed: Offsets,
) -> dict[TopicPartition, int]:
    """The next offset of each partition: the highest of its report, `committed`, and the beginning of its log."""
    found = {}
    for partition in ends:
        record = reported.get(PartitionId(stages[partition.topic], partition.partition), {})
        own = int(record.get(metrics.OFFSET.name) or 0)
        found[partition] = max(own, committed.get(partition, 0), begins.get(partition, 0))
    return found


def idle(
    ends: Offsets,
    offsets: Offsets,
    reported: Mapping[PartitionId, Mapping[str, str]],
    stages: Mapping[str, str],
) -> dict[TopicPartition, Idle]:
    """The partitions that are folded to the end of their logs, including those that never had a record."""
    found = {}
    for log, offset in offsets.items():
        if offset == ends[log]:
            record = reported.get(PartitionId(stages[log.topic], log.partition), {})
            is_reported = metrics.DUE.name in record and int(record.get(metrics.OFFSET.name) or 0) == offset
            due = record.get(metrics.DUE.name)
            found[log] = Idle(offset, int(due) if is_reported and due else None, is_reported)
    return found
