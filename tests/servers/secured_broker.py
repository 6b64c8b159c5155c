"""A broker with a port more, that takes TLS and a password and nothing else, beside the plain one of its own use."""

from pathlib import Path

from cryptography.hazmat.primitives import serialization

from bettong.config.connection_settings import KafkaConnection, KafkaSecurity
from bettong.local.addresses import LOOPBACK, free_ports
from bettong.local.broker import KafkaBroker
from tests.servers.certificates import Authority, Pair

USER = "bettong"
PASSWORD = "a word that nobody sees"  # noqa: S105 - of a test
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"


class SecuredBroker(KafkaBroker):
    """`connection` is the secured port, as the one user that there is."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "broker", heap_mb=256)
        self.authority = Authority(folder / "authority")
        self._secured_port = free_ports(1)[0]
        self._store = folder / "store.pem"
        self._store.write_bytes(pkcs8(self.authority.issue()))
        self.password_file = folder / "password"
        self.password_file.write_text(PASSWORD)

    @property
    def connection(self) -> KafkaConnection:
        """By TLS, with the right password."""
        return KafkaConnection(
            f"{LOOPBACK}:{self._secured_port}",
            KafkaSecurity.SASL_SSL,
            ca=self.authority.ca,
            user=USER,
            password_file=self.password_file,
        )

    def format_arguments(self) -> tuple[str, ...]:
        """See KafkaBroker."""
        return ("--add-scram", f"SCRAM-SHA-512=[name={USER},password={PASSWORD}]")

    def addresses(self) -> dict[str, str]:
        """See KafkaBroker."""
        plain = super().addresses()
        secured = f"SECURED://{LOOPBACK}:{self._secured_port}"
        return {
            **plain,
            "listeners": f"{plain['listeners']},{secured}",
            "advertised.listeners": f"{plain['advertised.listeners']},{secured}",
            "listener.security.protocol.map": "CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURED:SASL_SSL",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "listener.name.secured.scram-sha-512.sasl.jaas.config": _SCRAM,
            "listener.name.secured.ssl.keystore.type": "PEM",
            "listener.name.secured.ssl.keystore.location": str(self._store),
        }


def pkcs8(pair: Pair) -> bytes:
    """Key and certificates in one, as Java reads them."""
    key = serialization.load_pem_private_key(pair.key.read_bytes(), password=None)
    return (
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        + pair.certificate.read_bytes()
    )
