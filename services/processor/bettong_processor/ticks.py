"""TICKs that the processor writes into a partition of its own input, so that time passes where no record comes.

What is due by the log clock (`PartitionWorker.due_ns`) happens with the first record from then on. Where none comes,
the processor appends a TICK: a record like any other, which a replay meets at the same offset. Both schedules decide by
this module; it writes nothing itself.
"""

from dataclasses import dataclass

from bettong.errors import LogError

# Between two TICKs of a partition. What is due a moment later waits this long: that bounds what is written where a
# million states end one after the other, at a quarter of what people notice.
TICK_S_MIN = 0.2


@dataclass(slots=True)
class TickPacing:
    """When a partition may get its next TICK: one at a time, and TICK_S_MIN apart. Seconds of one monotonic clock.

    So a log that is away, or a partition that is far behind, gathers no TICKs. `finish` may be called from another
    thread.
    """

    _begun_s: float = float("-inf")
    _in_flight: bool = False
    _offset: int = -1

    def allows(self, next_offset: int, now_s: float) -> bool:
        """Whether one may be written now. `next_offset`: the partition's; what is below was folded."""
        return not self._in_flight and next_offset > self._offset and now_s - self._begun_s >= TICK_S_MIN

    def begin(self, now_s: float) -> None:
        """One is appended now."""
        self._begun_s, self._in_flight = now_s, True

    def finish(self, answer: int | LogError) -> None:
        """The log has answered: with its offset, or why it was not appended."""
        if not isinstance(answer, LogError):
            self._offset = answer
        self._in_flight = False
