"""Settings: read from the environment once, all faults reported at once, flags first."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Any

import pytest

from bettong.config.processor import ProcessorSettings, Schedule
from bettong.config.reading import read, read_client
from bettong.config.receiver import ReceiverSettings
from bettong.config.sender import SenderSettings
from bettong.config.service import PREFIX, LogFormat, ServiceSettings
from bettong.errors import SettingsError

KINDS: list[type[ServiceSettings]] = [ServiceSettings, SenderSettings, ProcessorSettings, ReceiverSettings]


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings but the application's."""
    for kind in KINDS:
        for name in kind.model_fields:
            monkeypatch.delenv(PREFIX + name.upper(), raising=False)
    monkeypatch.setenv("BETTONG_APPLICATION", "app.py")


def faults(kind: type[ServiceSettings], **overrides: Any) -> str:
    with pytest.raises(SettingsError) as caught:
        read(kind, overrides)
    return str(caught.value)


def test_defaults_serve_one_machine() -> None:
    settings = read(ProcessorSettings)
    assert settings.application == "app.py"
    assert settings.kafka == "127.0.0.1:9092"
    assert settings.partitions == 16
    assert settings.schedule is Schedule.RESIDENT
    assert settings.compiled


def test_services_of_one_host_have_names_of_their_own() -> None:
    names = [read(kind).instance for kind in (SenderSettings, ProcessorSettings, ReceiverSettings)]
    host = socket.gethostname()
    assert names == [f"sender-{host}", f"processor-{host}", f"receiver-{host}"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_setting_is_described(kind: type[ServiceSettings]) -> None:
    for name, field in kind.model_fields.items():
        assert field.description, name
        assert field.description.endswith("."), name


def test_an_empty_variable_is_as_good_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Charts and shell scripts set variables without a value; `""` as a folder would be the current one."""
    monkeypatch.setenv("BETTONG_RECEIVER_DIR", "")
    monkeypatch.setenv("BETTONG_PARTITIONS", "")
    settings = read(ReceiverSettings)
    assert settings.receiver_dir is None
    assert settings.partitions == 16


def test_the_environment_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in [
        ("KAFKA", "k:1"), ("PARTITIONS", "3"), ("COMPILED", "off"), ("LOG_FORMAT", "json"), ("STATE_DIR", "/x"),
    ]:  # fmt: skip
        monkeypatch.setenv(PREFIX + name, value)
    settings = read(ProcessorSettings)
    assert (settings.kafka, settings.partitions, settings.compiled) == ("k:1", 3, False)
    assert (settings.log_format, settings.state_dir) == (LogFormat.JSON, Path("/x"))


def test_flags_come_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BETTONG_PARTITIONS", "3")
    monkeypatch.setenv("BETTONG_KAFKA", "k:1")
    settings = read(ServiceSettings, {"partitions": 5, "kafka": None})
    assert (settings.partitions, settings.kafka) == (5, "k:1")


def test_all_faults_are_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BETTONG_APPLICATION")
    monkeypatch.setenv("BETTONG_PARTITIONS", "0")
    monkeypatch.setenv("BETTONG_FRAME_BYTES_MAX", "many")
    monkeypatch.setenv("BETTONG_LOG_LEVEL", "loud")
    text = faults(SenderSettings, sender_credits=0)
    assert text.startswith("5 setting(s) wrong: ")
    for part in (
        "BETTONG_APPLICATION: Field required",
        "BETTONG_PARTITIONS: ",
        "(got '0')",
        "BETTONG_FRAME_BYTES_MAX: ",
        "(got 'many')",
        "BETTONG_LOG_LEVEL: ",
        "BETTONG_SENDER_CREDITS: ",
    ):
        assert part in text
    assert "\n" not in text


def test_addresses_are_checked_with_all_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "KAFKA": "localhost",
        "REDIS": "redis//u:secret@host",
        "SENDER_LISTEN": "7100",
        "PARTITIONS": "0",
    }.items():
        monkeypatch.setenv(PREFIX + name, value)
    text = faults(SenderSettings)
    assert text.startswith("4 setting(s) wrong: ")
    for part in (
        "BETTONG_KAFKA: expected host:port[,host:port] (got 'localhost')",
        "BETTONG_REDIS: expected redis://",
        "BETTONG_SENDER_LISTEN: expected host:port (got '7100')",
        "BETTONG_PARTITIONS: ",
    ):
        assert part in text
    assert "secret" not in text
    assert "BETTONG_RECEIVER_LISTEN: expected host:port" in faults(ReceiverSettings, receiver_listen="x")


def test_spaces_between_servers_are_left_out() -> None:
    assert read(ServiceSettings, {"kafka": "a:1, [::1]:2"}).kafka == "a:1,[::1]:2"


def test_a_misspelt_variable_is_refused_with_the_right_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BETTONG_PARTITION", "3")
    monkeypatch.setenv("BETTONG_SENDER_CREDIT", "7")
    monkeypatch.setenv("BETTONG_REPLICATION", "0")
    text = faults(ReceiverSettings)
    assert text.startswith("3 setting(s) wrong: ")
    assert "BETTONG_PARTITION: there is no such setting; is BETTONG_PARTITIONS meant?" in text
    assert "BETTONG_SENDER_CREDIT: there is no such setting; is BETTONG_SENDER_CREDITS meant?" in text


@pytest.mark.parametrize(
    "name",
    # What Kubernetes sets in pods beside services of these names, and what other tools may.
    [
        "SENDER_PORT",
        "SENDER_SERVICE_HOST",
        "RECEIVER_SERVICE_PORT",
        "REDIS_PORT_6379_TCP",
        "KAFKA_PORT",
        "HOME",
    ],
)
def test_variables_of_others_are_left_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PREFIX + name, "tcp://10.0.0.1:7100")
    read(SenderSettings)
    read(ReceiverSettings)


def test_an_empty_flag_is_as_good_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(ReceiverSettings, {"receiver_dir": ""}).receiver_dir is None
    monkeypatch.setenv("BETTONG_PARTITIONS", "3")
    assert read(ReceiverSettings, {"partitions": ""}).partitions == 3


def test_the_state_of_each_deployment_has_a_folder_of_its_own() -> None:
    ours = read(ProcessorSettings, {"kafka": "a:1", "checkpoint": "/x"})
    assert ours.state_folder("totals") == ours.state_folder("totals")
    others = [
        ours.state_folder("words"),
        read(ProcessorSettings, {"kafka": "b:1", "checkpoint": "/x"}).state_folder("totals"),
        read(ProcessorSettings, {"kafka": "a:1", "checkpoint": "/y"}).state_folder("totals"),
    ]
    assert len({ours.state_folder("totals"), *others}) == 4
    assert all(folder.parent == ours.state_dir for folder in others)


def test_applications_of_one_folder_have_checkpoints_of_their_own() -> None:
    settings = read(ProcessorSettings, {"checkpoint": "s3a://bucket/bettong/"})
    assert settings.checkpoint_of("totals") == "s3a://bucket/bettong/totals"
    assert read(ProcessorSettings).checkpoint_of("words") == "checkpoint/words"
    # Of another number of partitions since, whatever else has been lost.
    assert [settings.checkpoint_of("totals", generation) for generation in (0, 1, 2)] == [
        "s3a://bucket/bettong/totals",
        "s3a://bucket/bettong/totals/generation-1",
        "s3a://bucket/bettong/totals/generation-2",
    ]


def test_a_schedule_that_is_not_there_is_refused_with_those_that_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BETTONG_SCHEDULE", "fast")
    assert "BETTONG_SCHEDULE: Input should be 'resident' or 'micro-batch'" in faults(ProcessorSettings)


def test_settings_of_other_services_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BETTONG_SENDER_CREDITS", "nonsense")
    read(ReceiverSettings)


def test_settings_cannot_be_changed_and_can_be_looked_up_by() -> None:
    settings = read(ServiceSettings)
    with pytest.raises(ValueError, match="frozen"):
        settings.partitions = 3
    assert {settings: 1}[read(ServiceSettings)] == 1


def test_the_smallest_frame_holds_a_dead_letter() -> None:
    """A reason of 1000 characters takes up to 4000 bytes, beside the names and half a frame of the message."""
    assert "BETTONG_FRAME_BYTES_MAX" in faults(ServiceSettings, frame_bytes_max=8 * 1024)
    read(ServiceSettings, {"frame_bytes_max": 16 * 1024})


def test_a_url_of_snapshots_is_checked_and_a_password_in_it_never_reported() -> None:
    assert read(ProcessorSettings).snapshots == "redis"
    assert read(ProcessorSettings, {"snapshots": "s3://bucket/folder/"}).snapshots == "s3://bucket/folder"
    reported = faults(ProcessorSettings, snapshots="s3://id:secret@bucket/folder")
    assert "BETTONG_SNAPSHOTS: expected no password in it" in reported
    assert "secret" not in reported


@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        ("TRACE_ENDPOINT", "collector:4317", "TRACE_ENDPOINT: expected http://host:port, or https://"),
        ("TRACE_ENDPOINT", "http://collector", "TRACE_ENDPOINT: expected http://host:port"),
        ("TRACE_ENDPOINT", "grpc://collector:4317", "TRACE_ENDPOINT: expected http://host:port"),
        ("TRACE_ENDPOINT", "http://collector:4317/v1/traces", "TRACE_ENDPOINT: expected http://host:port"),
        ("TRACE_ENDPOINT", "http://collector:70000", "TRACE_ENDPOINT: expected http://host:port"),
        ("TRACE_RATIO", "1.5", "TRACE_RATIO: Input should be less than or equal to 1"),
        ("TRACE_RATIO", "-0.1", "TRACE_RATIO: Input should be greater than or equal to 0"),
        ("TRACE_RATIO", "nan", "TRACE_RATIO: "),
        ("TRACE_RATIO", "1%", "TRACE_RATIO: Input should be a valid number"),
        ("MEASURES", "some", "MEASURES: Input should be a valid boolean"),
    ],
)
def test_settings_of_traces_that_make_no_sense_are_named(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, fault: str
) -> None:
    for prefix in ("BETTONG_", "BETTONG_CLIENT_"):
        if prefix == "BETTONG_CLIENT_" and name == "MEASURES":
            continue
        monkeypatch.setenv(prefix + name, value)
        with pytest.raises(SettingsError, match=re.escape(prefix + fault)):
            _ = read_client() if prefix == "BETTONG_CLIENT_" else read(ServiceSettings)
        monkeypatch.delenv(prefix + name)


@pytest.mark.parametrize("prefix", ["BETTONG_", "BETTONG_CLIENT_"])
def test_a_password_in_an_endpoint_of_traces_is_refused_and_never_reported(
    monkeypatch: pytest.MonkeyPatch, prefix: str
) -> None:
    monkeypatch.setenv(f"{prefix}TRACE_ENDPOINT", "http://id:secret@collector:4317")
    with pytest.raises(SettingsError) as caught:
        _ = read_client() if prefix == "BETTONG_CLIENT_" else read(ServiceSettings)
    assert f"{prefix}TRACE_ENDPOINT: expected http://host:port" in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("endpoint", ["http://collector:4317", " https://[::1]:4317/ "])
def test_an_endpoint_of_traces_is_a_url_of_a_host_and_a_port(
    monkeypatch: pytest.MonkeyPatch, endpoint: str
) -> None:
    monkeypatch.setenv("BETTONG_TRACE_ENDPOINT", endpoint)
    assert read(ServiceSettings).trace_endpoint == endpoint.strip().rstrip("/")


def test_everything_is_measured_but_nothing_traced_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    found = read(ServiceSettings)
    assert (found.measures, found.trace_endpoint, found.trace_ratio) == (True, None, 0.01)
    assert read_client().trace_endpoint is None
    monkeypatch.setenv("BETTONG_MEASURES", "off")
    assert not read(ServiceSettings).measures
