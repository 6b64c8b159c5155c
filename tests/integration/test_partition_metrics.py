"""Live metrics of partitions: they never hold up a task for long, and come back with Redis."""

import time

import pytest
import structlog
from structlog.testing import capture_logs

from bettong import metrics
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.identifiers import PartitionId
from bettong.local.addresses import LOOPBACK, free_ports
from bettong.local.redis_server import RedisServer
from bettong_processor.reporting import PartitionMetrics
from tests.waiting import bound_s, eventually


@pytest.mark.timely
def test_without_redis_metrics_are_left_out_for_a_while() -> None:
    now_s = [0.0]
    with RedisStore(f"redis://{LOOPBACK}:{free_ports(1)[0]}", "metrics") as store, capture_logs() as said:
        partition_metrics = PartitionMetrics(LiveMetrics(store), lambda: now_s[0], structlog.get_logger(), 30)
        begun_s = time.monotonic()
        for partition in range(100):
            partition_metrics.write(PartitionId("stage", partition), {metrics.OFFSET.name: 1})
        assert time.monotonic() - begun_s < bound_s(3.0), "one attempt, not a hundred"
        assert [line["event"] for line in said] == ["live metrics not written"]
        now_s[0] = 60.0
        partition_metrics.write(PartitionId("stage", 0), {metrics.OFFSET.name: 1})
        assert len(said) == 2


def test_metrics_are_written_again_after_connections_were_cut(redis_server: RedisServer) -> None:
    with RedisStore(redis_server.url, "metrics-again") as store:
        live = LiveMetrics(store)
        partition_metrics = PartitionMetrics(live, time.monotonic, structlog.get_logger(), 30)
        partition_metrics.write(PartitionId("stage", 0), {metrics.OFFSET.name: 1})
        # What a restart of Redis does to the connections that it had.
        store.ask(
            "cutting connections", lambda client: client.client_kill_filter(_type="normal", skipme=False)
        )
        partition_metrics.write(PartitionId("stage", 0), {metrics.OFFSET.name: 2})
        assert live.partitions()[PartitionId("stage", 0)][metrics.OFFSET.name] == "2"


def test_a_task_that_runs_twice_never_takes_metrics_back_and_a_later_run_may(
    redis_server: RedisServer,
) -> None:
    """Of two copies the one that was stopped for a while writes last; a later run may fold from further back."""
    with RedisStore(redis_server.url, "metrics-twice") as store:
        live = LiveMetrics(store)
        partition_metrics = PartitionMetrics(live, time.monotonic, structlog.get_logger(), 30)

        def found() -> tuple[str, str]:
            record = live.partitions()[PartitionId("stage", 0)]
            return record[metrics.OFFSET.name], record[metrics.MESSAGES.name]

        def report(offset: int, *, begun_ms: int) -> None:
            reported = {metrics.OFFSET.name: offset, metrics.MESSAGES.name: 10 * offset}
            partition_metrics.write(PartitionId("stage", 0), reported, begun_ms)

        begun_ms = time.time_ns() // 1_000_000
        report(9, begun_ms=begun_ms)
        report(10, begun_ms=begun_ms)
        report(9, begun_ms=begun_ms)
        assert found() == ("10", "100")
        report(99, begun_ms=begun_ms - 1)
        assert found() == ("10", "100")
        report(3, begun_ms=begun_ms + 1)
        assert found() == ("3", "30")


@pytest.mark.parametrize("begun_ms", [time.time_ns() // 1_000_000, None], ids=["micro-batch", "resident"])
def test_a_gap_is_as_old_as_when_it_was_first_reported_whoever_reports_it(
    redis_server: RedisServer, begun_ms: int | None
) -> None:
    """No batch may follow: so its age grows without one."""
    partition = PartitionId("stage", 0)
    with RedisStore(redis_server.url, f"metrics-gap-{begun_ms}") as store:
        live = LiveMetrics(store)

        def report(offset: int, gap: str) -> None:
            one = PartitionMetrics(live, time.monotonic, structlog.get_logger(), 1)
            reported: dict[str, str | int | float] = {
                metrics.OFFSET.name: offset,
                metrics.GAP.name: gap,
                metrics.GAP_ALARM_S: 2,
            }
            one.write(partition, reported, begun_ms)

        def alarm() -> tuple[str, str]:
            record = live.partitions()[partition]
            return record.get(metrics.GAP.name, ""), record.get(metrics.GAP_S.name, "")

        report(10, "a/b, frame 3")
        assert alarm() == ("", "")
        eventually(lambda: alarm()[0] == "a/b, frame 3", seconds=10)
        assert int(alarm()[1]) >= 2
        report(11, "a/b, frame 3")
        assert alarm()[0] == "a/b, frame 3", "another process, the same gap"
        report(9, "")  # folds again what was folded before
        assert alarm()[0] == "a/b, frame 3"
        report(10, "")  # and is still behind where the gap was reported
        assert alarm()[0] == "a/b, frame 3"
        report(12, "a/b, frame 7")
        assert alarm() == ("", ""), "another gap"
        report(13, "")
        assert alarm() == ("", "")
