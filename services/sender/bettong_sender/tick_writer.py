"""Writes TICKs to the log while the sender runs: see `ticker`. Used on the event loop."""

import asyncio
import contextlib

from bettong.errors import LogError
from bettong.identifiers import NO_SEQUENCE
from bettong.ingest.refusal import Refusal
from bettong_sender.intake import Intake
from bettong_sender.ledger import Entry

_S_NS = 1_000_000_000


class TickWriter:
    """Writes one round of TICKs at a time: the next one waits until the log has answered."""

    def __init__(self, intake: Intake, tick_s: float) -> None:
        self._intake = intake
        self._tick_s = tick_s
        self._loop = asyncio.get_running_loop()
        self._answered = asyncio.Event()

    async def run(self) -> None:
        """Writes rounds until it is cancelled; none if no source's stage needs time."""
        if not any(route.needs_time for route in self._intake.routes.values()):
            await asyncio.Event().wait()
        while True:
            await asyncio.sleep(self._tick_s)
            await self.tick()

    async def tick(self) -> None:
        """Writes the TICKs that are due; returns when the log has answered, at the latest after the log's timeout."""
        now_s, status = self._loop.time(), self._intake.status
        try:
            now_ns = self._intake.now_ns()
        except Refusal:  # no frame is accepted without a clock
            return
        due = self._intake.ticker.round(now_s, self._tick_s)
        status.watermark_lags = {
            source: round((now_ns - watermark_ns) / _S_NS, 3)
            for source, watermark_ns in self._intake.ticker.slowest_ns(now_s).items()
        }
        # While the buffer is full, the log is behind: frames go first.
        if not due.notices or self._intake.buffer.is_full:
            return
        entry = Entry(NO_SEQUENCE, credits=0)
        with contextlib.suppress(Refusal):  # there is no log now, which `log_keeper` reports
            written = await self._intake.append(self, entry, due.number)
            while not entry.is_answered:
                self._answered.clear()
                await self._answered.wait()
            if entry.is_durable:
                due.note_durable()
                status.ticks += len(written.appends)

    def answered(self, entry: Entry, partition: int, answer: int | LogError, *, opens: bool) -> bool:
        """See Appender."""
        del entry, partition, opens
        return not isinstance(answer, LogError)

    def wake(self) -> None:
        """See Appender."""
        self._answered.set()
