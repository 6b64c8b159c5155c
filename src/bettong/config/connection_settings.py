"""How to connect to Kafka and Redis: addresses, TLS, users. Settings, and the values that the edges get from them.

A password is read from its file whenever a client is made (for Redis: for each connection). It is never part of a
setting, a flag, a log line or an error.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from bettong.config.endpoints import redis_url, servers
from bettong.errors import SettingsError

# Characters that would end or escape the quoted string that Java's clients require.
_UNQUOTABLE = frozenset('"\\\n\r')
_PASSWORD_BYTES_MAX = 4096


class KafkaSecurity(StrEnum):
    """The protocol to Kafka: TLS or plain text, with SASL or without. Kafka's `security.protocol`."""

    PLAINTEXT = "plaintext"
    SSL = "ssl"
    SASL_PLAINTEXT = "sasl_plaintext"
    SASL_SSL = "sasl_ssl"

    @property
    def tls(self) -> bool:
        """Whether it uses TLS."""
        return self in (KafkaSecurity.SSL, KafkaSecurity.SASL_SSL)

    @property
    def sasl(self) -> bool:
        """Whether it authenticates by SASL, with a password."""
        return self in (KafkaSecurity.SASL_PLAINTEXT, KafkaSecurity.SASL_SSL)


class KafkaMechanism(StrEnum):
    """The SASL mechanism."""

    SCRAM_512 = "SCRAM-SHA-512"
    SCRAM_256 = "SCRAM-SHA-256"
    PLAIN = "PLAIN"


@dataclass(frozen=True, slots=True)
class KafkaConnection:
    """How to connect to a Kafka. Without `ca` the machine's own authorities are trusted.

    `connection_name`: of a user's Kafka, whose options have the rest; "" for Bettong's own Kafka.
    """

    bootstrap: str
    security: KafkaSecurity = KafkaSecurity.PLAINTEXT
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    mechanism: KafkaMechanism = KafkaMechanism.SCRAM_512
    user: str = ""
    password_file: Path | None = None
    connection_name: str = ""

    @classmethod
    def of(cls, where: "str | KafkaConnection") -> "KafkaConnection":
        """The connection itself; a text host:port[,host:port] is one in plain text."""
        return where if isinstance(where, KafkaConnection) else cls(where)

    def password(self) -> str:
        """The password, as its file holds it now. Raises SettingsError."""
        return _password(self.password_file, "BETTONG_KAFKA_PASSWORD_FILE")


@dataclass(frozen=True, slots=True)
class RedisConnection:
    """How to connect to a Redis. `user` and the password of the file take precedence over those in the URL."""

    url: str = field(repr=False)
    ca: Path | None = None
    user: str = ""
    password_file: Path | None = None

    @classmethod
    def of(cls, where: "str | RedisConnection") -> "RedisConnection":
        """The connection itself; a URL is one without other options."""
        return where if isinstance(where, RedisConnection) else cls(where)

    def password(self) -> str:
        """The password, as its file holds it now. Raises SettingsError."""
        return _password(self.password_file, "BETTONG_REDIS_PASSWORD_FILE")


class ConnectionSettings(BaseSettings):
    """Settings of the connections to Kafka and Redis."""

    model_config = SettingsConfigDict(
        env_prefix="BETTONG_", env_ignore_empty=True, frozen=True, extra="ignore"
    )

    kafka: Annotated[str, AfterValidator(servers)] = Field(
        "127.0.0.1:9092", description="Kafka's bootstrap servers, host:port[,host:port]."
    )
    kafka_security: KafkaSecurity = Field(
        KafkaSecurity.PLAINTEXT,
        description="Protocol to Kafka: plaintext, ssl, sasl_plaintext or sasl_ssl.",
    )
    kafka_ca: Path | None = Field(
        None,
        description="PEM file of the authorities that may have signed the brokers' certificates; by default those of"
        " the machine.",
    )
    kafka_certificate: Path | None = Field(
        None, description="PEM file of our own certificate, if brokers require one."
    )
    kafka_key: Path | None = Field(
        None, description="PEM file of that certificate's key, PKCS#8 without a password."
    )
    kafka_mechanism: KafkaMechanism = Field(
        KafkaMechanism.SCRAM_512,
        description="SASL mechanism of Kafka: SCRAM-SHA-512, SCRAM-SHA-256 or PLAIN.",
    )
    kafka_user: Annotated[str, Field(pattern=r"^[^\"\\\s]*$")] = Field("", description="Kafka's user.")
    kafka_password_file: Path | None = Field(
        None, description="File with the password of Kafka's user, and nothing else."
    )
    redis: Annotated[str, AfterValidator(redis_url)] = Field(
        "redis://127.0.0.1:6379/0", description="Redis, as a URL; rediss:// for TLS."
    )
    redis_ca: Path | None = Field(
        None, description="PEM file of the authorities that may have signed Redis' certificate."
    )
    redis_user: str = Field("", description="Redis' user, by default the one without a name.")
    redis_password_file: Path | None = Field(
        None,
        description="File with the password of Redis' user, and nothing else; read again for each connection.",
    )

    @property
    def kafka_connection(self) -> KafkaConnection:
        """The connection to Bettong's own Kafka."""
        return KafkaConnection(
            self.kafka,
            self.kafka_security,
            ca=self.kafka_ca,
            certificate=self.kafka_certificate,
            key=self.kafka_key,
            mechanism=self.kafka_mechanism,
            user=self.kafka_user,
            password_file=self.kafka_password_file,
        )

    @property
    def redis_connection(self) -> RedisConnection:
        """The connection to Bettong's own Redis."""
        return RedisConnection(self.redis, self.redis_ca, self.redis_user, self.redis_password_file)

    @model_validator(mode="after")
    def _connections_agree(self) -> Self:
        faults = [*self._kafka_faults(), *self._redis_faults()]
        if faults:
            raise ValueError("; ".join(faults))
        return self

    def _kafka_faults(self) -> list[str]:
        faults, security = [], self.kafka_security
        if (self.kafka_certificate is None) is not (self.kafka_key is None):
            faults.append("BETTONG_KAFKA_CERTIFICATE and BETTONG_KAFKA_KEY: give both, or none")
        if (self.kafka_ca or self.kafka_certificate) and not security.tls:
            faults.append(
                "BETTONG_KAFKA_CA and BETTONG_KAFKA_CERTIFICATE need BETTONG_KAFKA_SECURITY=ssl or sasl_ssl"
            )
        if security.sasl and not (self.kafka_user and self.kafka_password_file):
            faults.append(
                f"BETTONG_KAFKA_SECURITY={security} needs BETTONG_KAFKA_USER and BETTONG_KAFKA_PASSWORD_FILE"
            )
        if (self.kafka_user or self.kafka_password_file) and not security.sasl:
            faults.append(
                "BETTONG_KAFKA_USER and BETTONG_KAFKA_PASSWORD_FILE need BETTONG_KAFKA_SECURITY=sasl_ssl or"
                " sasl_plaintext"
            )
        return faults

    def _redis_faults(self) -> list[str]:
        faults, url = [], urlsplit(self.redis)
        if self.redis_ca and url.scheme != "rediss":
            faults.append("BETTONG_REDIS_CA needs a BETTONG_REDIS that begins with rediss://")
        if self.redis_user and not self.redis_password_file:
            faults.append("BETTONG_REDIS_USER needs BETTONG_REDIS_PASSWORD_FILE")
        if self.redis_password_file and "@" in url.netloc:
            faults.append(
                "BETTONG_REDIS_PASSWORD_FILE: BETTONG_REDIS holds a user or password, too; give one of them"
            )
        return faults


def _password(path: Path | None, setting: str) -> str:
    if path is None:
        return ""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise SettingsError(f"{setting}: cannot read {path}: {error.strerror}") from None
    # Errors never quote the content.
    text = content.decode("utf-8", "replace")
    if not text or len(content) > _PASSWORD_BYTES_MAX or _UNQUOTABLE & set(text):
        raise SettingsError(
            f"{setting}: {path} must contain only the password, without a newline, quotes and backslashes;"
            " write it with printf %s"
        )
    return text
