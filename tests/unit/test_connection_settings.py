"""How Kafka and Redis are reached: settings that agree, passwords in files, and no secret where it may be seen."""

from pathlib import Path

import pytest

from bettong.config.connection_settings import (
    ConnectionSettings,
    KafkaConnection,
    KafkaSecurity,
    RedisConnection,
)
from bettong.config.reading import read
from bettong.edges.kafka_log.secured import librdkafka_options, python_options
from bettong.edges.kafka_log.spark_options import spark_options
from bettong.errors import SettingsError

WORD = "a word that nobody sees"
FAULTS = [
    (
        {"KAFKA_SECURITY": "tls"},
        "BETTONG_KAFKA_SECURITY: Input should be 'plaintext', 'ssl', 'sasl_plaintext'",
    ),
    ({"KAFKA_SECURITY": "sasl_ssl"}, "BETTONG_KAFKA_SECURITY=sasl_ssl needs BETTONG_KAFKA_USER and"),
    ({"KAFKA_USER": "a", "KAFKA_PASSWORD_FILE": "/f"}, "need BETTONG_KAFKA_SECURITY=sasl_ssl or"),
    ({"KAFKA_CA": "/ca"}, "BETTONG_KAFKA_CERTIFICATE need BETTONG_KAFKA_SECURITY=ssl or sasl_ssl"),
    (
        {"KAFKA_SECURITY": "ssl", "KAFKA_KEY": "/k"},
        "BETTONG_KAFKA_CERTIFICATE and BETTONG_KAFKA_KEY: give both",
    ),
    ({"KAFKA_USER": 'a" evil="b'}, "BETTONG_KAFKA_USER: String should match pattern"),
    ({"REDIS_CA": "/ca"}, "BETTONG_REDIS_CA needs a BETTONG_REDIS that begins with rediss://"),
    ({"REDIS_USER": "a"}, "BETTONG_REDIS_USER needs BETTONG_REDIS_PASSWORD_FILE"),
    (
        {"REDIS": "redis://u:secret-word@h:1/0", "REDIS_PASSWORD_FILE": "/f"},
        "BETTONG_REDIS_PASSWORD_FILE: BETTONG_REDIS holds a user or password, too",
    ),
]


@pytest.mark.parametrize(("variables", "text"), FAULTS, ids=lambda each: str(each)[:40])
def test_settings_that_do_not_agree_are_reported(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], text: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(f"BETTONG_{name}", value)
    with pytest.raises(SettingsError) as raised:
        read(ConnectionSettings)
    assert text in str(raised.value)
    assert "secret-word" not in str(raised.value)


@pytest.fixture
def connection(tmp_path: Path) -> KafkaConnection:
    word = tmp_path / "word"
    word.write_text(WORD)
    return KafkaConnection(
        "k:1",
        KafkaSecurity.SASL_SSL,
        ca=tmp_path / "ca.pem",
        certificate=tmp_path / "tls.crt",
        key=tmp_path / "tls.key",
        user="ann",
        password_file=word,
    )


def test_each_client_of_the_log_gets_the_same(connection: KafkaConnection, tmp_path: Path) -> None:
    assert python_options(connection) == {
        "security_protocol": "SASL_SSL",
        "ssl_cafile": str(tmp_path / "ca.pem"),
        "ssl_certfile": str(tmp_path / "tls.crt"),
        "ssl_keyfile": str(tmp_path / "tls.key"),
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "ann",
        "sasl_plain_password": WORD,
    }
    assert librdkafka_options(connection) == {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(tmp_path / "ca.pem"),
        "ssl.certificate.location": str(tmp_path / "tls.crt"),
        "ssl.key.location": str(tmp_path / "tls.key"),
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "ann",
        "sasl.password": WORD,
    }
    java = spark_options(connection)
    assert java["kafka.security.protocol"] == "SASL_SSL"
    assert java["kafka.ssl.truststore.location"] == str(tmp_path / "ca.pem")
    assert java["kafka.ssl.keystore.key"] == f"${{directory:{tmp_path}:tls.key}}"
    assert f'username="ann" password="${{directory:{tmp_path}:word}}";' in java["kafka.sasl.jaas.config"]


def test_plans_and_the_web_page_of_spark_show_no_secret(connection: KafkaConnection) -> None:
    assert WORD not in str(spark_options(connection))
    assert WORD not in repr(connection)


def test_plain_text_needs_nothing() -> None:
    connection = KafkaConnection.of("k:1")
    assert spark_options(connection) == {
        "kafka.bootstrap.servers": "k:1",
        "kafka.security.protocol": "PLAINTEXT",
    }
    assert python_options(connection) == {"security_protocol": "PLAINTEXT"}
    assert librdkafka_options(connection) == {"security.protocol": "PLAINTEXT"}


@pytest.mark.parametrize("content", ["", f"{WORD}\n", 'quoted "word"', "back\\slash", "x" * 5000])
def test_a_file_that_does_not_hold_a_password_alone_is_refused_and_not_quoted(
    connection: KafkaConnection, content: str
) -> None:
    assert connection.password_file is not None
    connection.password_file.write_text(content)
    with pytest.raises(SettingsError, match="must contain only the password") as raised:
        connection.password()
    assert not content or content.strip() not in str(raised.value)


def test_a_redis_url_with_a_password_is_not_shown() -> None:
    assert "secret-word" not in repr(RedisConnection("redis://:secret-word@h:1/0"))
