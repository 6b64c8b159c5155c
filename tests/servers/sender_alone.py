"""A sender as a process of its own without Kafka and Redis, for what clients can do to it before either is asked.

Everything is the sender's own but the log, which takes records and keeps none, and the leases, which nobody disputes.
These know up to where each stream is durable.
The log may never answer for records above a size.
"""

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from bettong.config.reading import read
from bettong.config.sender import SenderSettings
from bettong.edges.grpc_server import ServerSecurity
from bettong.edges.serving import Serving
from bettong.errors import LogError
from bettong.identifiers import NO_SEQUENCE, Origin, SequenceNumber, TopicPartition
from bettong.local.addresses import LOOPBACK, free_ports
from bettong.local.probes import grpc_serves
from bettong.logs import configure
from bettong_sender.feed import Feed
from bettong_sender.intake import Intake, Limits
from bettong_sender.ownership import Ownership
from bettong_sender.service import _listen, receiving_of, shares_of
from bettong_sender.servicer import PERMISSIONS, IngestServicer
from bettong_sender.status import SenderStatus
from tests.samples.sender import json_source, route, source
from tests.waiting import eventually

_ROOT = Path(__file__).resolve().parent.parent.parent


# In the environment: of the records that the log answers for.
_ANSWERED_BYTES_MAX = "ANSWERED_BYTES_MAX"


class _KeepsNothing:
    def __init__(self) -> None:
        self._ends: Counter[TopicPartition] = Counter()
        self._answered_bytes_max = int(os.environ[_ANSWERED_BYTES_MAX])

    def append(
        self,
        to: TopicPartition,
        value: bytes,
        on_done: Callable[[int | LogError], None],
        *,
        traceparent: bytes = b"",
    ) -> None:
        assert not traceparent
        self._ends[to] += 1
        if len(value) <= self._answered_bytes_max:
            on_done(self._ends[to])


@dataclass
class _Lease:
    durable: SequenceNumber
    in_doubt: bool = False
    ended: bool = False


class _Undisputed:
    """Gives leases."""

    def __init__(self) -> None:
        self._durable: dict[Origin, SequenceNumber] = {}

    @contextlib.asynccontextmanager
    async def hold(self, holder: Feed, *, client: str, peer: str) -> AsyncIterator[_Lease]:
        del client, peer
        try:
            yield _Lease(self._durable.get(holder.origin, NO_SEQUENCE))
        finally:
            self._durable[holder.origin] = holder.acknowledged

    async def confirm(self, lease: _Lease, opened: Any) -> None:
        del lease
        await opened()


async def _serve() -> None:
    settings = read(SenderSettings)
    logger = configure(settings, "sender")
    limits = Limits(settings.sender_credits, settings.sender_sessions_max, settings.sender_buffer_bytes_max)
    routes = {
        each.name: route(each, frame_bytes_max=settings.frame_bytes_max) for each in (source(), json_source())
    }
    intake = Intake("shop", routes, limits, SenderStatus(0), clock=time.time_ns)
    topics = {name: name for each in routes.values() for name in (each.stage_topic, each.dead_letter_topic)}
    intake.use(_KeepsNothing(), topics)
    receiving = receiving_of(settings)
    servicer = IngestServicer(
        intake,
        cast("Ownership", _Undisputed()),
        shares_of(settings),
        receiving,
        asyncio.Event(),
        logger,
    )
    serving = Serving("bettong.v1.IngestService")
    security = ServerSecurity(settings, PERMISSIONS, receiving, logger)
    server = await _listen(settings, security, servicer, serving)
    await serving.say(serving=True)
    await asyncio.gather(security.watch(), server.wait_for_termination())


@contextmanager
def sender_alone(
    folder: Path, settings: Mapping[str, str], *, answered_bytes_max: int = sys.maxsize
) -> Iterator[tuple[str, int, Path]]:
    """Its address, its process and its log; ends with the block."""
    address, log = f"{LOOPBACK}:{free_ports(1)[0]}", folder / "sender.log"
    environment = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": os.pathsep.join([str(_ROOT), os.environ.get("PYTHONPATH", "")]),
        "BETTONG_APPLICATION": "app.py",
        "BETTONG_SENDER_LISTEN": address,
        _ANSWERED_BYTES_MAX: str(answered_bytes_max),
        **settings,
    }
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.servers.sender_alone"], env=environment, stderr=output, cwd=_ROOT
        )
    try:
        eventually(lambda: grpc_serves(address), seconds=60)
        yield address, process.pid, log
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    asyncio.run(_serve())
