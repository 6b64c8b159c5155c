"""Keeps a session with a sender going: sends what the outbox holds, and again after a lost connection.

    user's thread      puts frames, waits for room and for receipts
    courier's thread   connects, reads receipts, connects again
    gRPC's thread      asks for the next frame to send, one generator a session

All three share the outbox under one condition.
"""

import threading
import time
from collections.abc import Callable, Iterator

import grpc

from bettong.backoff import attempts
from bettong.client.credentials import Credentials
from bettong.client.joining import Joining
from bettong.client.outbox import Outbox
from bettong.client.tracing import StreamTracing
from bettong.errors import ClientError, RefusedError
from bettong.v1.ingest_pb2 import Hello, IngestRequest, IngestResponse, Welcome
from bettong.v1.ingest_pb2_grpc import IngestServiceStub

# Sending the same again is no use. RESOURCE_EXHAUSTED joins them once a session is open: before, it means that the
# sender has no room for another session, later a frame that is too large.
_FINAL = {
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.PERMISSION_DENIED,
}
# The sender itself failed. Should one frame be the cause, it would fail again and again.
_BROKEN = {grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL}
# Trailing metadata of ALREADY_EXISTS: when the lease of who holds the stream runs out, unless it is alive.
_LEASE_METADATA = "bettong-lease-ms"
_BACKOFF_S = 0.05
_BACKOFF_S_MAX = 1.0
_JOIN_S_MAX = 5.0
# A session has so long to begin, also for who tries once; a shorter one may have broken by what was sent.
_SESSION_S_MIN = 10.0
_CONNECTED = "connected"  # what the trouble is where there is none
# The sender's Welcome says how large a frame may be.
_OPTIONS = (("grpc.max_send_message_length", -1),)


class Courier:
    """Delivers the frames of one stream, in order. `reconnect_s`: how long it tries before it gives up."""

    def __init__(
        self,
        target: str,
        hello: Hello,
        *,
        reconnect_s: float,
        credentials: Credentials,
        yields_to_itself: bool = False,
        tracing: StreamTracing | None = None,
    ) -> None:
        """Starts to connect, in the background.

        `yields_to_itself`: another session of `hello.client` is of a program that was started in this one's place.
        """
        self._target = target
        self._hello = hello
        # What it feeds, as its errors name it.
        self._feeds = f"sender {target}, source {hello.source!r}"
        self._reconnect_s = reconnect_s
        self._session_s = max(reconnect_s, _SESSION_S_MIN)
        self._credentials = credentials
        self._yields_to_itself = yields_to_itself
        self._tracing = tracing
        # Nobody sends the frames of such a stream again but this object. A frame that is traced is one call's.
        self._joins = hello.ephemeral and tracing is None
        self._changed = threading.Condition()
        # Whether gRPC's thread wakes by itself to send what waits.
        self._rests = False
        self._outbox = Outbox(hello.acknowledged)
        self._welcome: Welcome | None = None
        self._failure: ClientError | None = None
        self._trouble = "not connected yet"
        # Who held the stream when it was first refused is dead, and its lease has run out by then, or is alive.
        self._held_until_s: float | None = None
        # When the session began that is under way.
        self._asked_s = 0.0
        # Counts sessions; the generator of an earlier one sees that it is over.
        self._session = 0
        self._finishing = False
        # Until a session has ended well: the sender marks the end of the stream in the log then.
        self._end_is_pending = hello.ephemeral or hello.finite
        self._ended = threading.Event()
        self._call: grpc.Call | None = None
        self._thread = threading.Thread(target=self._run, name="bettong-courier", daemon=True)
        self._thread.start()

    @property
    def acknowledged(self) -> int:
        """The highest sequence with a receipt."""
        return self._outbox.acknowledged

    @property
    def dead_letters(self) -> int:
        """Messages that the sender refused one by one, of the frames with a receipt; at least: see `Receipt`."""
        return self._outbox.dead_letters

    @property
    def hindrance(self) -> str:
        """Why frames wait, in words; empty while nothing holds them up."""
        with self._changed:
            if self._trouble != _CONNECTED:
                return f"sender {self._target} is away ({self._trouble})"
            if not self._outbox.has_room:
                return f"sender {self._target} grants no credit for another frame; does it reach Kafka?"
            return "" if self._outbox.is_empty else f"receipts of sender {self._target}"

    def welcome(self) -> Welcome:
        """What the sender said first. Blocks until it has, or the courier gives up. Raises ClientError."""
        self._await(lambda: self._welcome is not None, None, "")
        assert self._welcome is not None  # noqa: S101 - that was waited for
        return self._welcome

    def put(self, frame: IngestRequest, messages: int, wait_s: float) -> None:
        """Takes a frame of so many messages; blocks at most `wait_s` for a credit. Raises ClientError."""
        with self._changed:
            self._await(lambda: self._outbox.put(frame, messages), wait_s, "no credit for another frame")
            rest_s = self._outbox.wait_s(time.monotonic())
            if rest_s == 0.0 or (rest_s is not None and not self._rests):
                self._changed.notify_all()

    def flush(self, wait_s: float) -> None:
        """Blocks until every frame has its receipt. Raises ClientError, also after `wait_s`.

        A sender that has gone since is no error; that the stream is another's now, or was refused, is.
        """
        with self._changed:
            if self._outbox.is_empty and not isinstance(self._failure, RefusedError):
                return
        self._await(lambda: self._outbox.is_empty, wait_s, "frames without a receipt")

    def finish(self, wait_s: float) -> None:
        """Flushes and ends the session; for its end, at most `_JOIN_S_MAX`. Raises ClientError."""
        try:
            self.flush(wait_s)
            with self._changed:
                self._finishing = True
                self._changed.notify_all()
            self._thread.join(_JOIN_S_MAX)
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Ends at once, whatever is under way. Harmless when it has ended."""
        self._ended.set()
        with self._changed:
            self._give_up(ClientError(f"the stream to {self._target} is closed"))
            if self._call is not None:
                self._call.cancel()
        self._thread.join(_JOIN_S_MAX)

    def _await(self, condition: Callable[[], bool], wait_s: float | None, lacking: str) -> None:
        with self._changed:
            done = self._changed.wait_for(lambda: self._failure is not None or condition(), wait_s)
            if self._failure is not None:
                raise self._failure
            if not done:
                raise ClientError(
                    f"{self._feeds}: {lacking} after {wait_s} s"
                    f" ({self._trouble}); is the sender running, and does it reach Kafka?"
                )

    def _run(self) -> None:
        """In the courier's thread."""
        sessions = attempts(
            self._reconnect_s, _may_pass, first_s=_BACKOFF_S, max_s=_BACKOFF_S_MAX, sleep=self._pause
        )
        end = ClientError(f"the stream to {self._target} is closed")
        try:
            with self._credentials.channel(self._target, _OPTIONS) as channel:
                stub = IngestServiceStub(channel)
                while not self._is_over():
                    sessions(self._converse, stub)
                    self._pause(_BACKOFF_S)
        except ClientError as error:
            end = error
        finally:
            with self._changed:
                self._give_up(end)

    def _pause(self, seconds: float) -> None:
        self._ended.wait(seconds)

    def _give_up(self, failure: ClientError) -> None:
        self._failure = self._failure or failure
        self._session += 1
        self._changed.notify_all()

    def _is_over(self) -> bool:
        return self._ended.is_set() or (
            self._finishing and self._outbox.is_empty and not self._end_is_pending
        )

    def _converse(self, stub: IngestServiceStub) -> None:
        """One session; returns when it was of some use and has ended, else raises ClientError."""
        with self._changed:
            if self._is_over():
                return
            metadata = self._credentials.metadata(self._target)
            if self._tracing is not None:
                metadata += self._tracing.sampling.metadata
            call = stub.Ingest(self._requests(self._session), metadata=metadata)
            self._call, self._asked_s = call, time.monotonic()
        # A connection that lives says nothing of a source whose function hangs, nor of a log that does.
        overdue = threading.Timer(self._session_s, call.cancel)
        overdue.daemon = True
        overdue.start()
        welcomed = fruitful = False
        try:
            for response in call:
                overdue.cancel()
                fruitful = welcomed
                welcomed = True
                self._take(response)
            self._trouble = "the sender ended the session"
            if not welcomed:
                raise ClientError(
                    f"{self._feeds}: {self._trouble} before it began; is there a sender at that address?"
                )
            self._end_is_pending = self._end_is_pending and not self._finishing
        except grpc.RpcError as error:
            self._judge(error, welcomed=welcomed, fruitful=fruitful)
        finally:
            overdue.cancel()
            with self._changed:
                self._outbox.lost()
                self._session += 1
                self._changed.notify_all()

    def _take(self, response: IngestResponse) -> None:
        with self._changed:
            if response.WhichOneof("response") == "welcome":
                if self._welcome is None:
                    self._outbox.resumed(response.welcome.acknowledged)
                    # By the first one, as the program makes its frames, whatever a later sender says.
                    self._outbox.joining = Joining.of(response.welcome) if self._joins else None
                self._welcome, self._trouble, self._held_until_s = response.welcome, _CONNECTED, None
                self._outbox.opened(response.welcome.credits)
            else:
                self._outbox.received(response.receipt)
                if self._tracing is not None:
                    self._tracing.acknowledged(self._outbox.acknowledged)
            self._changed.notify_all()

    def _judge(self, error: grpc.RpcError, *, welcomed: bool, fruitful: bool) -> None:
        """Raises RefusedError for what is final, ClientError for a session that came to nothing; else it is lost."""
        code = error.code()
        complaint, hopeless = self._credentials.complaint(error.details() or "")
        lasted_s = time.monotonic() - self._asked_s
        if code is grpc.StatusCode.CANCELLED and not welcomed and lasted_s >= self._session_s:
            complaint = "no Welcome; does a function of the source hang, or Kafka?"
        self._trouble = f"{code.name}: {complaint}"
        text = f"{self._feeds}: {self._trouble}"
        too_large = welcomed and code is grpc.StatusCode.RESOURCE_EXHAUSTED
        # Certificates may be renewed while a stream waits; one that never began has most likely the wrong settings.
        stranger = hopeless and self._welcome is None
        # To connect again would take the stream from the session that has taken it, and so on for ever.
        replaced = self._yields_to_itself and welcomed and code is grpc.StatusCode.ABORTED
        if code in _FINAL or too_large or stranger or replaced or self._is_held(error):
            raise RefusedError(text) from None
        # What a frame does to a sender it does at once; a long session had nothing to send, and is only lost.
        broken = code in _BROKEN and not fruitful and lasted_s < self._session_s
        if not welcomed or broken:
            raise ClientError(f"{text}; tried for {self._reconnect_s:.0f} s") from None

    def _is_held(self, error: grpc.RpcError) -> bool:
        """Whether another client holds the stream and is alive; one that is dead loses its lease in a while.

        Only who asked after that can tell. An answer may take longer than what was left of the lease.
        """
        if error.code() is not grpc.StatusCode.ALREADY_EXISTS:
            return False
        if self._held_until_s is None:
            leases_ms = [
                each.value for each in error.trailing_metadata() or () if each.key == _LEASE_METADATA
            ]
            self._held_until_s = time.monotonic() + int(leases_ms[0] if leases_ms else 0) / 1000
        return self._asked_s > self._held_until_s

    def _requests(self, session: int) -> Iterator[IngestRequest]:
        """In gRPC's thread: hello, then frames as there are credits. Ends with the session or when all is sent."""
        hello = Hello(
            source=self._hello.source,
            stream=self._hello.stream,
            acknowledged=self._outbox.acknowledged,
            client=self._hello.client,
            ephemeral=self._hello.ephemeral,
            finite=self._hello.finite,
        )
        yield IngestRequest(hello=hello)
        while (request := self._next(session)) is not None:
            yield request

    def _next(self, session: int) -> IngestRequest | None:
        with self._changed:
            while self._session == session and not (self._finishing and self._outbox.is_empty):
                now_s = time.monotonic()
                if (request := self._outbox.next(now_s)) is not None:
                    return request
                rest_s = self._outbox.wait_s(now_s)
                self._rests = rest_s is not None
                self._changed.wait(rest_s)
                self._rests = False
        return None


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, ClientError) and not isinstance(error, RefusedError)
