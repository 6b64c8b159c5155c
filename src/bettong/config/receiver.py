"""Settings of the receiver."""

from pathlib import Path
from typing import Annotated

from annotated_types import Ge, Le
from pydantic import AfterValidator, Field

from bettong.config.endpoints import listening
from bettong.config.service import MEBIBYTE, ServingSettings, instance_field
from bettong.services import RECEIVER


class ReceiverSettings(ServingSettings):
    """The receiver's own settings."""

    instance: str = instance_field(RECEIVER.name)
    receiver_listen: Annotated[str, AfterValidator(listening)] = Field(
        f"127.0.0.1:{RECEIVER.grpc_port}", description="Address of the receiver's gRPC server, host:port."
    )
    receiver_dir: Path | None = Field(
        None, description="Folder of the file sink, one file per partition; without it no files are written."
    )
    receiver_redis_results_max: Annotated[int, Ge(0), Le(100_000_000)] = Field(
        10_000, description="Newest results of each sink kept in Redis; 0 keeps none."
    )
    receiver_subscribers_max: Annotated[int, Ge(1), Le(4096)] = Field(
        64, description="Subscribers at a time; the next is refused with RESOURCE_EXHAUSTED."
    )
    receiver_subscribers_per_client_max: Annotated[int, Ge(1), Le(4096)] = Field(
        32,
        description="Subscribers of one client at a time: of a token, else of a certificate's name, else of an address"
        " (all of loopback are one); the next is refused with RESOURCE_EXHAUSTED.",
    )
    receiver_subscriber_bytes_max: Annotated[int, Ge(65_536), Le(256 * MEBIBYTE)] = Field(
        MEBIBYTE,
        description="Bytes read ahead for one subscriber, one frame at least; it takes three times that of memory.",
    )
    receiver_subscribers_bytes_max: Annotated[int, Ge(MEBIBYTE), Le(64 * 1024 * MEBIBYTE)] = Field(
        256 * MEBIBYTE,
        description="Bytes held for all subscribers; beyond it those that have not read for longest are ended, and if"
        " all read, the next is refused.",
    )
    receiver_stall_ms: Annotated[int, Ge(100), Le(3_600_000)] = Field(
        30_000,
        description="How long a subscriber may leave one response unread, in milliseconds, before it is ended with"
        " ABORTED; after the same time again its connection is closed.",
    )

    @property
    def listen(self) -> str:
        """See ServingSettings."""
        return self.receiver_listen
