"""Tasks that Spark runs twice, because the first copy is slow: zombies that change nothing."""

import json
import signal
from pathlib import Path

import pytest

from bettong.config.processor import Schedule
from examples.market_spread_client import MarketSpreadClient
from examples.market_spread_load import INITIAL_QUOTES, rounds
from examples.market_spread_oracle import by_symbol, rejected
from tests.e2e.conftest import StartSuite
from tests.servers.spark_cluster import SparkCluster
from tests.waiting import eventually

LOAD = list(rounds(60_000, seed=20261121, round_messages=6_000))
# Memory of a worker, MiB: that of the one executor which it has.
MEMORY = 1024
STOPS = 2
# As eager as Spark lets it be: a copy of whatever takes longer than most others do.
_SPECULATION = """
spark.speculation true
spark.speculation.interval 50ms
spark.speculation.quantile 0.25
spark.speculation.multiplier 1.1
spark.speculation.minTaskRuntime 50ms
spark.speculation.task.duration.threshold 500ms
spark.driver.host 127.0.0.1
spark.executor.memory 512m
spark.eventLog.enabled true
spark.eventLog.rolling.enabled false
spark.eventLog.compress false
spark.eventLog.dir file://{events}
"""


@pytest.mark.long
@pytest.mark.timeout(600)
def test_tasks_that_spark_runs_twice_change_nothing(start_suite: StartSuite, tmp_path: Path) -> None:
    """All Python workers of one host are stopped while tasks are due; the other host runs copies of theirs."""
    events = tmp_path / "events"
    events.mkdir()
    (tmp_path / "spark-defaults.conf").write_text(_SPECULATION.format(events=events))
    with SparkCluster(tmp_path, hosts=2, cores=2, memory_mb=MEMORY) as cluster:
        running = start_suite(
            "examples/market_spread/risk_check.py",
            schedule=Schedule.MICRO_BATCH,
            settings={"spark_master": cluster.master},
            environment={"processor": {"SPARK_CONF_DIR": str(tmp_path)}},
        )
        with MarketSpreadClient(running.sender) as client:
            client.initial_quotes(INITIAL_QUOTES)
            client.rounds(LOAD[:2])
            running.settle()
            for index, each in enumerate(LOAD[2:]):
                stopped = cluster.python_workers(index % 2) if index < STOPS else []
                assert stopped or index >= STOPS
                before = copies(events)
                try:
                    for worker in stopped:
                        worker.send_signal(signal.SIGSTOP)
                    client.rounds([each])
                    if stopped:
                        eventually(lambda least=before: copies(events) > least, seconds=60)  # type: ignore[misc]
                finally:
                    for worker in stopped:
                        if worker.is_running():
                            worker.send_signal(signal.SIGCONT)
        running.settle()
        found = running.bytes_of("rejected")
        running.suite.stop()
    assert copies(events) >= STOPS
    assert by_symbol(b"".join(found.values())) == rejected(LOAD)


def copies(events: Path) -> int:
    """Speculative tasks that ended well before those they are copies of, as Spark's own record of events says."""
    return sum(
        event["Event"] == "SparkListenerTaskEnd"
        and event["Task Info"]["Speculative"]
        and event["Task End Reason"]["Reason"] == "Success"
        for path in events.iterdir()
        for line in path.read_text().splitlines()
        if line.endswith("}") and (event := json.loads(line))
    )
