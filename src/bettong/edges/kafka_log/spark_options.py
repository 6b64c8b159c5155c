"""Connection options for Spark's Kafka source and sink, that is, for Java's clients. Pure.

Options are visible in plans, the web UI and event logs, so they hold no secrets: Java's clients read key and password
from their files themselves (KIP-421, DirectoryConfigProvider), on each machine.
"""

from pathlib import Path

from bettong.config.connection_settings import KafkaConnection, KafkaMechanism

_SECURITY = "org.apache.kafka.common.security"
_MODULES = {
    KafkaMechanism.SCRAM_512: f"{_SECURITY}.scram.ScramLoginModule",
    KafkaMechanism.SCRAM_256: f"{_SECURITY}.scram.ScramLoginModule",
    KafkaMechanism.PLAIN: f"{_SECURITY}.plain.PlainLoginModule",
}
_PROVIDER = "org.apache.kafka.common.config.provider.DirectoryConfigProvider"


def spark_options(connection: KafkaConnection) -> dict[str, str]:
    """Options of `format("kafka")`, for both reading and writing."""
    options = {"bootstrap.servers": connection.bootstrap, "security.protocol": connection.security.upper()}
    if connection.security.tls:
        if connection.ca is not None:
            options |= {
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(connection.ca.absolute()),
            }
        if connection.certificate is not None and connection.key is not None:
            options |= {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.certificate.chain": _content(connection.certificate),
                "ssl.keystore.key": _content(connection.key),
            }
    if connection.security.sasl and connection.password_file is not None:
        options |= {
            "sasl.mechanism": connection.mechanism.value,
            "sasl.jaas.config": f'{_MODULES[connection.mechanism]} required username="{connection.user}"'
            f' password="{_content(connection.password_file)}";',
        }
    if any("${" in value for value in options.values()):
        options |= {"config.providers": "directory", "config.providers.directory.class": _PROVIDER}
    return {f"kafka.{name}": value for name, value in options.items()}


def _content(path: Path) -> str:
    """The placeholder that Java's client replaces by the file's content."""
    absolute = path.absolute()
    return f"${{directory:{absolute.parent}:{absolute.name}}}"
