"""Reads the results of a sink: a plain iterator that survives lost connections, and resumes from given positions."""

import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import grpc

from bettong.backoff import Backoff
from bettong.client.credentials import Credentials
from bettong.closing import Closing
from bettong.errors import ClientError, RefusedError
from bettong.v1 import subscribe_pb2 as pb
from bettong.v1.subscribe_pb2_grpc import SubscribeServiceStub

Position = pb.Position

# Errors for which a retry is useless: the request itself is wrong, or the log no longer has what it asks for.
_FINAL = {
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.OUT_OF_RANGE,
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.PERMISSION_DENIED,
}
_STARTS = {"earliest": pb.START_EARLIEST, "latest": pb.START_LATEST}
_BACKOFF_S_MIN = 0.1
_BACKOFF_S_MAX = 1.0
# A frame of results has no limit here: as JSON it may be several times its size in the log.
_OPTIONS = (("grpc.max_receive_message_length", -1),)


@dataclass(frozen=True, slots=True)
class Result:
    """The messages of one frame of results, in order.

    `position`: that of its partition after them. `sent_ns`: when the client sent the messages that led to them, by its
    clock, Unix nanoseconds; 0 when unknown.
    """

    messages: list[bytes]
    position: Position
    sent_ns: int


class Subscriber(Closing):
    """Iterates over the results of a sink, each once, in order per key; waits for new ones without end.

        with Subscriber("127.0.0.1:7200", "rejected") as results:
            for result in results:
                ...

    When the connection breaks or the receiver restarts, it subscribes again from the last position, after 0.1 s to 1 s;
    nothing is lost and nothing comes twice. To resume in another process, store `positions` together with what was made
    of the results, and pass them to the next Subscriber (`Position.SerializeToString` and `FromString` make them bytes
    and back).

    Raises RefusedError for a sink or a position that the receiver refuses for good, and ClientError when no receiver
    served it for `reconnect_s` (too many subscribers counts as such). Use it from one thread; only `close` may be
    called from another.
    """

    def __init__(
        self,
        target: str,
        sink: str,
        positions: Iterable[Position] | None = None,
        start: Literal["earliest", "latest"] = "earliest",
        *,
        reconnect_s: float = 60.0,
        credentials: Credentials | None = None,
    ) -> None:
        """`target`: host:port of a receiver; the first `next` calls it.

        `start`: where partitions without a position begin. A partition that was added to the application since then
        begins with its oldest result: the subscriber has seen none of it.
        `credentials`: by default those of the environment, BETTONG_CLIENT_*; SettingsError when these are wrong.
        """
        if start not in _STARTS:
            raise RefusedError(f"start {start!r} of sink {sink!r}: expected {' or '.join(_STARTS)}")
        self._target = target
        self._sink = sink
        self._positions = {position.partition: position for position in positions or ()}
        self._start = _STARTS[start]
        self._reconnect_s = reconnect_s
        self._closed = threading.Event()
        self._credentials = credentials if credentials is not None else Credentials.from_environment()
        self._channel = self._credentials.channel(target, _OPTIONS)
        self._served = False
        self._hindrance = ""
        self._call: grpc.Call | None = None
        self._results = self._read()

    @property
    def positions(self) -> list[Position]:
        """The position of each partition after the results that were returned so far."""
        return list(self._positions.values())

    @property
    def hindrance(self) -> str:
        """Why no results come, in words; empty while a receiver answers, which may have none. From any thread."""
        return self._hindrance

    def __iter__(self) -> Iterator[Result]:
        return self

    def __next__(self) -> Result:
        try:
            return next(self._results)
        except StopIteration:
            raise
        except BaseException:
            # A generator that raised has ended: a call after Ctrl-C or an error continues after the last result.
            self._results = self._read()
            raise

    def close(self) -> None:
        """Ends the subscription: the iterator stops, also one that waits in another thread."""
        self._closed.set()
        if self._call is not None:
            self._call.cancel()
        self._channel.close()

    def _read(self) -> Iterator[Result]:
        stub = SubscribeServiceStub(self._channel)
        backoff = Backoff(_BACKOFF_S_MIN, _BACKOFF_S_MAX)
        failing_since_s: float | None = None
        while not self._closed.is_set():
            request = pb.SubscribeRequest(sink=self._sink, positions=self.positions, start=self._start)
            try:
                call = stub.Subscribe(request, metadata=self._credentials.metadata(self._target))
            except ValueError:
                # gRPC raises this for a channel that `close` has closed.
                return
            self._call = call
            try:
                for response in call:
                    self._served = True
                    self._hindrance = ""
                    backoff.reset()
                    failing_since_s = None
                    # Made before its position is stored: an interrupt in between must not skip it.
                    result = Result(list(response.messages), response.position, response.sent_ns)
                    self._positions[response.position.partition] = response.position
                    if result.messages:
                        yield result
            except grpc.RpcError:
                if self._closed.is_set():
                    return
            finally:
                call.cancel()
            failure = self._error_of(call)
            now_s = time.monotonic()
            failing_since_s = now_s if failing_since_s is None else failing_since_s
            if now_s - failing_since_s > self._reconnect_s:
                raise failure
            self._hindrance = f"receiver {self._target} is away ({call.details()})"
            backoff.wait(self._closed)

    def _error_of(self, call: grpc.Call) -> ClientError:
        """The error of a call that ended and may be retried; raises RefusedError when a retry is useless."""
        code = call.code()
        details, is_final = self._credentials.complaint(call.details() or "")
        if code in _FINAL or (is_final and not self._served):
            raise RefusedError(f"receiver {self._target} refuses {self._sink!r}: {details}")
        return ClientError(
            f"receiver {self._target}: no results of {self._sink!r} for {self._reconnect_s:.0f} s:"
            f" {details} ({code.name}); is it running?"
        )
