"""The whole suite's latency: from when a client's frame was due until a subscriber of the receiver has its results.

Market Spread's load, 100,000 messages a second in frames of 500. A round of it must be durable before the next begins
(examples/market_spread_load.py): once in 1.3 s the client waits for that, and is late, which counts as latency.
"""

import tempfile
import threading
import time
from pathlib import Path

from benchmarks.latency import Pace
from benchmarks.measuring import Sample
from benchmarks.waits import WARM_S, Waits
from benchmarks.workload import APPLICATION, Workload, workload
from bettong.client.sender import Sender
from bettong.client.subscriber import Subscriber
from bettong.config.processor import Schedule
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.lab.folding import S_MAX, await_folded
from bettong.local.options import SuiteOptions
from bettong.local.suite import Suite
from examples.market_spread_client import MarketSpreadClient
from examples.market_spread_load import INITIAL_QUOTES
from examples.market_spread_oracle import by_symbol

_FLUSH_S = 60.0


def samples(*, schedule: Schedule, partitions: int, compiled: bool = True) -> list[Sample]:
    """One run: how late results were at PERCENTILES, in ms. The results are checked."""
    pace = Pace()
    load = workload(pace.frames * pace.frame_messages)
    with tempfile.TemporaryDirectory(prefix="bettong-benchmark-") as folder:
        options = SuiteOptions(
            application=str(APPLICATION),
            partitions=partitions,
            schedule=schedule,
            compiled=compiled,
            results=Path(folder) / "results",
        )
        with Suite(options) as suite, RedisStore(suite.record.redis_connection, suite.record.name) as store:
            with MarketSpreadClient(suite.record.sender) as client:
                await_folded(LiveMetrics(store), client.initial_quotes(INITIAL_QUOTES))
            with Subscriber(suite.record.receiver, "rejected") as results:
                reading = _Reading(results, load.result_bytes)
                reading.start()
                reading.begun_s = time.time()
                _send(suite.record.sender, load, pace, reading.begun_s)
                reading.join(S_MAX)
    assert by_symbol(bytes(reading.content)) == load.rejected, "the results are wrong"
    return reading.waits.samples()


def _send(target: str, load: Workload, pace: Pace, begun_s: float) -> None:
    """An open loop: each frame when it is due, or at once when it is overdue."""
    index = 0
    with Sender(target, "nbbo") as quotes, Sender(target, "orders") as orders:
        for each in load.rounds:
            for start in range(0, each.messages // 2, pace.frame_messages):
                for sender, columns in ((quotes, each.quotes), (orders, each.orders)):
                    due_s = begun_s + pace.due_s(index)
                    time.sleep(max(0.0, due_s - time.time()))
                    piece = {
                        name: column[start : start + pace.frame_messages] for name, column in columns.items()
                    }
                    sender.send_columns(piece, sent_ns=int(due_s * 1e9))
                    index += 1
            quotes.flush(_FLUSH_S)
            orders.flush(_FLUSH_S)


class _Reading(threading.Thread):
    """Takes results until there are as many bytes as there must be."""

    def __init__(self, results: Subscriber, size: int) -> None:
        super().__init__(daemon=True)
        self._results = results
        self._size = size
        self.begun_s = 0.0
        self.content = bytearray()
        self.waits = Waits()

    def run(self) -> None:
        for result in self._results:
            late_s = time.time() - result.sent_ns / 1e9
            self.content += b"".join(result.messages)
            if result.sent_ns / 1e9 - self.begun_s > WARM_S:
                self.waits.note(late_s)
            if len(self.content) >= self._size:
                return
