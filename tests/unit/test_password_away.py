"""A password file that is away: an error of settings at the start, later waited for like a server that is away."""

import asyncio
import socket
import traceback
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path

import pytest
import structlog
from structlog.testing import capture_logs
from tenacity import Retrying

from bettong.application.plan import plan
from bettong.backoff import attempts
from bettong.config.connection_settings import KafkaConnection, KafkaSecurity, RedisConnection
from bettong.config.processor import ProcessorSettings
from bettong.config.reading import read
from bettong.config.sender import SenderSettings
from bettong.edges.boundary_log import boundary_log
from bettong.edges.kafka_log import LogAdmin, LogReader, LogWriter
from bettong.edges.redis_store import RedisStore
from bettong.edges.redis_store import connection as redis_connecting
from bettong.edges.serving import Serving
from bettong.errors import LogTruncatedError, LogUnavailableError, SettingsError, StoreUnavailableError
from bettong.identifiers import TopicPartition
from bettong.inspection.live.health import record_of
from bettong_processor.faults import fault_of
from bettong_sender.intake import Intake
from bettong_sender.log_keeper import LogKeeper
from bettong_sender.status import SenderStatus, State
from tests.samples.sender import application, route
from tests.unit.test_processor_progress import PYTHON
from tests.unit.test_sender_intake import LIMITS
from tests.unit.test_sink_task import Store, run
from tests.waiting import eventually

AWAY = "BETTONG_KAFKA_PASSWORD_FILE: cannot read"
REDIS_AWAY = "BETTONG_REDIS_PASSWORD_FILE: cannot read"
NOWHERE = "127.0.0.1:1"


@pytest.fixture
def connection(tmp_path: Path) -> KafkaConnection:
    return KafkaConnection(
        NOWHERE, KafkaSecurity.SASL_PLAINTEXT, user="ann", password_file=tmp_path / "password"
    )


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisConnection]:
    """Clients read the password once they are connected."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        _, port = server.getsockname()
        yield RedisConnection(f"redis://127.0.0.1:{port}/0", password_file=tmp_path / "password")


@pytest.mark.parametrize("server", ["kafka", "redis"])
@pytest.mark.parametrize("service", ["sender", "receiver", "processor", "console"])
def test_a_service_does_not_start_without_its_password(
    service: str, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if server == "kafka":
        monkeypatch.setenv("BETTONG_KAFKA_SECURITY", "sasl_plaintext")
    overrides = {
        "application": "app.py",
        "kafka": NOWHERE,
        f"{server}_user": "ann",
        f"{server}_password_file": tmp_path / "password",
    }
    with pytest.raises(SettingsError, match=f"BETTONG_{server.upper()}_PASSWORD_FILE: cannot read"):
        import_module(f"bettong_{service}.main").main(overrides)


def test_a_task_that_begins_is_without_its_redis_then(redis: RedisConnection) -> None:
    with RedisStore(redis, "shop") as store, pytest.raises(StoreUnavailableError, match=REDIS_AWAY) as raised:
        store.wait(0.0)
    fault = fault_of(PYTHON.format(error="".join(traceback.format_exception(raised.value))))
    assert (fault.text, fault.final) == (f"StoreUnavailableError: {raised.value}", None)


def test_a_processor_s_health_is_as_without_its_redis_then(
    redis: RedisConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def once(_for_s: float, may_pass: Callable[[BaseException], bool], **_: object) -> Retrying:
        return attempts(0.0, may_pass)

    monkeypatch.setattr(redis_connecting, "attempts", once)
    overrides = {"application": "app.py", "redis": redis.url, "redis_password_file": redis.password_file}
    record, fault = record_of(read(ProcessorSettings, overrides), "shop")
    assert (record, REDIS_AWAY in fault) == ({}, True)


def test_each_client_of_the_log_is_without_its_broker_then(connection: KafkaConnection) -> None:
    with LogAdmin(connection) as admin, pytest.raises(LogUnavailableError, match=AWAY):
        admin.ends(["shop.stage.orders"])
    with pytest.raises(LogUnavailableError, match=AWAY):
        LogReader(connection, {}, frame_bytes_max=1000)
    with pytest.raises(LogUnavailableError, match=AWAY):
        LogWriter(connection, frame_bytes_max=1000, buffer_bytes_max=1000)
    with pytest.raises(LogUnavailableError, match=AWAY):
        boundary_log(connection, "shop", "orders")


def test_a_sender_waits_for_its_log(connection: KafkaConnection) -> None:
    async def wait() -> SenderStatus:
        status, stopping = SenderStatus(since_s=1), asyncio.Event()
        settings = read(
            SenderSettings,
            {
                "application": "app.py",
                "kafka": NOWHERE,
                "kafka_security": connection.security,
                "kafka_user": connection.user,
                "kafka_password_file": connection.password_file,
            },
        )
        intake = Intake("shop", {"orders": route()}, LIMITS, status, clock=lambda: 1)
        keeper = LogKeeper(
            settings, plan(application("shop")), intake, Serving("sender"), structlog.get_logger()
        )
        keeping = asyncio.create_task(keeper.run(stopping))
        await asyncio.to_thread(
            lambda: eventually(lambda: keeping.done() or status.state is State.WAITING, what="it waits")
        )
        stopping.set()
        await keeping
        intake.close()
        return status

    with capture_logs() as lines:
        status = asyncio.run(asyncio.wait_for(wait(), 60))
    assert status.detail == f"waiting for Kafka at {NOWHERE}"
    assert [AWAY in line["reason"] for line in lines] == [True]


def test_a_receiver_opens_its_log_again(connection: KafkaConnection) -> None:
    opened: list[object] = []

    def open_reader(starts: Mapping[TopicPartition, int], fetch_bytes_max: int) -> LogReader:
        opened.append(starts)
        if len(opened) == 3:
            raise LogTruncatedError("the end of this test")
        return LogReader(connection, starts, frame_bytes_max=1000, fetch_bytes_max=fetch_bytes_max)

    with pytest.raises(LogTruncatedError, match="the end of this test"):
        run(Store(), required=True, open_reader=open_reader)
