"""Waiting for a real broker, and its topics."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from kafka import KafkaAdminClient
from kafka.errors import LeaderNotAvailableError, TopicAuthorizationFailedError, UnknownBrokerIdError

from bettong.edges.kafka_log import LogAdmin
from bettong.errors import LogError, LogUnavailableError
from bettong.identifiers import TopicPartition
from bettong.local.broker import KafkaBroker
from tests.integration.log_parts import (
    FRAME_BYTES_MAX,
    NOBODY,
    append_all,
    delete_below,
)
from tests.waiting import eventually

Name = Callable[..., str]


def test_waiting_says_so_and_ends_when_the_broker_answers(own_broker: KafkaBroker, unique_name: Name) -> None:
    reported: list[str] = []
    own_broker.kill()
    own_broker.launch()
    topic = unique_name("log")
    with LogAdmin(own_broker.bootstrap) as admin:
        admin.wait(120, reported.append)
        assert admin.create_topics([topic], partitions=1, replication=1, frame_bytes_max=5000) == (topic,)
    assert reported
    assert all(own_broker.bootstrap in line for line in reported)


def test_waiting_for_a_broker_that_never_comes_ends_and_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    reported: list[str] = []
    with pytest.raises(LogUnavailableError, match=NOBODY), LogAdmin(NOBODY) as admin:
        admin.wait(2, reported.append)
    assert reported
    assert not set(threading.enumerate()) - before


@pytest.mark.parametrize("bootstrap", ["", "nonsense", "host:port", "a:1,,b:2"])
def test_a_bootstrap_that_is_no_address_is_refused_at_once(bootstrap: str) -> None:
    with pytest.raises(LogError, match="host:port"):
        LogAdmin(bootstrap).ends(["a"])


def test_topics_are_created_once_and_take_the_frames_they_are_for(admin: LogAdmin, unique_name: Name) -> None:
    names = [unique_name("log"), unique_name("log")]
    made = [
        admin.create_topics(names[:count], partitions=3, replication=1, frame_bytes_max=FRAME_BYTES_MAX)
        for count in (1, 2, 2, 0)
    ]
    assert made == [(names[0],), (names[1],), (), ()]
    admin.check_topics(names, partitions=3, frame_bytes_max=FRAME_BYTES_MAX)


def test_every_topic_that_does_not_fit_is_named_with_what_was_expected(
    admin: LogAdmin, topic: str, unique_name: Name
) -> None:
    missing = unique_name("log")
    with pytest.raises(LogError) as raised:
        admin.check_topics([topic, missing], partitions=5, frame_bytes_max=FRAME_BYTES_MAX)
    assert f"{topic} has 2 partitions, expected 5" in str(raised.value)
    assert f"{missing} does not exist" in str(raised.value)
    with pytest.raises(LogError, match=f"{topic} takes max.message.bytes="):
        admin.check_topics([topic], partitions=2, frame_bytes_max=FRAME_BYTES_MAX + 1)


def test_a_topic_that_the_broker_refuses_is_named(admin: LogAdmin, unique_name: Name) -> None:
    name = unique_name("log")
    with pytest.raises(LogError, match=f"{name}.*replica"):
        admin.create_topics([name], partitions=1, replication=3, frame_bytes_max=FRAME_BYTES_MAX)


def test_who_may_not_add_partitions_is_told_the_permission(
    admin: LogAdmin, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = KafkaAdminClient.create_partitions

    def refused(*given: Any, **named: Any) -> Any:
        """As a broker with an authorizer answers; this one lets everybody do all."""
        answer = add(*given, **{**named, "validate_only": True})
        for each in answer.results:
            each.error_code = TopicAuthorizationFailedError.errno
        return answer

    monkeypatch.setattr(KafkaAdminClient, "create_partitions", refused)
    for only_check in (True, False):
        with pytest.raises(LogError, match=f"does not let this user alter topic {topic}: allow it `Alter`"):
            admin.add_partitions([topic], 3, only_check=only_check)
    admin.add_partitions([topic], 2)  # it has them already


def test_beginnings_and_ends_follow_the_log(kafka: KafkaBroker, admin: LogAdmin, topic: str) -> None:
    append_all(kafka, topic, 1, [b"a", b"b", b"c"])
    delete_below(kafka, topic, 1, 2)
    assert admin.ends([topic]) == {(topic, 0): 0, (topic, 1): 3}
    assert admin.beginnings([topic]) == {(topic, 0): 0, (topic, 1): 2}
    begun_ns = admin.begun_ns([topic])
    assert list(begun_ns) == [(topic, 1)], "the other is empty"
    assert abs(time.time_ns() - begun_ns[TopicPartition(topic, 1)]) < 60e9
    with pytest.raises(LogError, match="does not exist"):
        admin.ends([topic, "no-such-topic"])


def test_a_partition_that_has_no_leader_for_a_moment_is_waited_for(
    kafka: KafkaBroker, admin: LogAdmin, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    append_all(kafka, topic, 0, [b"a"])
    ask = KafkaAdminClient.list_partition_offsets
    refusals = [
        UnknownBrokerIdError(-1),
        LeaderNotAvailableError(),
    ]  # in kafka-python's form; the broker is real

    def ask_later(*given: Any) -> Any:
        if refusals:
            raise refusals.pop()
        return ask(*given)

    monkeypatch.setattr(KafkaAdminClient, "list_partition_offsets", ask_later)
    assert admin.ends([topic]) == {(topic, 0): 1, (topic, 1): 0}
    assert not refusals


def test_a_topic_that_was_deleted_and_made_again_is_another(
    kafka: KafkaBroker, admin: LogAdmin, topic: str
) -> None:
    first = admin.identities([topic])
    assert admin.identities([topic]) == first
    client = KafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    client.delete_topics([topic])
    client.close()
    eventually(lambda: admin.create_topics([topic], partitions=2, replication=1, frame_bytes_max=5000))
    again = admin.identities([topic])
    assert set(again) == set(first) == {topic}
    assert again != first
    with pytest.raises(LogError, match="nobody-made-this"):
        admin.identities(["nobody-made-this"])
