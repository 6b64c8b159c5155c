"""TICKs that the processor writes into a partition of its own input, so that time passes where no record comes.

What is due by the log clock (`PartitionWorker.due_ns`) happens with the first record from then on. Where none comes,
the processor appends a TICK: a record like any other, which a replay meets at the same place. Both schedules decide by
this module; it writes nothing itself.
"""

from collections.abc import Callable
from dataclasses import dataclass

from bettong.errors import LogError
from bettong.logs import Logger

# Between two TICKs of a partition. What is due a moment later waits this long: that bounds what is written where a
# million states end one after the other, at a quarter of what people notice.
TICK_S_MIN = 0.2
# Clocks that differ by more are told of: somebody has to set one of them.
_APART_NS_MAX = 60 * 1_000_000_000


class TickClock:
    """The time that TICKs carry: the earlier of this machine's clock and Redis'.

    A log clock never goes back, so a TICK from a machine that is a day ahead would end what has a day to live. Of two
    clocks both must be ahead for that; one that is behind only makes what is due late.
    """

    def __init__(self, machine_ns: Callable[[], int], log: Logger) -> None:
        self.machine_ns = machine_ns
        self._log = log
        self._told = False

    def now_ns(self, redis_ns: int) -> int:
        """Unix ns, where Redis' clock is at `redis_ns` now."""
        machine_ns = self.machine_ns()
        apart = abs(machine_ns - redis_ns) > _APART_NS_MAX
        if apart and not self._told:
            self._log.warning(
                "the clocks of this machine and of Redis differ; what is due in idle partitions goes by the earlier"
                " one. Set them (NTP, chrony)",
                machine_ahead_s=round((machine_ns - redis_ns) / 1e9),
            )
        self._told = apart
        return min(machine_ns, redis_ns)


@dataclass(slots=True)
class TickPacing:
    """When a partition may get its next TICK: one at a time, and TICK_S_MIN apart. Seconds of one monotonic clock.

    So a log that is away, or a partition that is far behind, gathers no TICKs. `finish` may be called from another
    thread.
    """

    _begun_s: float = float("-inf")
    _under_way: bool = False
    _offset: int = -1

    def allows(self, next_offset: int, now_s: float) -> bool:
        """Whether one may be written now. `next_offset`: the partition's; what is below was folded."""
        return not self._under_way and next_offset > self._offset and now_s - self._begun_s >= TICK_S_MIN

    def begin(self, now_s: float) -> None:
        """One is appended now."""
        self._begun_s, self._under_way = now_s, True

    def finish(self, answer: int | LogError) -> None:
        """The log has answered: with its offset, or why it was not appended."""
        if not isinstance(answer, LogError):
            self._offset = answer
        self._under_way = False
