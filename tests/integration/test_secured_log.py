"""Kafka by TLS with a password, Redis by TLS as a user of its own: every client of the log, and every service.

One broker and one Redis for all of it, which take nothing else at these ports.
"""

import dataclasses
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from bettong import metrics
from bettong.client import Sender, Subscriber
from bettong.config.connection_settings import KafkaConnection, KafkaMechanism, KafkaSecurity, RedisConnection
from bettong.edges.kafka_log import LogAdmin, LogReader, LogWriter
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.errors import LogError, LogUnavailableError, StoreError, StoreUnavailableError
from bettong.local.addresses import LOOPBACK, free_ports
from bettong.local.probes import grpc_serves
from bettong.local.processes import Command
from bettong.local.server import Server
from bettong.local.services import spark_folders
from tests.integration.applications import SUMS
from tests.servers.certificates import Authority
from tests.servers.secured_broker import PASSWORD, SecuredBroker, pkcs8
from tests.servers.secured_redis import SECRET, SecuredRedis
from tests.servers.service_program import program_of
from tests.waiting import eventually

FRAME_BYTES_MAX = 1024 * 1024


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with SecuredBroker(tmp_path_factory.mktemp("secured")) as broker:
        yield broker


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredRedis]:
    with SecuredRedis(tmp_path_factory.mktemp("redis")) as server:
        yield server


def wrong_connections(broker: SecuredBroker, folder: Path) -> dict[str, tuple[KafkaConnection, str]]:
    """A refused connection, and the settings that the error names."""
    guessed = folder / "guessed"
    guessed.write_text("guessed-word")
    connection, change = broker.connection, dataclasses.replace
    return {
        "password": (change(connection, password_file=guessed), "BETTONG_KAFKA_PASSWORD_FILE"),
        "mechanism": (change(connection, mechanism=KafkaMechanism.PLAIN), "BETTONG_KAFKA_MECHANISM"),
        "authority": (change(connection, ca=Authority(folder / "stranger").ca), "BETTONG_KAFKA_CA"),
        "plain text": (KafkaConnection(connection.bootstrap), "BETTONG_KAFKA_SECURITY is plaintext"),
        "no password": (
            change(connection, security=KafkaSecurity.SSL, password_file=None),
            "BETTONG_KAFKA_SECURITY is ssl",
        ),
    }


@pytest.mark.parametrize("what", ["password", "mechanism", "authority", "plain text", "no password"])
def test_who_is_not_let_in_is_told_which_setting_to_correct(
    broker: SecuredBroker, tmp_path: Path, what: str
) -> None:
    connection, setting = wrong_connections(broker, tmp_path)[what]
    with LogAdmin(connection) as admin, pytest.raises(LogError, match=setting) as raised:
        admin.wait(0.1, lambda _: None)
    passes = what in {"authority", "plain text", "no password"}
    assert isinstance(raised.value, LogUnavailableError) is passes, (
        "a password that is refused is not waited for"
    )
    assert PASSWORD not in str(raised.value)
    assert "guessed-word" not in str(raised.value)


def test_writers_and_readers_are_refused_with_the_same_words(broker: SecuredBroker, tmp_path: Path) -> None:
    """These use librdkafka, while topics are requested by kafka-python."""
    for what in ("password", "authority"):
        connection, setting = wrong_connections(broker, tmp_path)[what]
        with pytest.raises(LogError, match=setting):
            LogWriter(connection, frame_bytes_max=FRAME_BYTES_MAX, buffer_bytes_max=1 << 20)


def test_files_that_are_none_are_named(broker: SecuredBroker, tmp_path: Path) -> None:
    nothing = tmp_path / "nothing"
    for connection in (
        dataclasses.replace(broker.connection, ca=nothing),
        dataclasses.replace(broker.connection, certificate=nothing, key=nothing),
    ):
        with LogAdmin(connection) as admin, pytest.raises(LogError, match="BETTONG_KAFKA_CERTIFICATE"):
            admin.wait(0.1, lambda _: None)
        with pytest.raises(LogError, match="BETTONG_KAFKA_CERTIFICATE"):
            LogReader(connection, {}, frame_bytes_max=FRAME_BYTES_MAX)


def test_a_kafka_password_that_cannot_be_read_is_waited_for(broker: SecuredBroker, tmp_path: Path) -> None:
    assert broker.connection.password_file is not None
    secret, word = broker.connection.password_file.read_text(), tmp_path / "word"

    def put_back(_why: str) -> None:
        word.write_text(secret)

    with LogAdmin(dataclasses.replace(broker.connection, password_file=word)) as admin:
        with pytest.raises(LogUnavailableError, match="BETTONG_KAFKA_PASSWORD_FILE: cannot read"):
            admin.wait(0.1, lambda _: None)
        admin.wait(30.0, put_back)
        assert admin.topics("nobody's") == []


def test_redis_refuses_a_wrong_password_a_wrong_authority_and_plain_text(
    redis: SecuredRedis, tmp_path: Path
) -> None:
    guessed = tmp_path / "guessed"
    guessed.write_text("guessed-word")
    connection, change = redis.connection, dataclasses.replace
    wrong: dict[str, tuple[RedisConnection, type[StoreError]]] = {
        "BETTONG_REDIS_PASSWORD_FILE": (change(connection, password_file=guessed), StoreError),
        "BETTONG_REDIS_CA": (
            change(connection, ca=Authority(tmp_path / "stranger").ca),
            StoreUnavailableError,
        ),
        "does not answer": (
            change(connection, url=connection.url.replace("rediss", "redis"), ca=None),
            StoreUnavailableError,
        ),
    }
    for words, (each, kind) in wrong.items():
        with RedisStore(each, "shop") as store, pytest.raises(kind, match=words) as raised:
            store.wait(0.1, lambda _: None)
        assert SECRET not in str(raised.value)
        assert "guessed-word" not in str(raised.value)


def test_a_new_password_counts_from_the_next_connection_on(redis: SecuredRedis, tmp_path: Path) -> None:
    word = tmp_path / "word"
    word.write_text("guessed-word")
    with RedisStore(dataclasses.replace(redis.connection, password_file=word), "shop") as store:
        with pytest.raises(StoreError, match="refuses"):
            store.wait(0.1, lambda _: None)
        word.write_text(SECRET)
        store.wait(5.0, lambda _: None)


def test_a_redis_password_that_cannot_be_read_is_waited_for(redis: SecuredRedis, tmp_path: Path) -> None:
    word = tmp_path / "word"
    reported: list[str] = []

    def put_back(what: str) -> None:
        reported.append(what)
        word.write_text(SECRET)

    with RedisStore(dataclasses.replace(redis.connection, password_file=word), "shop") as store:
        store.wait(5.0, put_back)
        assert reported, "tried again, like a Redis that is away"
        word.unlink()
        redis.kill()
        redis.start()
        with pytest.raises(StoreUnavailableError, match="BETTONG_REDIS_PASSWORD_FILE: cannot read"):
            store.wait(0.1)
        store.wait(5.0, put_back)


class Service(Server):
    """One service as a process, with the settings of `connection`; `log` is its output."""

    def __init__(
        self, service: str, folder: Path, answers: Callable[[], bool], settings: dict[str, str]
    ) -> None:
        self.log = folder / f"{service}.log"
        words = (sys.executable, "-c", program_of(service))
        super().__init__(Command(service, words, self.log, settings), answers=answers, start_s_max=120.0)


def settings_of(broker: SecuredBroker, redis: SecuredRedis, folder: Path, name: str) -> dict[str, str]:
    """Settings as in a deployment: secrets in files."""
    file = folder / "app.py"
    file.write_text(SUMS.format(name=name))
    # Java reads the key itself, so it must be readable: we present a certificate even if the broker requires none.
    pair = broker.authority.issue(name="client")
    key = folder / "client.key"
    key.write_bytes(pkcs8(pair).partition(b"-----BEGIN CERTIFICATE")[0])
    return {
        "BETTONG_APPLICATION": str(file),
        "BETTONG_KAFKA": broker.connection.bootstrap,
        "BETTONG_KAFKA_SECURITY": "sasl_ssl",
        "BETTONG_KAFKA_CA": str(broker.authority.ca),
        "BETTONG_KAFKA_CERTIFICATE": str(pair.certificate),
        "BETTONG_KAFKA_KEY": str(key),
        "BETTONG_KAFKA_USER": broker.connection.user,
        "BETTONG_KAFKA_PASSWORD_FILE": str(broker.password_file),
        "BETTONG_REDIS": redis.connection.url,
        "BETTONG_REDIS_CA": str(redis.connection.ca),
        "BETTONG_REDIS_USER": redis.connection.user,
        "BETTONG_REDIS_PASSWORD_FILE": str(redis.connection.password_file),
        "BETTONG_PARTITIONS": "1",
        "BETTONG_LIVE_INTERVAL_MS": "100",
        "BETTONG_LOG_LEVEL": "debug",
        "BETTONG_INSTANCE": "one",
    }


@pytest.mark.slow
def test_a_message_goes_through_all_services_and_nobody_tells_a_password(
    broker: SecuredBroker, redis: SecuredRedis, unique_name: Callable[..., str], tmp_path: Path
) -> None:
    name = unique_name("secured")
    sender, receiver = (f"{LOOPBACK}:{port}" for port in free_ports(2))
    common = settings_of(broker, redis, tmp_path, name)
    more: dict[str, dict[str, str]] = {
        "sender": {"BETTONG_SENDER_LISTEN": sender},
        "receiver": {"BETTONG_RECEIVER_LISTEN": receiver},
        "processor": {
            "BETTONG_SPARK_MASTER": "local[1]",
            "BETTONG_EXCLUSIVE_CPUS": "4096",
            "BETTONG_CHECKPOINT": str(tmp_path / "checkpoint"),
            "BETTONG_STATE_DIR": str(tmp_path / "state"),
            **spark_folders(tmp_path),
        },
    }

    def runs() -> bool:
        with RedisStore(redis.connection, name) as store:
            records = LiveMetrics(store).live().values()
            return any(
                each[metrics.SERVICE.name] == "processor" and each[metrics.STATE.name] == "running"
                for each in records
            )

    answers: dict[str, Any] = {
        "sender": lambda: grpc_serves(sender),
        "receiver": lambda: grpc_serves(receiver),
        "processor": runs,
    }
    services = [
        Service(each, tmp_path, answers[each], {**common, **more[each], "BETTONG_INSTANCE": each})
        for each in more
    ]
    with ExitStack() as stack:
        for service in services:
            service.launch()
            stack.callback(service.stop)
        for service in services:
            service.wait()
        with Sender(sender, "payments") as client:
            client.send_columns({"account": ["ann", "ann"], "amount": [2.0, 3.0]})
            client.flush(60)
        with Subscriber(receiver, "out") as results:
            found = [json.loads(message) for message in next(results).messages]
        assert found == [{"account": "ann", "amount": 2.0}, {"account": "ann", "amount": 5.0}]
        with RedisStore(redis.connection, name) as store:
            live = LiveMetrics(store)
            eventually(
                lambda: [each.get(metrics.EXCLUSIVE.name) for each in live.partitions().values()] == ["0"],
                seconds=60,
                what="nobody has 4096 CPUs for himself",
            )
    for service in services:
        said = service.log.read_text()
        assert PASSWORD not in said
        assert SECRET not in said
