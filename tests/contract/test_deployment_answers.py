"""What the console's pages are tested over is like what a deployment answers: one set of rules for both."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bettong import metrics
from bettong.config.connection_settings import KafkaConnection, RedisConnection
from bettong.edges.kafka_log import LogAdmin, LogWriter
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.edges.redis_store.membership import RedisMembership, SlotAssignment, Task
from bettong.identifiers import PartitionId, TopicPartition
from bettong.inspection.deployment import DeploymentAnswers, inspection
from bettong.inspection.live.deployment import LiveDeployment
from bettong.inspection.overview import service_of
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from bettong.services import SERVICES
from bettong.topics import stage_topic
from tests.console.recordings import recorded
from tests.waiting import eventually

BESIDE = {metrics.PID, metrics.AGE_S, metrics.TTL_S, "run", metrics.GAP_OFFSET}
KNOWN = {metric.name for metric in metrics.ALL} | BESIDE


def keeps_the_rules(answers: DeploymentAnswers) -> None:
    assert answers.silent == {}
    assert answers.logs is not None
    for record in answers.live.values():
        assert service_of(record) in SERVICES
        assert record[metrics.STATE.name] in metrics.STATES
        assert float(record[metrics.SINCE.name]) > 0
        assert float(record[metrics.AGE_S]) < float(record[metrics.TTL_S])
    for record in (*answers.live.values(), *answers.partitions.values()):
        assert {name.partition("/")[0] for name in record} <= KNOWN
    assert answers.partitions.keys() <= answers.logs.ends.keys()
    assert answers.logs.begins.keys() == answers.logs.ends.keys()
    assert answers.slots.keys() <= answers.partitions.keys()
    for id_, record in answers.partitions.items():
        assert answers.logs.begins[id_] <= int(record[metrics.OFFSET.name]) <= answers.logs.ends[id_]


@pytest.mark.parametrize("name", ["visits", "behind"])
def test_a_recording_keeps_the_rules(name: str) -> None:
    for look in recorded(name):
        keeps_the_rules(look.answers)


def test_a_deployment_keeps_them_and_is_seen_as_it_is(
    kafka: KafkaBroker, redis_server: RedisServer, unique_name: Callable[..., str]
) -> None:
    name, id_ = unique_name(), PartitionId("s", 0)
    with LogAdmin(kafka.bootstrap) as admin:
        topic = stage_topic(name, "s")
        admin.create_topics([topic], partitions=1, replication=1, frame_bytes_max=100_000)
    with RedisStore(redis_server.url, name) as store:
        writing = LiveMetrics(store)
        record: dict[str, str | int | float] = {
            metrics.SERVICE.name: "processor",
            metrics.STATE.name: "running",
            metrics.SINCE.name: 1.5,
        }
        writing.write_live("processor", record, 10)
        writing.write_partition(id_, {metrics.OFFSET.name: 0, metrics.MESSAGES.name: 7})
        members = RedisMembership(store, ttl_ms=10_000)
        members.begin_run("1")
        members.publish_assignment("1", SlotAssignment(1, {id_: 3}))
        members.send_heartbeat(Task(run="1", slot=3, incarnation=1), 1, wanted=[id_])
        with LiveDeployment(
            name, RedisConnection(redis_server.url), KafkaConnection(kafka.bootstrap)
        ) as live:
            for _ in range(2):  # over connections that stay
                answers = live.answers(redis_may_be_away=True)
                keeps_the_rules(answers)
                assert answers.slots == {id_: 3}
                assert answers.logs is not None
                assert answers.logs.ends == {id_: 0}
                assert answers.partitions[id_][metrics.MESSAGES.name] == "7"


def test_who_is_away_is_named_and_the_others_answer(
    redis_server: RedisServer, unique_name: Callable[..., str]
) -> None:
    nobody = KafkaConnection("127.0.0.1:1")
    with LiveDeployment(unique_name(), RedisConnection(redis_server.url), nobody) as live:
        assert live.answers(redis_may_be_away=True).silent.keys() == {"kafka"}
    with LiveDeployment(unique_name(), RedisConnection("redis://127.0.0.1:1/0"), None) as live:
        assert live.answers(redis_may_be_away=True).silent.keys() == {"redis"}


def test_lag_is_of_what_a_worker_had_time_to_fold(
    kafka: KafkaBroker, redis_server: RedisServer, unique_name: Callable[..., str]
) -> None:
    name, id_ = unique_name(), PartitionId("s", 0)
    log = TopicPartition(stage_topic(name, "s"), 0)
    with (
        LogAdmin(kafka.bootstrap) as admin,
        RedisStore(redis_server.url, name) as store,
        LogWriter(kafka.bootstrap, frame_bytes_max=1000, buffer_bytes_max=100_000) as writer,
        LiveDeployment(name, RedisConnection(redis_server.url), KafkaConnection(kafka.bootstrap)) as live,
    ):
        admin.create_topics([log.topic], partitions=1, replication=1, frame_bytes_max=1000)
        writing = LiveMetrics(store)
        folds: dict[str, str | int | float] = {metrics.SERVICE.name: "processor", metrics.LAG.name: 0}
        writing.write_live("processor", folds, 1000)
        written = 0

        def lag_when_reported(offset: int) -> tuple[int | None, int | None]:
            """After one record more."""
            nonlocal written
            writer.append(log, b"record", lambda _: None)
            writer.flush(10)
            written += 1
            writing.write_partition(id_, {metrics.OFFSET.name: offset})
            (row,) = inspection(name, [], live.answers()).partitions
            return row.lag, row.unfolded

        assert lag_when_reported(0) == (1, 1), "no report came while it waited for one"
        eventually(
            lambda: lag_when_reported(written) == (0, 1), what="no lag, while each report lacks one record"
        )
        eventually(lambda: (lag_when_reported(0)[0] or 0) > 1, what="the lag of a worker that stands")
