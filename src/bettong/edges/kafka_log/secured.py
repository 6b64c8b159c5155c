"""How a Kafka is spoken to, in the words of kafka-python and of librdkafka; and why they do not get through."""

import logging

from confluent_kafka import KafkaError, KafkaException, Producer

from bettong.connections import named
from bettong.edges.kafka_log.option_names import of_librdkafka
from bettong.errors import LogError, LogUnavailableError
from bettong.reaching import KafkaPlace

# librdkafka has tried, and been refused, several times by then.
_LOOK_S = 1.0

# It tells each attempt to connect; the edges say once, and in their own words, that they wait.
SILENT = logging.getLogger("librdkafka")
SILENT.setLevel(logging.CRITICAL + 1)


def python_options(place: KafkaPlace) -> dict[str, object]:
    """Options of kafka-python. Raises SettingsError when the password cannot be read."""
    options: dict[str, object] = {"security_protocol": place.security.upper()}
    if place.security.tls:
        files = {"ssl_cafile": place.ca, "ssl_certfile": place.certificate, "ssl_keyfile": place.key}
        options |= {name: str(path) for name, path in files.items() if path is not None}
    if place.security.sasl:
        options |= {
            "sasl_mechanism": place.mechanism.value,
            "sasl_plain_username": place.user,
            "sasl_plain_password": place.password(),
        }
    return options


def librdkafka_options(place: KafkaPlace) -> dict[str, object]:
    """Options of librdkafka. Raises SettingsError when the password cannot be read."""
    return of_librdkafka(python_options(place))


def refusal(error: KafkaError, doing: str, place: KafkaPlace) -> LogError | None:
    """What an error of librdkafka's says about settings; None when it is about something else."""
    reason = error.str().partition(": ")[2] or error.str()
    if error.code() == KafkaError._AUTHENTICATION:  # noqa: SLF001 - its codes of its own are named so
        return LogError(
            f"{doing}: Kafka at {place.bootstrap} refuses this user or password; correct"
            f" {_names(place, 'BETTONG_KAFKA_USER, BETTONG_KAFKA_PASSWORD_FILE or BETTONG_KAFKA_MECHANISM')} ({reason})"
        )
    if error.code() == KafkaError._SSL:  # noqa: SLF001
        return LogUnavailableError(
            f"{doing}: no TLS with Kafka at {place.bootstrap}; are authority and certificate right? They are those of"
            f" {_names(place, 'BETTONG_KAFKA_CA and BETTONG_KAFKA_CERTIFICATE')} ({reason})"
        )
    return None


def why_not(place: KafkaPlace) -> LogError | None:
    """Why a Kafka that is spoken to by TLS or with a password cannot be connected to; None when that cannot be told.

    Blocks for about 1 s. kafka-python itself tells of nothing but the time that went by.
    """
    if not (place.security.tls or place.security.sasl):
        return None
    heard: list[KafkaError] = []
    options = {"bootstrap.servers": place.bootstrap, "error_cb": heard.append, **librdkafka_options(place)}
    try:
        client = Producer(options, logger=SILENT)
    except KafkaException as error:
        return settings_fault(error.args[0].str(), place)
    try:
        client.list_topics(timeout=_LOOK_S)
    except KafkaException:
        client.poll(0)
    finally:
        client.close()
    return next((found for each in heard if (found := refusal(each, "connecting", place))), None)


def settings_fault(reason: str, place: KafkaPlace) -> LogError:
    """A client that cannot even be made: a file of certificates that is not there, or is none."""
    return LogError(
        f"connecting to Kafka at {place.bootstrap}: {reason}; correct"
        f" {_names(place, 'BETTONG_KAFKA_CA, BETTONG_KAFKA_CERTIFICATE or BETTONG_KAFKA_KEY')}"
    )


def _names(place: KafkaPlace, settings: str) -> str:
    """What to look at: our settings, or the options of the user's connection."""
    return named(place.connection) if place.connection else settings
