"""A Spark worker that joins while the resident schedule runs gets its share; one that takes its leave gives it back."""

from pathlib import Path

import pytest

from bettong.config.processor import Schedule
from bettong.edges.redis_store import RedisStore
from bettong.edges.redis_store.membership import RedisMembership
from examples.market_spread_client import MarketSpreadClient
from examples.market_spread_load import INITIAL_QUOTES, rounds
from examples.market_spread_oracle import by_symbol, rejected
from tests.e2e.conftest import PARTITIONS, RunningSuite, StartSuite
from tests.servers.spark_cluster import SparkCluster
from tests.waiting import eventually

LOAD = list(rounds(9_000, seed=20261122, round_messages=3_000))
MEMORY_MB = 1024
_CONFIGURATION = """
spark.driver.host 127.0.0.1
spark.driver.extraJavaOptions -XX:+UseSerialGC -XX:TieredStopAtLevel=1
spark.executor.extraJavaOptions -XX:+UseSerialGC -XX:TieredStopAtLevel=1
spark.executor.memory 512m
"""


@pytest.mark.timeout(600)
def test_a_worker_that_joins_gets_its_share_and_one_that_leaves_gives_it_back(
    start_suite: StartSuite, tmp_path: Path
) -> None:
    (tmp_path / "spark-defaults.conf").write_text(_CONFIGURATION)
    with SparkCluster(tmp_path, hosts=2, cores=1, memory_mb=MEMORY_MB, at_work=1) as cluster:
        running = start_suite(
            "examples/market_spread/risk_check.py",
            schedule=Schedule.RESIDENT,
            compiled=False,
            keep=tmp_path / "kept",
            settings={"spark_master": cluster.master},
            environment={"processor": {"SPARK_CONF_DIR": str(tmp_path)}},
        )
        with MarketSpreadClient(running.sender) as client:
            client.initial_quotes(INITIAL_QUOTES)
            client.rounds(LOAD[:1])
            held(running, [PARTITIONS])
            cluster.workers[1].start()
            held(running, [PARTITIONS // 2] * 2)
            client.rounds(LOAD[1:2])
            cluster.workers[1].terminate()
            held(running, [PARTITIONS])
            said = running.suite.record.services["processor"].log.read_text()
            assert "a slot has lost its task" in said, "Spark's word comes before the slot's time is over"
            client.rounds(LOAD[2:])
        running.settle()
        found = running.bytes_of("rejected")
        cluster.workers[0].terminate()
        held(running, [0])
        running.suite.stop()
    record = running.suite.record.services["processor"]
    said = record.log.read_text()
    assert by_symbol(b"".join(found.values())) == rejected(LOAD)
    assert record.restarts == 0
    last = said.splitlines()[-40:]
    assert " stopped " in last[-1], ["it was killed, as it waited for an executor, and none was left", *last]


def held(running: RunningSuite, shares: list[int]) -> None:
    """Waits until slots 0, 1 ... hold just so many partitions."""
    with RedisStore(running.suite.record.redis_connection, running.suite.record.name) as store:
        membership = RedisMembership(store, ttl_ms=1)

        def counts() -> list[int]:
            slots = list(membership.read_members("", range(2)).holders.values())
            return [slots.count(slot) for slot in range(len(shares))]

        eventually(
            lambda: counts() == shares,
            seconds=60,
            what=lambda: f"slots hold {shares} partitions, not {counts()}",
        )
