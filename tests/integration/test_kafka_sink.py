"""The Kafka sink: a receiver as a process, killed at any moment, and a user's topic."""

import json
import random
import time
from bisect import bisect_left
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.partitioner.default import murmur2
from psutil import Process

from bettong.edges.external_kafka import ClientOptions, Outgoing, TopicReader, TransactionalTopic
from bettong.edges.kafka_log import LogAdmin
from bettong.errors import LogError, LogUnavailableError, SettingsError
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from tests.samples.result_frames import Note, columns
from tests.samples.result_frames import note_frame as frame
from tests.samples.result_frames import note_numbers as expected
from tests.servers.external_topic import committed
from tests.servers.receiver_process import PARTITIONS, Feed, ReceiverProcess, Store
from tests.waiting import bound_s, eventually


@pytest.fixture
def name(unique_name: Callable[..., str]) -> str:
    return unique_name("topic")


def created(bootstrap: str, topic: str, *, partitions: int = 2) -> str:
    with LogAdmin(bootstrap) as admin:
        admin.create_topics([topic], partitions=partitions, replication=1, frame_bytes_max=100_000)
    return topic


def process(
    name: str,
    folder: Path,
    *,
    kafka: KafkaBroker,
    redis: RedisServer,
    external: KafkaBroker,
    **options: object,
) -> ReceiverProcess:
    return ReceiverProcess(
        name,
        folder,
        kafka=kafka.bootstrap,
        redis=redis.url,
        destinations=f"notes_to=bettong.KafkaTopic('{name}.out', key='key')",
        connections={"notes": {"bootstrap_servers": external.bootstrap, **options}},
    )


def delivered(broker: KafkaBroker, name: str, partition: int) -> list[int]:
    """The numbers of a sink's partition, from the only partition of the topic that has its key."""
    records = committed(broker.bootstrap, f"{name}.out")
    mine = [
        (partition_of_record, value)
        for partition_of_record, key, value in records
        if key == b"p%d" % partition
    ]
    assert len({partition_of_record for partition_of_record, _ in mine}) <= 1
    return [json.loads(value)["number"] for _, value in mine]


def test_the_topic_of_positions_is_compacted_before_a_start_would_read_much(
    name: str, kafka: KafkaBroker
) -> None:
    positions = f"{name}.positions"
    options = ClientOptions("test", {"bootstrap_servers": kafka.bootstrap})
    with TransactionalTopic(options, topic=None, positions=positions, transactional_id=name) as topic:
        assert topic.open() == {}
    admin = options.connect(KafkaAdminClient)
    with closing(admin):
        answer = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, positions)])
    configs = {key: each["value"] for key, each in answer["topic"][positions].items()}
    assert configs["cleanup.policy"] == "compact"
    assert int(configs["segment.bytes"]) <= 16 * 1024 * 1024, "some 100,000 positions"


@pytest.mark.parametrize("seed", [4711])
def test_after_many_kills_each_record_is_there_once_and_in_order(
    name: str, kafka: KafkaBroker, redis_server: RedisServer, feed: Feed, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    created(kafka.bootstrap, f"{name}.out")
    receiver = process(name, tmp_path, kafka=kafka, redis=redis_server, external=kafka)
    last = 0
    try:
        for _ in range(6):
            receiver.launch()
            for sequence in range(last + 1, last + chance.randrange(20, 60)):
                last = sequence
                for partition in range(PARTITIONS):
                    feed.append("notes", partition, [frame(partition, sequence)])
            wanted = chance.randrange(2 * last + 1)
            eventually(lambda least=wanted: len(delivered(kafka, name, 0)) >= least, seconds=60)  # type: ignore[misc]
            receiver.kill()
        receiver.start()
        for partition in range(PARTITIONS):
            eventually(
                lambda p=partition: delivered(kafka, name, p) == expected(last),  # type: ignore[misc]
                seconds=60,
                what="all of it",
            )
    finally:
        receiver.kill()


def test_others_go_on_while_the_cluster_is_away_and_it_catches_up(
    name: str,
    kafka: KafkaBroker,
    own_broker: KafkaBroker,
    redis_server: RedisServer,
    feed: Feed,
    store: Store,
    tmp_path: Path,
) -> None:
    created(own_broker.bootstrap, f"{name}.out")
    receiver = process(name, tmp_path, kafka=kafka, redis=redis_server, external=own_broker)
    try:
        receiver.start()
        feed.append("notes", 1, [frame(1, 1)])
        eventually(lambda: delivered(own_broker, name, 1) == expected(1), seconds=30)
        own_broker.kill()
        feed.append("notes", 1, [frame(1, sequence) for sequence in range(2, 30)])
        eventually(lambda: store.metrics().get("messages") == "58", what="files go on")
        eventually(lambda: "sink notes" in store.metrics()["detail"], seconds=60)
        own_broker.start()
        eventually(lambda: delivered(own_broker, name, 1) == expected(29), seconds=90)
        eventually(lambda: store.metrics()["state"] == "running", seconds=40)
    finally:
        receiver.kill()


def test_a_topic_that_is_not_there_is_waited_for_and_said(
    name: str, kafka: KafkaBroker, redis_server: RedisServer, feed: Feed, tmp_path: Path
) -> None:
    receiver = process(name, tmp_path, kafka=kafka, redis=redis_server, external=kafka)
    words = f"topic {name}.out of Kafka at {kafka.bootstrap}: there is no such topic; create it"
    with closing(Store(redis_server.url, name)) as store:
        try:
            receiver.start()
            feed.append("notes", 0, [frame(0, 1)])
            eventually(lambda: words in store.metrics().get("detail", ""), seconds=30)
            assert store.metrics()["state"] == "waiting"
            created(kafka.bootstrap, f"{name}.out")
            eventually(lambda: delivered(kafka, name, 0) == [2, 3], seconds=60)
            eventually(lambda: store.metrics()["state"] == "running", seconds=30)
        finally:
            receiver.kill()


def topic(bootstrap: str, name: str) -> TransactionalTopic:
    options = ClientOptions("test", {"bootstrap_servers": bootstrap})
    return TransactionalTopic(options, topic=name, positions=f"{name}.positions", transactional_id=name)


def test_a_transaction_that_was_open_in_a_crash_is_seen_by_nobody(kafka: KafkaBroker, name: str) -> None:
    """The records are in the log but not committed, as after a kill between data and position."""
    created(kafka.bootstrap, name, partitions=1)
    with closing(topic(kafka.bootstrap, name)) as dead:
        dead.open()
        dead.append([Outgoing(0, [(None, b"first")])], {b"k": b"1"})
        producer = dead._producer
        producer.begin_transaction()
        producer.produce(name, b"lost", partition=0)
        producer.produce(f"{name}.positions", b"2", key=b"k", partition=0)
        assert producer.flush(20) == 0
        with closing(topic(kafka.bootstrap, name)) as alive:
            assert alive.open() == {b"k": b"1"}
            alive.append([Outgoing(0, [(None, b"second")])], {b"k": b"2"})
            with pytest.raises(LogUnavailableError, match="another process has taken over"):
                dead._call_librdkafka("committing", lambda: producer.commit_transaction(20))
    assert [value for _, _, value in committed(kafka.bootstrap, name)] == [b"first", b"second"]


@pytest.mark.parametrize(
    ("settings", "refused"),
    [
        (
            {"cleanup.policy": "delete", "retention.ms": "604800000"},
            "cleanup.policy=delete, retention.ms=604800000",
        ),
        ({"cleanup.policy": "compact,delete", "retention.bytes": "1000000"}, "retention.bytes=1000000"),
        ({"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}, ""),
        ({"cleanup.policy": "compact", "retention.ms": "604800000"}, ""),
    ],
)
def test_a_topic_of_positions_from_which_kafka_would_delete_some_is_refused(
    kafka: KafkaBroker, name: str, settings: dict[str, str], refused: str
) -> None:
    """As one that was made by hand: a partition that rests for a week would have all of its results appended again."""
    created(kafka.bootstrap, name)
    with closing(KafkaAdminClient(bootstrap_servers=kafka.bootstrap)) as admin:
        wanted = {"num_partitions": 1, "replication_factor": 1, "configs": settings}
        admin.create_topics({f"{name}.positions": wanted})
    with closing(topic(kafka.bootstrap, name)) as one:
        if refused:
            with pytest.raises(
                LogError, match=f"positions \\(.*{refused}\\).*set its cleanup.policy to compact"
            ):
                one.open()
        else:
            assert one.open() == {}


@pytest.mark.timely
def test_one_transaction_after_the_other_waits_for_no_pause(kafka: KafkaBroker, name: str) -> None:
    """The broker still ends the one before when the next begins, and says that it be asked again: kafka-python does so
    100 ms later.
    """
    created(kafka.bootstrap, name, partitions=1)
    took_s = []
    with closing(topic(kafka.bootstrap, name)) as one:
        one.open()
        for number in range(30):
            begun_s = time.monotonic()
            one.append([], {b"k": b"%d" % number})
            took_s.append(time.monotonic() - begun_s)
        assert one.open() == {b"k": b"29"}
    assert sorted(took_s)[len(took_s) // 4] < bound_s(0.09), took_s


def test_one_that_is_shut_out_says_so_however_much_it_appends_and_nothing_of_it_is_left(
    kafka: KafkaBroker, name: str
) -> None:
    created(kafka.bootstrap, name, partitions=1)
    records = [Outgoing(0, [(None, b"%d" % each) for each in range(20_000)])]
    errors = []
    with closing(topic(kafka.bootstrap, name)) as alive:
        threads = Process().num_threads()
        for _ in range(3):
            with closing(topic(kafka.bootstrap, name)) as dead:
                dead.open()
                alive.open()
                with pytest.raises(LogUnavailableError, match="taken over") as caught:
                    dead.append(records, {b"k": b"1"})
            errors.append(caught.value)  # as whoever waits holds it
        alive.close()
        eventually(lambda: Process().num_threads() <= threads)
    assert len(errors) == 3
    assert committed(kafka.bootstrap, name) == []


def test_a_key_s_records_go_to_the_partition_that_other_clients_choose(kafka: KafkaBroker, name: str) -> None:
    created(kafka.bootstrap, name, partitions=7)
    keys = [b"", b"k", "K\u00f6ln".encode(), bytes(range(256)), *(b"%d" % each for each in range(60))]
    with closing(topic(kafka.bootstrap, name)) as one:
        one.open()
        one.append([Outgoing(3, [(key, b"v") for key in keys])], {b"k": b"1"})
    chosen = {key: partition for partition, key, _ in committed(kafka.bootstrap, name)}
    assert chosen == {key: (murmur2(key) & 0x7FFFFFFF) % 7 for key in keys}


@pytest.mark.parametrize("compression", ["gzip", "lz4", "snappy", "zstd"])
def test_a_record_that_is_small_enough_when_compressed_is_taken_and_others_are_named(
    kafka: KafkaBroker, name: str, compression: str
) -> None:
    """Records of exactly the size limit are accepted."""
    created(kafka.bootstrap, name, partitions=1)
    options = ClientOptions("test", {"bootstrap_servers": kafka.bootstrap, "compression_type": compression})
    drawn = random.Random(1)
    lines = [json.dumps({"number": number, "token": drawn.randbytes(48).hex()}) for number in range(8_000)]
    text = "\n".join(lines).encode()
    with closing(
        TransactionalTopic(options, topic=name, positions=f"{name}.positions", transactional_id=name)
    ) as one:
        one.open()
        fitting = bisect_left(range(len(text)), 1, key=lambda size: len(one.too_large([(None, text[:size])])))
        assert 200_000 < fitting < len(text)
        records = [(None, each) for each in (b"small", bytes(700_000), text[: fitting - 1], text)]
        assert one.too_large(records) == [3]
        one.append([Outgoing(0, records[:3])], {b"k": b"1"})
        assert one.open() == {b"k": b"1"}
    with closing(TopicReader(options, name)) as reader:
        reader.assign({0: 0})
        found: list[bytes | None] = []

        def complete() -> bool:
            for each in reader.poll(200, 10).values():
                found.extend(each.values)
            return len(found) == 3

        eventually(complete)
    assert found == [value for _, value in records[:3]]


def test_a_record_that_is_too_large_is_refused_and_commits_nothing(kafka: KafkaBroker, name: str) -> None:
    created(kafka.bootstrap, name, partitions=1)
    with closing(topic(kafka.bootstrap, name)) as one:
        one.open()
        with pytest.raises(LogError, match="large"):
            one.append([Outgoing(0, [(None, b"small"), (None, bytes(900_000))])], {b"k": b"1"})
    with closing(topic(kafka.bootstrap, name)) as one:
        assert one.open() == {}
    assert committed(kafka.bootstrap, name) == []


def test_a_record_that_is_too_large_is_a_dead_letter_and_the_others_go_on(
    name: str, kafka: KafkaBroker, redis_server: RedisServer, feed: Feed, tmp_path: Path
) -> None:
    created(kafka.bootstrap, f"{name}.out")
    receiver = process(name, tmp_path, kafka=kafka, redis=redis_server, external=kafka)
    oversized = columns(
        [Note("p0", 4, 0.5), Note("p0" * 200_000, 5, 0.5), Note("p0", 6, 0.5)],
        origin="notes/notes-in/0",
        sequence=2,
        previous=1,
    )
    try:
        receiver.start()
        feed.append("notes", 0, [frame(0, 1), oversized])
        eventually(lambda: delivered(kafka, name, 0) == [2, 3, 4, 6], seconds=60)
        eventually(lambda: len(feed.dead_letters()) == 1, seconds=30)
        (dead_letter,) = feed.dead_letters()
        assert (dead_letter.origin, dead_letter.sequence, dead_letter.index) == ("notes/notes-in/0", 2, 1)
        assert "larger than the topic takes" in dead_letter.reason
        assert json.loads(dead_letter.message)["number"] == 5
    finally:
        receiver.kill()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"acks": 1}, "'acks' is Bettong's own to set"),
        (
            {"group_id": "g", "wrong": 1},
            "'group_id' is Bettong's own to set; kafka-python has no option 'wrong'",
        ),
    ],
)
def test_options_that_cannot_be_are_reported_by_name(options: dict[str, object], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        ClientOptions("partner", {"bootstrap_servers": "h:1", **options})


def test_a_cluster_that_is_away_and_an_option_of_the_wrong_type_are_reported() -> None:
    with (
        closing(topic("127.0.0.1:1", "any")) as one,
        pytest.raises(LogUnavailableError, match=r"127\.0\.0\.1:1"),
    ):
        one.open()
    options = ClientOptions(
        "partner",
        {
            "bootstrap_servers": "127.0.0.1:1",
            "security_protocol": "NONSENSE",
            "sasl_plain_password": "secret",
        },
    )
    with (
        closing(TransactionalTopic(options, topic="t", positions="p", transactional_id="i")) as one,
        pytest.raises(LogError) as caught,
    ):
        one.open()
    assert "secret" not in str(caught.value)
