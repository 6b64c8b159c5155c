"""Administers topics: waits for the broker, creates and checks topics, and reads their first and end offsets."""

import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import kafka
from kafka import OffsetSpec
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import (
    KafkaError,
    NoError,
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
    for_code,
)

from bettong.backoff import attempts
from bettong.closing import Closing
from bettong.config.connection_settings import KafkaConnection
from bettong.edges.kafka_log.connecting import connect, is_transient, map_kafka_python_error
from bettong.edges.kafka_log.in_sync import in_sync_settings, rests_on_one
from bettong.edges.kafka_log.sizes import batch_bytes_max
from bettong.errors import LogError, LogUnavailableError
from bettong.identifiers import TopicPartition

_ANSWER_WAIT_S_MAX = 10.0

# One attempt of `wait`: short, so that the wait is reported soon; a healthy broker answers in milliseconds.
_ATTEMPT_MS = 1_000

_TOPIC_LIMIT = "max.message.bytes"

# Nothing expires, because a replay may start at offset 0. Operators bound the size of a topic.
_RETENTION = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    # Not the sender's time: by default the broker refuses records of a sender whose clock is an hour ahead.
    "message.timestamp.type": "LogAppendTime",
}

_Answer = TypeVar("_Answer")


class LogAdmin(Closing):
    """Admin requests to the broker. Connects at the first one; use it from one thread.

    Every method raises LogUnavailableError when no broker answers in time, and LogError when it refuses.
    """

    def __init__(
        self,
        where: str | KafkaConnection,
        *,
        answer_wait_s_max: float = _ANSWER_WAIT_S_MAX,
        topics_known_s: float = 0.0,
    ) -> None:
        """`where`: host:port[,host:port], or a connection with security settings. Does not connect yet.

        `answer_wait_s_max`: shorter for a caller that only displays state, and reports Kafka as unavailable.
        `topics_known_s`: for how long to cache the partitions of topics between requests for offsets, for a caller
        that asks often. A failed request, or one for other topics, discards the cache.
        """
        self._connection = KafkaConnection.of(where)
        self._answer_wait_s_max = answer_wait_s_max
        self._bootstrap = self._connection.bootstrap
        self._client: Any = None
        self._topics_known_s = topics_known_s
        self._known: dict[str, list[int]] = {}
        self._known_until_s = 0.0

    def wait(self, deadline_s: float, on_wait: Callable[[str], None]) -> None:
        """Returns as soon as a broker answers.

        `on_wait` gets a line for people after each failed attempt.
        Raises LogUnavailableError when none answered for `deadline_s`.
        """

        def report_wait(attempt: int) -> None:
            on_wait(f"waiting for Kafka at {self._bootstrap}, attempt {attempt}")

        def ask() -> None:
            self._connect(_ATTEMPT_MS)
            self._ask("asking for the cluster", lambda client: client.describe_cluster(), _ATTEMPT_MS / 1000)

        attempts(deadline_s, _is_unavailable, first_s=0.1, max_s=2.0, on_pause=report_wait)(ask)

    def create_topics(
        self, names: Iterable[str], *, partitions: int, replication: int, frame_bytes_max: int
    ) -> tuple[str, ...]:
        """Creates the topics that do not exist yet and returns their names, once every partition has a leader.

        Topics accept frames with a body of `frame_bytes_max`, and keep them forever; of three replicas or more two
        must have what is acknowledged. Existing topics are left as they are: see `check_topics`, `on_one_broker`. Two
        processes may call this at the same time.
        """
        limit = {_TOPIC_LIMIT: str(batch_bytes_max(frame_bytes_max))}
        configs = {**limit, **_RETENTION, **in_sync_settings(replication)}
        wanted = {
            name: {"num_partitions": partitions, "replication_factor": replication, "configs": configs}
            for name in names
        }
        if not wanted:
            return ()
        doing = f"creating {len(wanted)} topic(s) with {replication} replica(s)"
        answer = self._ask(doing, lambda client: client.create_topics(wanted, raise_errors=False))
        created = []
        for topic in answer["topics"]:
            error = for_code(topic["error_code"])
            if error is NoError:
                created.append(topic["name"])
            elif error is not TopicAlreadyExistsError:
                raise map_kafka_python_error(
                    error(topic["error_message"]), f"creating topic {topic['name']}", self._bootstrap
                )
        wait_ms = int(_ANSWER_WAIT_S_MAX * 1000)
        self._ask(doing, lambda client: client.wait_for_topics(list(wanted), timeout_ms=wait_ms))
        return tuple(created)

    def check_topics(
        self, names: Iterable[str], *, partitions: int, frame_bytes_max: int, or_more: bool = False
    ) -> None:
        """Raises LogError unless every topic exists, with this number of partitions, and accepts frames of this size.

        `or_more`: allow more partitions: a repartitioned application may not use them all. The error names topic,
        found, expected and remedy, for all topics at once.
        """
        found = self._partitions(names, may_be_missing=True)
        settings = self._settings([name for name, numbers in found.items() if numbers])
        needed = batch_bytes_max(frame_bytes_max)
        faults = []
        for name, numbers in found.items():
            if not numbers:
                faults.append(f"topic {name} does not exist, expected {partitions} partitions; create it")
            elif len(numbers) < partitions or (len(numbers) > partitions and not or_more):
                faults.append(
                    f"topic {name} has {len(numbers)} partitions, expected {partitions}; set BETTONG_PARTITIONS"
                    f" to {len(numbers)}, change the application with `bettong repartition`, or start under another"
                    " application name"
                )
            elif (limit := int(settings[name][_TOPIC_LIMIT])) < needed:
                faults.append(
                    f"topic {name} takes {_TOPIC_LIMIT}={limit}, expected at least {needed};"
                    " raise it with kafka-configs, or lower BETTONG_FRAME_BYTES_MAX"
                )
        if faults:
            raise LogError("; ".join(faults))

    def partition_counts(self, names: Iterable[str]) -> dict[str, int]:
        """The number of partitions of each topic; 0 for one that does not exist."""
        found = self._partitions(names, may_be_missing=True)
        return {name: len(numbers) for name, numbers in found.items()}

    def copies(self, topic: str) -> int:
        """The smallest replication factor of a topic's partitions. Raises LogError for an unknown topic."""
        return _copies(self._descriptions([topic], may_be_missing=False)[topic])

    def on_one_broker(self, names: Iterable[str]) -> list[str]:
        """The topics with three replicas or more that acknowledge a record when one broker alone has it.

        Raises LogError for unknown topics.
        """
        found = self._descriptions(names, may_be_missing=False)
        settings = self._settings(list(found))
        return [name for name, topic in found.items() if rests_on_one(_copies(topic), settings[name])]

    def add_partitions(self, names: Iterable[str], partitions: int, *, only_check: bool = False) -> None:
        """Increases topics to this number of partitions, and returns once each has a leader.

        Kafka never removes partitions. `only_check`: asks whether the broker would do it, without a change. Raises
        LogError for unknown topics, and when the broker refuses.
        """
        found = self._partitions(names, may_be_missing=False)
        fewer = {name: partitions for name, numbers in found.items() if len(numbers) < partitions}
        if not fewer:
            return
        doing = f"adding partitions to {len(fewer)} topic(s), up to {partitions} each"
        answer = self._ask(
            doing,
            lambda client: client.create_partitions(fewer, validate_only=only_check, raise_errors=False),
        )
        for result in answer.results:
            # If the request was retried, the first attempt may have succeeded.
            error = for_code(result.error_code)
            if error is TopicAuthorizationFailedError:
                raise LogError(
                    f"{doing}: Kafka at {self._bootstrap} does not let this user alter topic {result.name}: allow it"
                    " `Alter` on the application's topics"
                )
            if error is not NoError and self.partition_counts([result.name])[result.name] < partitions:
                raise map_kafka_python_error(
                    error(result.error_message), f"{doing}: {result.name}", self._bootstrap
                )
        if not only_check:
            self._await_partitions(fewer, partitions)

    def identities(self, topics: Iterable[str]) -> dict[str, str]:
        """The id of each topic: a topic that is deleted and recreated gets a new one. LogError for unknown topics."""
        found = self._descriptions(topics, may_be_missing=False)
        return {name: str(topic["topic_id"]) for name, topic in found.items() if topic is not None}

    def topics(self, prefix: str) -> list[str]:
        """The topics whose names begin with `prefix`."""
        found = self._ask("asking for all topics", lambda client: client.list_topics())
        return sorted(name for name in found if name.startswith(prefix))

    def ends(self, topics: Iterable[str]) -> dict[TopicPartition, int]:
        """For each (topic, partition) its end: the offset of its next record. LogError for unknown topics."""
        return self._offsets(topics, OffsetSpec.LATEST)

    def beginnings(self, topics: Iterable[str]) -> dict[TopicPartition, int]:
        """For each (topic, partition) the offset of its oldest record; its end when it is empty."""
        return self._offsets(topics, OffsetSpec.EARLIEST)

    def begun_ns(self, topics: Iterable[str]) -> dict[TopicPartition, int]:
        """For each (topic, partition) that is not empty, when its oldest record was appended (Unix ns)."""
        found = self._answers(topics, 0)
        return {each: int(at.timestamp) * 1_000_000 for each, at in found.items() if at.offset >= 0}

    def close(self) -> None:
        """Closes the connection. The next request opens another."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _offsets(self, topics: Iterable[str], which: OffsetSpec) -> dict[TopicPartition, int]:
        return {each: int(at.offset) for each, at in self._answers(topics, which).items()}

    def _answers(self, topics: Iterable[str], which: int) -> dict[TopicPartition, Any]:
        """Offset and timestamp of each (topic, partition): of `which`, or of its first record from that time on."""
        found = self._known_partitions(set(topics))
        wanted = {
            kafka.TopicPartition(name, number): which for name, numbers in found.items() for number in numbers
        }
        if not wanted:
            return {}
        doing = f"asking for offsets of {', '.join(sorted(found))}"
        try:
            answer = self._ask(doing, lambda client: client.list_partition_offsets(wanted))
        except LogError:
            self._known = {}
            raise
        return {TopicPartition(each.topic, each.partition): at for each, at in answer.items()}

    def _known_partitions(self, topics: set[str]) -> dict[str, list[int]]:
        now_s = time.monotonic()
        if now_s >= self._known_until_s or topics != self._known.keys():
            self._known = self._partitions(topics, may_be_missing=False)
            self._known_until_s = now_s + self._topics_known_s
        return self._known

    def _partitions(self, topics: Iterable[str], *, may_be_missing: bool) -> dict[str, list[int]]:
        """The partitions of each topic; empty for a missing topic, which is an error unless `may_be_missing`."""
        found = self._descriptions(topics, may_be_missing=may_be_missing)
        return {
            name: sorted(each["partition_index"] for each in topic["partitions"]) if topic is not None else []
            for name, topic in found.items()
        }

    def _await_partitions(self, topics: Iterable[str], partitions: int) -> None:
        """Waits until every broker knows the new partitions, and each has a leader, so that its end can be read."""

        def ask() -> None:
            for name, count in self.partition_counts(topics).items():
                if count < partitions:
                    raise LogUnavailableError(
                        f"topic {name} at {self._bootstrap} has {count} partitions, {partitions} were asked for; is"
                        " every broker running?"
                    )
            self.ends(topics)

        attempts(_ANSWER_WAIT_S_MAX, lambda error: isinstance(error, LogError), first_s=0.05, max_s=0.5)(ask)

    def _descriptions(self, topics: Iterable[str], *, may_be_missing: bool) -> dict[str, Any]:
        """The broker's description of each topic; None for a missing one, which is an error unless `may_be_missing`."""
        names = list(dict.fromkeys(topics))
        if not names:
            return {}
        answer = self._ask("asking for topics", lambda client: client.describe_topics(names))
        found: dict[str, Any] = dict.fromkeys(names)
        for topic in answer:
            error = for_code(topic["error_code"])
            missing = error is UnknownTopicOrPartitionError
            if error is not NoError and not (missing and may_be_missing):
                raise map_kafka_python_error(error(), f"asking for topic {topic['name']}", self._bootstrap)
            if not missing:
                found[topic["name"]] = topic
        return found

    def _settings(self, topics: list[str]) -> dict[str, dict[str, str]]:
        """The settings of each topic, by name."""
        if not topics:
            return {}
        resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in topics]
        answer = self._ask(
            "asking for settings of topics",
            lambda client: client.describe_configs(resources, config_filter="all"),
        )
        return {
            name: {key: str(each["value"]) for key, each in answer["topic"][name].items()} for name in topics
        }

    def _connect(self, wait_ms_max: int) -> Any:
        if self._client is None:
            self._client = connect(
                self._connection,
                wait_ms_max=wait_ms_max,
                request_wait_ms_max=int(self._answer_wait_s_max * 1000),
            )
        return self._client

    def _ask(
        self, doing: str, question: Callable[[Any], _Answer], wait_s_max: float | None = None
    ) -> _Answer:
        """The answer to an idempotent request, which is retried while no broker answers."""
        wait_s_max = self._answer_wait_s_max if wait_s_max is None else wait_s_max
        repeated = attempts(wait_s_max, _may_be_repeated, max_s=0.5)
        try:
            return repeated(lambda: question(self._connect(int(wait_s_max * 1000))))
        except KafkaError as error:
            raise map_kafka_python_error(error, doing, self._bootstrap) from None


def _copies(topic: Any) -> int:
    return min(len(each["replica_nodes"]) for each in topic["partitions"])


def _is_unavailable(error: BaseException) -> bool:
    return isinstance(error, LogUnavailableError)


def _may_be_repeated(error: BaseException) -> bool:
    return is_transient(error) and not isinstance(error, UnknownTopicOrPartitionError)
