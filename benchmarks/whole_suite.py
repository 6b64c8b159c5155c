"""The whole suite: gRPC client -> sender -> Kafka -> processor -> Kafka -> receiver -> files."""

import tempfile
import time
from pathlib import Path

from benchmarks.measuring import Sample, Stopwatch
from benchmarks.workload import APPLICATION, Workload
from bettong.config.processor import Schedule
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.lab.folding import S_MAX, await_folded
from bettong.local.options import SuiteOptions
from bettong.local.suite import Suite
from examples.market_spread_client import MarketSpreadClient
from examples.market_spread_load import INITIAL_QUOTES
from examples.market_spread_oracle import by_symbol

_POLL_S = 0.02


def speed(load: Workload, *, schedule: Schedule, compiled: bool, partitions: int) -> Sample:
    """Messages a second from the first one after the initial quotes until the last result lies in its file.

    One run on a suite of its own; the result files are checked.
    """
    with tempfile.TemporaryDirectory(prefix="bettong-benchmark-") as folder:
        results = Path(folder) / "results"
        options = SuiteOptions(
            application=str(APPLICATION),
            partitions=partitions,
            schedule=schedule,
            compiled=compiled,
            results=results,
        )
        with (
            Suite(options) as suite,
            RedisStore(suite.record.redis_connection, suite.record.name) as store,
            MarketSpreadClient(suite.record.sender) as client,
        ):
            initial = client.initial_quotes(INITIAL_QUOTES)
            # By then every partition has its connection and its state.
            await_folded(LiveMetrics(store), initial)
            watch = Stopwatch(suite.record.services)
            client.rounds(load.rounds)
            content = _await(results / "rejected", load.result_bytes)
            sample = watch.sample(load.messages)
    assert by_symbol(content) == load.rejected, "the result files are wrong"
    return sample


def _await(folder: Path, size: int) -> bytes:
    """The result files' content, once there are `size` bytes."""
    deadline = time.monotonic() + S_MAX
    while sum(path.stat().st_size for path in folder.glob("*.bin")) < size:
        assert time.monotonic() < deadline, f"not all results within {S_MAX} s"
        time.sleep(_POLL_S)
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.bin")))
