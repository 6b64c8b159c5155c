"""A password file of Kafka's that is away: an error of settings at the start, later waited for like a broker."""

import asyncio
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import pytest
import structlog
from structlog.testing import capture_logs

from bettong.application.plan import plan
from bettong.config.connection_settings import KafkaConnection, KafkaSecurity
from bettong.config.reading import read
from bettong.config.sender import SenderSettings
from bettong.edges.boundary_log import boundary_log
from bettong.edges.kafka_log import LogAdmin, LogReader, LogWriter
from bettong.edges.serving import Serving
from bettong.errors import LogTruncatedError, LogUnavailableError, SettingsError
from bettong.identifiers import TopicPartition
from bettong_sender.intake import Intake
from bettong_sender.log_keeper import LogKeeper
from bettong_sender.status import SenderStatus, State
from tests.samples.sender import application, route
from tests.unit.test_sender_intake import LIMITS
from tests.unit.test_sink_task import Store, run
from tests.waiting import eventually

AWAY = "BETTONG_KAFKA_PASSWORD_FILE: cannot read"
NOWHERE = "127.0.0.1:1"


@pytest.fixture
def connection(tmp_path: Path) -> KafkaConnection:
    return KafkaConnection(
        NOWHERE, KafkaSecurity.SASL_PLAINTEXT, user="ann", password_file=tmp_path / "password"
    )


@pytest.mark.parametrize("service", ["sender", "receiver", "processor"])
def test_a_service_does_not_start_without_its_password(
    service: str, connection: KafkaConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BETTONG_KAFKA_SECURITY", "sasl_plaintext")
    overrides = {
        "application": "app.py",
        "kafka": NOWHERE,
        "kafka_user": connection.user,
        "kafka_password_file": connection.password_file,
    }
    with pytest.raises(SettingsError, match=AWAY):
        import_module(f"bettong_{service}.main").main(overrides)


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
