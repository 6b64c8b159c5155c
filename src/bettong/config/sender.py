"""Settings of the sender."""

import os
from pathlib import Path
from typing import Annotated

from annotated_types import Ge, Le
from pydantic import AfterValidator, Field

from bettong.config.endpoints import listening
from bettong.config.service import MEBIBYTE, ServingSettings, instance_field
from bettong.services import SENDER

REFUSAL_SIGN = "refused"


def refusal_sign(marks: Path, application: str) -> Path:
    """The file that a sender touches when it has refused a frame, or messages of it, that had killed senders.

    `marks`: its BETTONG_SENDER_MARKS. The file shows its supervisor that the sender got past the cause of its death.
    """
    return marks / application / REFUSAL_SIGN


class SenderSettings(ServingSettings):
    """The sender's own settings."""

    instance: str = instance_field(SENDER.name)
    sender_listen: Annotated[str, AfterValidator(listening)] = Field(
        f"127.0.0.1:{SENDER.grpc_port}", description="Address of the sender's gRPC server, host:port."
    )
    sender_credits: Annotated[int, Ge(1), Le(4096)] = Field(
        32, description="Frames that one session may have in flight, not acknowledged."
    )
    sender_sessions_max: Annotated[int, Ge(1), Le(65_536)] = Field(
        1024, description="Sessions of clients at a time; the next is refused with RESOURCE_EXHAUSTED."
    )
    sender_sessions_per_client_max: Annotated[int, Ge(1), Le(65_536)] = Field(
        128,
        description="Sessions of one client at a time: of a token, else of a certificate's name, else of an address"
        " (all of loopback are one); the next is refused with RESOURCE_EXHAUSTED.",
    )
    sender_buffer_bytes_max: Annotated[int, Ge(MEBIBYTE), Le(64 * 1024 * MEBIBYTE)] = Field(
        256 * MEBIBYTE,
        description="Bytes of all sessions in flight to Kafka; beyond it no credits are granted.",
    )
    sender_receive_bytes_max: Annotated[int, Ge(MEBIBYTE), Le(64 * 1024 * MEBIBYTE)] = Field(
        128 * MEBIBYTE,
        description="Bytes held of frames that have arrived in part, or that wait while the buffer is full. Beyond it"
        " the connections that hold most of them are closed; only on Linux. Sessions times the largest frame cannot"
        " reach it: 25 by default.",
    )
    sender_receive_bytes_per_connection_max: Annotated[int, Ge(MEBIBYTE), Le(64 * 1024 * MEBIBYTE)] = Field(
        64 * MEBIBYTE,
        description="The same for one connection, which several clients of one process may share: beyond it that"
        " connection is closed. Two of the largest frames are always accepted.",
    )
    frame_messages_max: Annotated[int, Ge(1), Le(16 * MEBIBYTE)] = Field(
        65_536,
        description="Most messages of one frame from a client: each takes time and memory while others wait. Where a"
        " stage judges lateness also an eighth of `BETTONG_FRAME_BYTES_MAX`, if that is less.",
    )
    sender_lease_ms: Annotated[int, Ge(500), Le(600_000)] = Field(
        5_000,
        description="How long a stream stays reserved for its client after its sender died, and how long sessions"
        " continue without Redis (at most 8 s), in milliseconds.",
    )
    # Below 10 ms a source with many partitions would write more TICKs than frames.
    tick_ms: Annotated[int, Ge(10), Le(60_000)] = Field(
        200,
        description="How long a partition may get no frame of a client whose event time advances, in milliseconds,"
        " before a record brings it that watermark; only where a stage uses event time. docs/sources.md.",
    )
    # Below a second the watching thread could itself be late: see `bettong_sender.lock_watch`.
    sender_lock_ms_max: Annotated[int, Ge(1_000), Le(3_600_000)] = Field(
        30_000,
        description="CPU time of the sender, in milliseconds, for which a decoder, key or event_time function may hold"
        " the interpreter's lock, so that nothing else of the sender runs. Beyond it the sender ends, and the second"
        " time the message is refused. docs/delivery.md.",
    )
    sender_marks: Path = Field(
        # Private to this user, or refused: see `bettong_sender.marks`.
        default_factory=lambda: Path(f"/tmp/bettong-sender-{os.getuid()}"),  # noqa: S108
        examples=["/tmp/bettong-sender-<uid>"],  # noqa: S108
        description="Folder of this sender alone in which it marks what it is reading, so that a frame that kills it is"
        " identified after its next start.",
    )
    sender_topics: str = Field(
        "all",
        description="Sources with from_= whose external systems this sender reads: all, none, or comma-separated names."
        " Exactly one sender may read a source.",
    )

    @property
    def listen(self) -> str:
        """See ServingSettings."""
        return self.sender_listen
