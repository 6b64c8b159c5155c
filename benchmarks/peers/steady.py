"""One run at a fixed rate: how late the results are, by when their records were due.

    opening records ─> their results are there ─> records at their due times ─> the warm-up is over: the clock of CPU
    starts ─> all results are there

A record that is fed late counts from when it was due, so what a slow contestant delays is not left out (Gil Tene's
coordinated omission). A result counts when a reader of committed records has it; each is checked as it comes.
"""

import math
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event

from benchmarks.measuring import Sample
from benchmarks.peers.answered import AnsweredRecords
from benchmarks.peers.fixed_rate import FixedRate, paced
from benchmarks.peers.load import Load
from benchmarks.peers.race import (
    RaceError,
    Running,
    Start,
    Trial,
    checked_value,
    cpu_s_of,
    feed,
    reader_of_results,
    trial_of,
)
from benchmarks.waits import PERCENTILES, Waits
from bettong.closing import Closing
from bettong.edges.kafka_log.librdkafka import polled

# What a run measures, and in which unit.
METRICS = (*((f"p{each:g}", "ms") for each in PERCENTILES), ("CPU", "% of a core"))

_POLL_MS = 20
_CHECK_S = 0.1
_BATCH = 10_000
# What comes twice comes within this time.
_READ_ON_S = 1.0


def run(
    start: Start, load: Load, rate: FixedRate, *, partitions: int, processes: int, s_max: float, merges: bool
) -> list[Sample]:
    """A sample for each of METRICS. `merges`: see AnsweredRecords. Raises RaceError."""
    with (
        trial_of(load.topics, partitions=partitions, processes=processes) as trial,
        start(trial) as running,
        _Arrivals(trial, AnsweredRecords(load, merges=merges), running, s_max) as arrivals,
        ThreadPoolExecutor(1, "feeder") as feeder,
    ):
        feed(trial.bootstrap, load.opening)
        arrivals.read(left=len(load.timed))
        stopping, begun_s = Event(), time.monotonic()
        fed = feeder.submit(feed, trial.bootstrap, paced(load.timed, rate, begun_s, stopping))
        try:
            arrivals.read(until_s=begun_s + rate.warm_up_s)
            spent_s, measured_from_s = cpu_s_of(running), time.monotonic()
            arrivals.read()
            seconds = time.monotonic() - measured_from_s
            spent_s = cpu_s_of(running) - spent_s
            arrivals.read_on()
        finally:
            stopping.set()
        fed.result()
    return [*waits_of(arrivals.came, rate, begun_s).samples(), Sample(100 * spent_s / seconds)]


def waits_of(came: Sequence[tuple[int, float]], rate: FixedRate, begun_s: float) -> Waits:
    """From when records were due until they had their results, of those behind the warm-up.

    `came`: the number of each record, and when its result was there, by the same clock as `begun_s`.
    """
    waits = Waits()
    for number, now_s in came:
        if rate.is_measured(number):
            waits.note(now_s - begun_s - rate.due_s(number))
    return waits


class _Arrivals(Closing):
    """Reads results as they are committed, and checks them. `came`: each record, and when it had its result.

    A context manager. All that reads raises RaceError: for a wrong result, a contestant that died, or when `s_max` is
    over.
    """

    def __init__(self, trial: Trial, answered: AnsweredRecords, running: Running, s_max: float) -> None:
        self.came: list[tuple[int, float]] = []
        self._answered, self._running = answered, running
        self._deadline = time.monotonic() + s_max
        self._check_at_s = 0.0
        self._consumer = reader_of_results(trial.bootstrap, trial.partitions)

    def close(self) -> None:
        """Closes the connection."""
        self._consumer.close()

    def read(self, *, left: int = 0, until_s: float = math.inf) -> None:
        """Reads until so many records are left without a result, or until then (monotonic)."""
        while self._answered.left > left and (now_s := time.monotonic()) < until_s:
            self._take()
            if now_s >= self._check_at_s:
                self._check_at_s = now_s + _CHECK_S
                self._running.check()
            if now_s > self._deadline:
                raise RaceError(f"too slow: {self._answered.left} records have no result in time")

    def read_on(self) -> None:
        """What should not come: results that are repeated."""
        until_s = time.monotonic() + _READ_ON_S
        while time.monotonic() < until_s:
            self._take()

    def _take(self) -> None:
        records = polled(self._consumer, _POLL_MS, _BATCH)
        now_s = time.monotonic()
        for record in records:
            self.came += [(number, now_s) for number in self._answered.note(checked_value(record))]
