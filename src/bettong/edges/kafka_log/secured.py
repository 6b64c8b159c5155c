"""Security options for kafka-python and librdkafka, and the causes of refused connections."""

import logging

from confluent_kafka import KafkaError, KafkaException, Producer

from bettong.config.connection_settings import KafkaConnection
from bettong.config.connections import named
from bettong.edges.kafka_log.option_names import to_librdkafka
from bettong.errors import LogError, LogUnavailableError, SettingsError

# Enough for librdkafka to be refused several times.
_ANSWER_WAIT_S = 1.0

# librdkafka logs each attempt to connect; the edges report once that they wait.
SILENT = logging.getLogger("librdkafka")
SILENT.setLevel(logging.CRITICAL + 1)


def python_options(connection: KafkaConnection) -> dict[str, object]:
    """Options of kafka-python. Raises LogUnavailableError when the password cannot be read: its file may come back."""
    options: dict[str, object] = {"security_protocol": connection.security.upper()}
    if connection.security.tls:
        files = {
            "ssl_cafile": connection.ca,
            "ssl_certfile": connection.certificate,
            "ssl_keyfile": connection.key,
        }
        options |= {name: str(path) for name, path in files.items() if path is not None}
    if connection.security.sasl:
        options |= {
            "sasl_mechanism": connection.mechanism.value,
            "sasl_plain_username": connection.user,
            "sasl_plain_password": _password(connection),
        }
    return options


def librdkafka_options(connection: KafkaConnection) -> dict[str, object]:
    """Options of librdkafka. Raises LogUnavailableError when the password cannot be read: its file may come back."""
    return to_librdkafka(python_options(connection))


def refusal(error: KafkaError, doing: str, connection: KafkaConnection) -> LogError | None:
    """The error for a librdkafka error that is caused by security settings; None for any other."""
    reason = error.str().partition(": ")[2] or error.str()
    if error.code() == KafkaError._AUTHENTICATION:  # noqa: SLF001 - librdkafka's own codes have such names
        return LogError(
            f"{doing}: Kafka at {connection.bootstrap} refuses this user or password; correct"
            f" {_names(connection, 'BETTONG_KAFKA_USER, BETTONG_KAFKA_PASSWORD_FILE or BETTONG_KAFKA_MECHANISM')}"
            f" ({reason})"
        )
    if error.code() == KafkaError._SSL:  # noqa: SLF001
        return LogUnavailableError(
            f"{doing}: no TLS with Kafka at {connection.bootstrap}; are authority and certificate right? They are"
            f" those of {_names(connection, 'BETTONG_KAFKA_CA and BETTONG_KAFKA_CERTIFICATE')} ({reason})"
        )
    return None


def diagnose_refusal(connection: KafkaConnection) -> LogError | None:
    """Why a connection with TLS or a password fails; None when the cause is unknown.

    Blocks for about 1 s. kafka-python itself reports only a time-out.
    """
    if not (connection.security.tls or connection.security.sasl):
        return None
    errors: list[KafkaError] = []
    options = {
        "bootstrap.servers": connection.bootstrap,
        "error_cb": errors.append,
        **librdkafka_options(connection),
    }
    try:
        client = Producer(options, logger=SILENT)
    except KafkaException as error:
        return settings_error(error.args[0].str(), connection)
    try:
        client.list_topics(timeout=_ANSWER_WAIT_S)
    except KafkaException:
        client.poll(0)
    finally:
        client.close()
    return next((found for each in errors if (found := refusal(each, "connecting", connection))), None)


def settings_error(reason: str, connection: KafkaConnection) -> LogError:
    """The error when a client cannot be created: a certificate file is missing or invalid."""
    return LogError(
        f"connecting to Kafka at {connection.bootstrap}: {reason}; correct"
        f" {_names(connection, 'BETTONG_KAFKA_CA, BETTONG_KAFKA_CERTIFICATE or BETTONG_KAFKA_KEY')}"
    )


def _password(connection: KafkaConnection) -> str:
    try:
        return connection.password()
    except SettingsError as error:
        raise LogUnavailableError(
            f"Kafka at {connection.bootstrap} cannot be used without its password ({error})"
        ) from None


def _names(connection: KafkaConnection, settings: str) -> str:
    """What to correct: our settings, or the options of the user's connection."""
    return named(connection.connection_name) if connection.connection_name else settings
