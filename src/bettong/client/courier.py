"""Keeps a session with a sender open: sends the frames of the outbox, and resends them after a lost connection.

    user's thread      puts frames, waits for room and for receipts
    courier's thread   connects, reads receipts, reconnects
    gRPC's thread      takes the next frame to send from a generator, one for each session

One condition guards the outbox, which all three share.
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

# Errors for which a retry is useless. RESOURCE_EXHAUSTED is one of them once a session is open: before, it means that
# the sender has no room for another session; later, that a frame is too large.
_FINAL = {
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.PERMISSION_DENIED,
}
# The sender itself failed. Should one frame be the cause, it would fail again and again.
_BROKEN = {grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL}
# Trailing metadata of ALREADY_EXISTS: when the lease of the client that holds the stream expires, unless it is renewed.
_LEASE_METADATA = "bettong-lease-ms"
_BACKOFF_S = 0.05
_BACKOFF_S_MAX = 1.0
_JOIN_S_MAX = 5.0
# A session may take at least so long to begin, even if `reconnect_s` is less; one that fails within that time may have
# failed because of a frame.
_SESSION_S_MIN = 10.0
_CONNECTED = "connected"  # the connection's state while a session is open
# No limit here: the sender's Welcome says how large a frame may be.
_OPTIONS = (("grpc.max_send_message_length", -1),)


class Courier:
    """Delivers the frames of one stream, in order. `reconnect_s`: how long it tries to connect before it gives up."""

    def __init__(
        self,
        target: str,
        hello: Hello,
        *,
        reconnect_s: float,
        credentials: Credentials,
        yields_to_same_client: bool = False,
        tracing: StreamTracing | None = None,
    ) -> None:
        """Starts to connect, in the background.

        `yields_to_same_client`: a session of the same `hello.client` that takes the stream over is of a newer run of
        the program, so this one ends.
        """
        self._target = target
        self._hello = hello
        # The sender and the source, as errors name them.
        self._endpoint = f"sender {target}, source {hello.source!r}"
        self._reconnect_s = reconnect_s
        self._session_s = max(reconnect_s, _SESSION_S_MIN)
        self._credentials = credentials
        self._yields_to_same_client = yields_to_same_client
        self._tracing = tracing
        # Only this object resends the frames of an ephemeral stream. A traced frame must be that of one call.
        self._joins = hello.ephemeral and tracing is None
        self._changed = threading.Condition()
        # Whether gRPC's thread waits with a timeout, after which it sends what is queued without a notification.
        self._waits_with_timeout = False
        self._outbox = Outbox(hello.acknowledged)
        self._welcome: Welcome | None = None
        self._failure: ClientError | None = None
        self._state = "not connected yet"
        # When the lease expires of the client that held the stream at the first refusal: if the stream is held later
        # on, that client is alive.
        self._held_until_s: float | None = None
        # When the current session was requested.
        self._requested_s = 0.0
        # Number of the current session, by which the generator of an earlier one knows that its own is over.
        self._session = 0
        self._finishing = False
        # Whether a session must still end well: only then the sender writes the stream's END to the log.
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
        """Messages of the acknowledged frames that the sender refused one by one; a lower bound: see `Receipt`."""
        return self._outbox.dead_letters

    @property
    def hindrance(self) -> str:
        """Why frames wait, in words; empty while nothing holds them up."""
        with self._changed:
            if self._state != _CONNECTED:
                return f"sender {self._target} is away ({self._state})"
            if not self._outbox.has_room:
                return f"sender {self._target} grants no credit for another frame; does it reach Kafka?"
            return "" if self._outbox.is_empty else f"receipts of sender {self._target}"

    def welcome(self) -> Welcome:
        """The sender's Welcome. Blocks until it arrives, or the courier gives up. Raises ClientError."""
        self._await(lambda: self._welcome is not None, None, "")
        assert self._welcome is not None  # noqa: S101 - that was waited for
        return self._welcome

    def put(self, frame: IngestRequest, messages: int, wait_s: float) -> None:
        """Queues a frame of so many messages; blocks at most `wait_s` for a credit. Raises ClientError."""
        with self._changed:
            if self._failure is not None or not self._outbox.put(frame, messages):
                self._await(lambda: self._outbox.put(frame, messages), wait_s, "no credit for another frame")
            gap_s = self._outbox.wait_s(time.monotonic())
            if gap_s == 0.0 or (gap_s is not None and not self._waits_with_timeout):
                self._changed.notify_all()

    def flush(self, wait_s: float) -> None:
        """Blocks until every frame has its receipt. Raises ClientError, also after `wait_s`.

        A sender lost after the last receipt is no error; a refusal is, as when another client took the stream over.
        """
        with self._changed:
            if self._outbox.is_empty and not isinstance(self._failure, RefusedError):
                return
        self._await(lambda: self._outbox.is_empty, wait_s, "frames without a receipt")

    def finish(self, wait_s: float) -> None:
        """Flushes and ends the session, for which it waits at most `_JOIN_S_MAX`. Raises ClientError."""
        try:
            self.flush(wait_s)
            with self._changed:
                self._finishing = True
                self._changed.notify_all()
            self._thread.join(_JOIN_S_MAX)
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Closes at once, without waiting for receipts. Does nothing when closed already."""
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
                    f"{self._endpoint}: {lacking} after {wait_s} s"
                    f" ({self._state}); is the sender running, and does it reach Kafka?"
                )

    def _run(self) -> None:
        """Runs in the courier's thread: one session after the other."""
        sessions = attempts(
            self._reconnect_s, _is_transient, first_s=_BACKOFF_S, max_s=_BACKOFF_S_MAX, sleep=self._pause
        )
        end = ClientError(f"the stream to {self._target} is closed")
        try:
            with self._credentials.channel(self._target, _OPTIONS) as channel:
                stub = IngestServiceStub(channel)
                while not self._is_over():
                    sessions(self._run_session, stub)
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

    def _run_session(self, stub: IngestServiceStub) -> None:
        """Runs one session to its end. Raises ClientError for one that failed: see `_handle_error`."""
        with self._changed:
            if self._is_over():
                return
            metadata = self._credentials.metadata(self._target)
            if self._tracing is not None:
                metadata += self._tracing.sampling.metadata
            call = stub.Ingest(self._requests(self._session), metadata=metadata)
            self._call, self._requested_s = call, time.monotonic()
        # Keepalive does not notice a function of the source, or a Kafka, that hangs.
        overdue = threading.Timer(self._session_s, call.cancel)
        overdue.daemon = True
        overdue.start()
        has_welcome = has_receipt = False
        try:
            for response in call:
                overdue.cancel()
                has_receipt = has_welcome
                has_welcome = True
                self._handle_response(response)
            self._state = "the sender ended the session"
            if not has_welcome:
                raise ClientError(
                    f"{self._endpoint}: {self._state} before it began; is there a sender at that address?"
                )
            self._end_is_pending = self._end_is_pending and not self._finishing
        except grpc.RpcError as error:
            self._handle_error(error, has_welcome=has_welcome, has_receipt=has_receipt)
        finally:
            overdue.cancel()
            with self._changed:
                self._outbox.lost()
                self._session += 1
                self._changed.notify_all()

    def _handle_response(self, response: IngestResponse) -> None:
        with self._changed:
            if response.WhichOneof("response") == "welcome":
                if self._welcome is None:
                    self._outbox.resumed(response.welcome.acknowledged)
                    # By the limits of the first Welcome, as the program makes its frames, whatever a later one says.
                    self._outbox.joining = Joining.of(response.welcome) if self._joins else None
                self._welcome, self._state, self._held_until_s = response.welcome, _CONNECTED, None
                self._outbox.opened(response.welcome.credits)
            else:
                self._outbox.received(response.receipt)
                if self._tracing is not None:
                    self._tracing.acknowledged(self._outbox.acknowledged)
            self._changed.notify_all()

    def _handle_error(self, error: grpc.RpcError, *, has_welcome: bool, has_receipt: bool) -> None:
        """Raises RefusedError for a final error, ClientError for a failed attempt; else the session is only lost."""
        code = error.code()
        complaint, is_final = self._credentials.complaint(error.details() or "")
        lasted_s = time.monotonic() - self._requested_s
        if code is grpc.StatusCode.CANCELLED and not has_welcome and lasted_s >= self._session_s:
            complaint = "no Welcome; does a function of the source hang, or Kafka?"
        self._state = f"{code.name}: {complaint}"
        text = f"{self._endpoint}: {self._state}"
        too_large = has_welcome and code is grpc.StatusCode.RESOURCE_EXHAUSTED
        # Certificates may be renewed while a stream waits; a stream without a first session has wrong settings.
        misconfigured = is_final and self._welcome is None
        # To reconnect would take the stream back from the session that took it over, and so on for ever.
        replaced = self._yields_to_same_client and has_welcome and code is grpc.StatusCode.ABORTED
        if code in _FINAL or too_large or misconfigured or replaced or self._is_held(error):
            raise RefusedError(text) from None
        # A frame that breaks the sender breaks it at once; a session that lasted had nothing to send, and is only lost.
        broken = code in _BROKEN and not has_receipt and lasted_s < self._session_s
        if not has_welcome or broken:
            raise ClientError(f"{text}; tried for {self._reconnect_s:.0f} s") from None

    def _is_held(self, error: grpc.RpcError) -> bool:
        """Whether another client that is alive holds the stream; the lease of a dead one expires after a while.

        Only a session requested after that can tell: an answer may take longer than what was left of the lease.
        """
        if error.code() is not grpc.StatusCode.ALREADY_EXISTS:
            return False
        if self._held_until_s is None:
            leases_ms = [
                each.value for each in error.trailing_metadata() or () if each.key == _LEASE_METADATA
            ]
            self._held_until_s = time.monotonic() + int(leases_ms[0] if leases_ms else 0) / 1000
        return self._requested_s > self._held_until_s

    def _requests(self, session: int) -> Iterator[IngestRequest]:
        """Runs in gRPC's thread: hello, then frames as credits permit, until the session is over or all is sent."""
        hello = Hello(
            source=self._hello.source,
            stream=self._hello.stream,
            acknowledged=self._outbox.acknowledged,
            client=self._hello.client,
            ephemeral=self._hello.ephemeral,
            finite=self._hello.finite,
        )
        yield IngestRequest(hello=hello)
        while (request := self._next_request(session)) is not None:
            yield request

    def _next_request(self, session: int) -> IngestRequest | None:
        with self._changed:
            while self._session == session and not (self._finishing and self._outbox.is_empty):
                now_s = time.monotonic()
                if (request := self._outbox.next(now_s)) is not None:
                    return request
                gap_s = self._outbox.wait_s(now_s)
                self._waits_with_timeout = gap_s is not None
                self._changed.wait(gap_s)
                self._waits_with_timeout = False
        return None


def _is_transient(error: BaseException) -> bool:
    return isinstance(error, ClientError) and not isinstance(error, RefusedError)
