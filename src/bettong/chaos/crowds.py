"""Clients that behave badly: subscribers that read nothing, and many streams that end at once.

They speak gRPC by themselves, for a careful client would never behave so. Each runs in threads of its own until it is
closed; what a service answers them, refusals too, is its own affair and no fault of the run.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence

import grpc

from bettong.client.credentials import Credentials
from bettong.v1.ingest_pb2 import Hello, IngestRequest
from bettong.v1.ingest_pb2_grpc import IngestServiceStub
from bettong.v1.subscribe_pb2 import START_EARLIEST, SubscribeRequest
from bettong.v1.subscribe_pb2_grpc import SubscribeServiceStub

# Clients of a crowd that are under way at a time.
CLIENTS = 8
# A stream opens in some ten ms; one that takes longer meets another fault, and is left.
_STREAM_S_MAX = 5.0
_CLOSE_S_MAX = 10.0
# Each client has a connection of its own, as programs on several machines would.
_OWN_CONNECTION = ("grpc.use_local_subchannel_pool", 1)


class StalledSubscribers:
    """`count` subscribers at `address`, spread over `sinks`: they ask for everything and read nothing."""

    def __init__(self, address: str, sinks: Sequence[str], count: int) -> None:
        credentials = Credentials.from_environment()
        self._channels = [credentials.channel(address, [_OWN_CONNECTION]) for _ in range(count)]
        self._calls = [
            SubscribeServiceStub(channel).Subscribe(
                SubscribeRequest(sink=sink, start=START_EARLIEST), metadata=credentials.metadata(address)
            )
            for channel, sink in zip(self._channels, itertools.cycle(sinks), strict=False)
        ]

    @property
    def refused(self) -> int:
        """How many calls have ended: the service has refused them, ended them, or gone."""
        return sum(not call.is_active() for call in self._calls)

    def close(self) -> None:
        """Ends the calls."""
        for call in self._calls:
            call.cancel()
        for channel in self._channels:
            channel.close()


class StreamCrowd:
    """`count` streams at `source`, each opened by a client of its own and ended as soon as it is welcome."""

    def __init__(
        self, address: str, source: str, count: int, *, names: Callable[[], str] = lambda: uuid.uuid4().hex
    ) -> None:
        """Begins at once. `names` draws a text that no other stream has."""
        self.opened = 0
        self._address = address
        self._source = source
        self._names = names
        self._left = iter(range(count))
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._threads = [
            threading.Thread(target=self._keep, name="crowd", daemon=True) for _ in range(min(count, CLIENTS))
        ]
        for thread in self._threads:
            thread.start()

    def wait(self, seconds: float) -> bool:
        """Whether all have had their turn; waits that long for each client."""
        for thread in self._threads:
            thread.join(seconds)
        return not any(thread.is_alive() for thread in self._threads)

    def close(self) -> None:
        """No more streams; the ones under way end within seconds."""
        self._closed.set()
        self.wait(_CLOSE_S_MAX)

    def _keep(self) -> None:
        credentials = Credentials.from_environment()
        with credentials.channel(self._address, [_OWN_CONNECTION]) as channel:
            while not self._closed.is_set() and self._next():
                call = IngestServiceStub(channel).Ingest(
                    self._hello(), timeout=_STREAM_S_MAX, metadata=credentials.metadata(self._address)
                )
                with contextlib.suppress(grpc.RpcError):  # refused, cut off, or the sender was killed
                    if any(response.WhichOneof("response") == "welcome" for response in call):
                        self._count()

    def _hello(self) -> Iterator[IngestRequest]:
        name = self._names()
        yield IngestRequest(hello=Hello(source=self._source, stream=f"crowd-{name}", client=name))

    def _next(self) -> bool:
        with self._lock:
            return next(self._left, None) is not None

    def _count(self) -> None:
        with self._lock:
            self.opened += 1
