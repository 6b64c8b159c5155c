"""The clock of ingest times: this machine's, checked against Redis' (`bettong.clocks`)."""

import asyncio
from collections.abc import Callable

from bettong.clocks import CarriedClock, CheckedClock
from bettong.errors import StoreError
from bettong.ingest.refusal import unavailable
from bettong.logs import Logger

# Between two answers Redis' clock is carried on by a monotonic clock, so jumps of this machine's clock do not matter.
_PAUSE_S = 1.0


class IngestClock:
    """`ask_redis` returns Redis' clock, or raises StoreError.

    No record is stamped before its first answer: the log's clock never goes back, so one record of a machine that is
    ahead would move it for good. Later Redis may be away: its clock is carried on.
    """

    def __init__(
        self,
        machine_ns: Callable[[], int],
        ask_redis: Callable[[], int],
        log: Logger,
        redis: CarriedClock | None = None,
    ) -> None:
        self._ask_redis = ask_redis
        self._checked = CheckedClock(machine_ns, log)
        self._redis = redis or CarriedClock()

    def now_ns(self) -> int:
        """Unix ns. From any thread. Raises Refusal (UNAVAILABLE) before the first answer."""
        redis_ns = self._redis.now_ns
        if redis_ns is None:
            raise unavailable(
                "the sender has not heard of Redis' clock since it started, and stamps no record by its own alone; it"
                " asks every second: connect again in a while, and see that Redis answers (BETTONG_REDIS)"
            )
        return self._checked.now_ns(redis_ns)

    async def ask(self) -> None:
        """Reads Redis' clock, unless Redis is away."""
        try:
            self._redis.hear(await asyncio.to_thread(self._ask_redis))
        except StoreError:
            return  # leases report it

    async def run(self) -> None:
        """Reads Redis' clock every second, until it is cancelled."""
        while True:
            await asyncio.sleep(_PAUSE_S)
            await self.ask()
