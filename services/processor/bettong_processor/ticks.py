"""TICKs: records that the processor appends to a partition of its own input so that time advances while it is idle.

Timers and windows that are due by the log clock (`PartitionWorker.due_ns`) fire with the next record. If none arrives,
the processor appends a TICK: a record like any other, which a replay reads at the same offset. Both schedules use this
module to decide when; it writes nothing itself.
"""

from dataclasses import dataclass

from bettong.errors import LogError

# The least time between two TICKs of a partition, and so the longest delay of what is due just after one. It bounds the
# TICKs where a million states expire one after the other, at a quarter of the delay that people notice.
TICK_S_MIN = 0.2


@dataclass(slots=True)
class TickPacing:
    """When a partition may get its next TICK: one at a time, and TICK_S_MIN apart. Seconds of one monotonic clock.

    So TICKs do not pile up while Kafka is unreachable, or in a partition that lags far behind. `finish` may be called
    from another thread.
    """

    _begun_s: float = float("-inf")
    _in_flight: bool = False
    _offset: int = -1

    def allows(self, next_offset: int, now_s: float) -> bool:
        """Whether one may be appended now. `next_offset`: records of the partition below it were folded."""
        return not self._in_flight and next_offset > self._offset and now_s - self._begun_s >= TICK_S_MIN

    def begin(self, now_s: float) -> None:
        """A TICK is appended now."""
        self._begun_s, self._in_flight = now_s, True

    def finish(self, answer: int | LogError) -> None:
        """The broker has answered: with the TICK's offset, or why it was not appended."""
        if not isinstance(answer, LogError):
            self._offset = answer
        self._in_flight = False
