"""Clients that behave badly: subscribers that read nothing, and more streams than any application has clients.

They call gRPC directly, because a proper client would never behave so. Each runs in its own threads until it is closed;
whatever a service answers them, refusals too, is no failure of the run.
"""

from __future__ import annotations

import itertools
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from queue import SimpleQueue

import grpc

from bettong.chaos.timetable import PlannedFault
from bettong.client.credentials import Credentials
from bettong.v1.frame_pb2 import Rows
from bettong.v1.ingest_pb2 import Hello, IngestFrame, IngestRequest, IngestResponse
from bettong.v1.ingest_pb2_grpc import IngestServiceStub
from bettong.v1.subscribe_pb2 import START_EARLIEST, SubscribeRequest
from bettong.v1.subscribe_pb2_grpc import SubscribeServiceStub

# Concurrent clients of a crowd.
CLIENTS = 32
# A stream opens in some 10 ms; one that takes longer was hit by another fault, and retries.
_STREAM_S_MAX = 5.0
_AGAIN_S = 0.2
_REPORT_S = 10.0
_CLOSE_S_MAX = 10.0
# With a message in each, the crowd would feed more than the inputs do.
_ROW_EVERY = 10
# Each client has a connection of its own, as programs on several machines would.
_OWN_CONNECTION = ("grpc.use_local_subchannel_pool", 1)


def row_of(crowd: PlannedFault, stream: int) -> bytes | None:
    """The row that a stream of a crowd sends, by its number: each tenth sends the crowd's row with unique numbers."""
    if not crowd.row or stream % _ROW_EVERY:
        return None
    return f"{crowd.row}{crowd.number}/{stream}".encode()


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
    def is_over(self) -> bool:
        """False: they never end by themselves."""
        return False

    @property
    def refused(self) -> int:
        """How many calls have ended: the service has refused them, ended them, or died."""
        return sum(not call.is_active() for call in self._calls)

    def close(self) -> None:
        """Ends the calls."""
        for call in self._calls:
            call.cancel()
        for channel in self._channels:
            channel.close()


class StreamCrowd:
    """`count` streams at `source`, each opened by its own client, and ended for good when its work is done.

    CLIENTS of them run at a time, spread over the senders at `addresses`. A stream for which `row_of` returns a row
    sends that one message, and is done once it is acknowledged; the others are done as soon as they are welcome. A
    stream that is cut off retries until it is done. `report` gets lines about the crowd's progress.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        source: str,
        count: int,
        *,
        row_of: Callable[[int], bytes | None] = lambda _: None,
        names: Callable[[], str] = lambda: uuid.uuid4().hex,
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Starts at once. `names` returns a unique text for each stream."""
        self.done = 0
        self._source = source
        self._count = count
        self._row_of = row_of
        self._names = names
        self._report = report
        self._begun_s = self._reported_s = time.monotonic()
        self._left = iter(range(count))
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._threads = [
            threading.Thread(target=self._keep, args=(address,), name="crowd", daemon=True)
            for address, _ in zip(itertools.cycle(addresses), range(min(count, CLIENTS)), strict=False)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def is_over(self) -> bool:
        """Whether all are done."""
        return self.done == self._count

    def wait(self, seconds: float) -> bool:
        """Whether all clients have ended; waits that long for each client."""
        for thread in self._threads:
            thread.join(seconds)
        return not any(thread.is_alive() for thread in self._threads)

    def close(self) -> None:
        """Opens no more streams; those under way end within seconds."""
        self._closed.set()
        self.wait(_CLOSE_S_MAX)

    def _keep(self, address: str) -> None:
        credentials = Credentials.from_environment()
        with credentials.channel(address, [_OWN_CONNECTION]) as channel:
            ingest = IngestServiceStub(channel).Ingest
            while not self._closed.is_set() and (number := self._next()) is not None:
                name, row = self._names(), self._row_of(number)
                hello = Hello(source=self._source, stream=f"crowd-{name}", client=name, ephemeral=True)
                begin = partial(ingest, timeout=_STREAM_S_MAX, metadata=credentials.metadata(address))
                # It may be refused or cut off, or its sender may be killed.
                while not (done := _session(begin, hello, row)) and not self._closed.wait(_AGAIN_S):
                    pass
                if done:
                    self._add()

    def _next(self) -> int | None:
        with self._lock:
            return next(self._left, None)

    def _add(self) -> None:
        with self._lock:
            self.done += 1
            now_s = time.monotonic()
            if now_s - self._reported_s < _REPORT_S and self.done < self._count:
                return
            self._reported_s = now_s
            rate = self.done / max(now_s - self._begun_s, 1e-3)
            line = f"crowd: {self.done:,} of {self._count:,} streams, {rate:.0f}/s"
        self._report(line)


_Call = Callable[[Iterator[IngestRequest | None]], Iterable[IngestResponse]]


def _session(begin: _Call, hello: Hello, row: bytes | None) -> bool:
    """Runs one session of a stream; returns whether its work is done."""
    requests: SimpleQueue[IngestRequest | None] = SimpleQueue()
    requests.put(IngestRequest(hello=hello))
    done = sent = False
    try:
        if row is None:
            requests.put(None)
        for response in begin(iter(requests.get, None)):
            answer = response.welcome if response.HasField("welcome") else response.receipt
            if row is None or answer.acknowledged:
                done = True
                requests.put(None)
            elif answer.credits and not sent:
                sent = True
                requests.put(IngestRequest(frame=IngestFrame(sequence=1, rows=Rows(messages=[row]))))
    except grpc.RpcError:
        return done
    finally:
        requests.put(None)
    return done
