"""The clock that records are stamped with: this machine's, held against Redis' (`bettong.clocks`)."""

import asyncio
from collections.abc import Callable

from bettong.clocks import CarriedClock, CheckedClock
from bettong.errors import StoreError
from bettong.logs import Logger

# What this machine's clock does in between is nothing to Redis' one, which is carried on without it.
_PAUSE_S = 1.0


class IngestClock:
    """`ask_redis` gives Redis' clock, or raises StoreError: before its first answer the machine's own one counts."""

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
        """Unix ns. From any thread."""
        redis_ns = self._redis.now_ns
        return self._checked.machine_ns() if redis_ns is None else self._checked.now_ns(redis_ns)

    async def ask(self) -> None:
        """Hears of Redis' clock, unless Redis is away."""
        try:
            self._redis.hear(await asyncio.to_thread(self._ask_redis))
        except StoreError:
            return  # leases report it

    async def run(self) -> None:
        """Asks now and then, until it is cancelled."""
        while True:
            await asyncio.sleep(_PAUSE_S)
            await self.ask()
