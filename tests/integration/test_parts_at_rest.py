"""An application at rest as `bettong repartition` finds and changes it: real topics, and what Redis knows."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient

import bettong
from bettong.application.plan import Plan, plan
from bettong.edges.external_kafka import ClientOptions, TransactionalTopic
from bettong.edges.kafka_log import LogAdmin
from bettong.edges.log_stretch import stretch
from bettong.edges.partitioning_log import prepare_topics
from bettong.edges.redis_store import Claim, LiveMetrics, RedisLeases
from bettong.errors import LogError, StoreError
from bettong.frames.frame import Repartition, decode
from bettong.identifiers import Origin, PartitionId, SequenceNumber, TopicPartition
from bettong.inspection.live.parts_at_rest import PartsAtRest
from bettong.inspection.locations import Locations
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from bettong.metrics import DUE, GAP, OFFSET, SNAPSHOT_OFFSET
from bettong.snapshots.partitioning import Partitioning
from bettong.topics import boundaries_topic, stage_topic
from bettong_processor.progress import idle
from tests.servers.locations import locations_of

FRAME_BYTES_MAX = 64 * 1024


def external(name: str) -> bettong.Application:
    app = bettong.Application(name)
    rows = bettong.each(lambda row: Row(row.decode()))
    app.source("read", schema=Row, key="text", decoder=rows, from_=bettong.KafkaTopic("theirs")).sink("out")
    return app


@dataclass
class Row:
    text: str


@pytest.fixture
def planned(unique_name: Callable[..., str]) -> Plan:
    """An application that reads a topic of somebody else's."""
    return plan(external(unique_name("external")))


@pytest.fixture
def where(kafka: KafkaBroker, redis_server: RedisServer, tmp_path: Path) -> Locations:
    return locations_of(
        kafka.connection, redis_server.connection, state_dir=tmp_path, frame_bytes_max=FRAME_BYTES_MAX
    )


@pytest.fixture
def parts(planned: Plan, where: Locations, kafka: KafkaBroker) -> Iterator[PartsAtRest]:
    """Of three partitions."""
    with LogAdmin(kafka.connection) as admin, PartsAtRest(planned, where) as parts:
        admin.create_topics(planned.topics, partitions=3, replication=1, frame_bytes_max=FRAME_BYTES_MAX)
        yield parts


def test_topics_get_partitions_and_never_lose_any(parts: PartsAtRest) -> None:
    for partitions, found in ((5, 5), (5, 5), (2, 5)):
        before = parts.counts()
        parts.add_partitions(partitions, only_check=True)
        assert parts.counts() == before
        parts.add_partitions(partitions)
        assert set(parts.counts().values()) == {found}
        assert len(parts.ends()) == found


def test_logs_are_marked_once_and_not_where_something_else_lies(parts: PartsAtRest) -> None:
    marks = {PartitionId("read", number): (0, f"mark {number}".encode()) for number in range(3)}
    parts.mark({id_: each for id_, each in marks.items() if id_.partition})
    for _ in range(2):
        parts.mark(marks)
        assert parts.ends() == dict.fromkeys(marks, 1)
    with pytest.raises(
        LogError, match=r"read/1: at offset 0, where its mark belongs, is a record of 6 bytes"
    ):
        parts.mark({**marks, PartitionId("read", 1): (0, b"another")})


def test_what_is_kept_is_the_newest_record_that_counts(parts: PartsAtRest) -> None:
    assert parts.kept() is None
    begun = Partitioning(0, 3).begun(8, "a")
    for each in (begun, begun.completed(), Partitioning(0, 3).begun(5, "b")):
        parts.keep(each)
        assert parts.kept() == each
    # Of a run that was taken back.
    parts.keep(begun.switched({"read": (1, 1, 1)}))
    assert parts.kept() == Partitioning(0, 3).begun(5, "b")


def test_a_stage_that_the_application_got_later_begins_with_a_mark_and_others_do_not(
    planned: Plan, kafka: KafkaBroker, parts: PartsAtRest
) -> None:
    application = planned.application
    parts.keep(Partitioning(1, 2, begins={"gone": (5, 5)}))
    topics = (*planned.topics, stage_topic(application, "later"), stage_topic(application, "gone"))
    assert set(parts.stages()) == {"read"}
    with LogAdmin(kafka.connection) as admin:
        for _ in range(2):
            prepared = prepare_topics(
                admin,
                kafka.connection,
                application,
                topics,
                partitions=2,
                replication=1,
                frame_bytes_max=FRAME_BYTES_MAX,
            )
            assert prepared.generation == 1
        ends = {each: admin.ends([stage_topic(application, each)]) for each in ("later", "gone")}
        assert [set(each.values()) for each in ends.values()] == [{1}, {0}]
        begins = dict.fromkeys(ends["later"], 0)
        (first, second) = stretch(kafka.connection, begins, ends["later"], frame_bytes_max=FRAME_BYTES_MAX)
    assert (
        decode(first.value).repartition
        == decode(second.value).repartition
        == Repartition(1, 2, begins_stage=True)
    )
    assert set(parts.stages()) == {"read", "later", "gone"}


def test_the_topic_of_what_is_kept_has_as_many_copies_as_those_of_stages(
    planned: Plan, parts: PartsAtRest, monkeypatch: pytest.MonkeyPatch
) -> None:
    described, begun = KafkaAdminClient.describe_topics, Partitioning(0, 3).begun(8, "a")

    def of_three_brokers(*given: Any) -> Any:
        """As they answer; this broker is alone, and can keep no second copy."""
        answer = described(*given)
        for topic in answer:
            for each in topic["partitions"]:
                each["replica_nodes"] = [1, 2, 3]
        return answer

    monkeypatch.setattr(KafkaAdminClient, "describe_topics", of_three_brokers)
    with pytest.raises(LogError, match=rf"creating topic {planned.application}.partitioning.*[Rr]eplica"):
        parts.keep(begun)
    monkeypatch.undo()
    parts.keep(begun)
    assert parts.kept() == begun


def test_it_is_known_how_far_clients_and_external_topics_are(
    planned: Plan, kafka: KafkaBroker, parts: PartsAtRest
) -> None:
    application = planned.application
    stored = {
        b"kafka.theirs.0": b'{"durable": 17, "ends": [20]}',
        b"kafka.theirs.4": b'{"durable": 0, "ends": []}',
    }
    boundaries = TransactionalTopic(
        ClientOptions("BETTONG_KAFKA", {"bootstrap_servers": kafka.bootstrap}),
        topic=None,
        positions=boundaries_topic(application, "read"),
        transactional_id=f"bettong.{application}.read.batch-boundaries",
    )
    with boundaries:
        boundaries.open()
        boundaries.append([], stored)
    with LogAdmin(kafka.connection) as admin:
        topics = (f"{application}.stage.read", f"{application}.dead-letters")
        log = "/".join(admin.identities(topics)[each] for each in topics)
    leases = RedisLeases(parts.store, lease_ms=60_000)
    for name, of, acknowledged in (("here", log, 9), ("elsewhere", "another log", 8)):
        claim = Claim(stream=f"read/{name}", token=name, client="", instance="", peer="", log=of)
        leases.release(claim, SequenceNumber(acknowledged))
        leases.renew([(claim, SequenceNumber(acknowledged))])
    origins = [Origin(f"read/{name}") for name in ("here", "elsewhere", "nobody", "kafka.theirs.0")]
    found = parts.acknowledged([*origins, Origin("gone/feed")])
    assert found == dict(zip([*origins, Origin("read/kafka.theirs.4")], [9, 0, 0, 17, 0], strict=True))


def test_garbage_in_place_of_how_far_a_client_is_is_named(
    planned: Plan, parts: PartsAtRest, where: Locations
) -> None:
    application = planned.application
    with LogAdmin(where.kafka) as admin:
        topics = (f"{application}.stage.read", f"{application}.dead-letters")
        log = "/".join(admin.identities(topics)[each] for each in topics)
    key = parts.store.key("stream", "read/feed")
    fields = {"log": log, "acknowledged": "many"}
    parts.store.ask("writing garbage", lambda client: client.hset(key, mapping=fields))
    with pytest.raises(StoreError, match=f"stream read/feed: b'many' in Redis at {key} is no sequence"):
        parts.acknowledged([Origin("read/feed")])


def test_what_partitions_have_reported_of_other_states_is_forgotten(
    planned: Plan, parts: PartsAtRest
) -> None:
    reported = LiveMetrics(parts.store)
    for number, due in enumerate(("", "999", "5")):
        record: dict[str, str | int | float] = {DUE.name: due, OFFSET.name: 11, GAP.name: "read/feed"}
        reported.write_folded(PartitionId("read", number), record, begun_ms=1)
    parts.begin_anew({PartitionId("read", number): 11 for number in range(2)})
    found = reported.partitions()
    assert found == {
        PartitionId("read", number): {OFFSET.name: "11", SNAPSHOT_OFFSET.name: "11"} for number in range(2)
    }
    # A batch of Spark asks what is due in logs that are folded to their ends, and of which nobody says so.
    topic = stage_topic(planned.application, "read")
    logs = {TopicPartition(topic, number): 11 for number in range(2)}
    for each in idle(logs, logs, found, {topic: "read"}).values():
        assert not each.is_reported


def test_who_has_just_been_stopped_is_waited_for_as_long_as_its_record_lives(
    planned: Plan, parts: PartsAtRest
) -> None:
    LiveMetrics(parts.store).write_live("sender", {}, ttl_s=1.5)
    assert list(parts.running()) == []


def test_who_speaks_again_runs_however_long_its_record_would_live(
    planned: Plan, parts: PartsAtRest, where: Locations
) -> None:
    reported = LiveMetrics(parts.store)
    reported.write_live("sender", {}, ttl_s=600)
    looking = PartsAtRest(planned, where, on_wait=lambda _: reported.write_live("sender", {}, ttl_s=600))
    with looking:
        assert list(looking.running()) == ["sender"]
