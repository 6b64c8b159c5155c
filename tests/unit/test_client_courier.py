"""Sessions that break at bad moments: a real server plays the sender by each test's script."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

import grpc
import pyarrow as pa
import pytest

from bettong.client import courier as courier_module
from bettong.client.courier import Courier
from bettong.client.credentials import Credentials
from bettong.client.joining import IN_FLIGHT_MAX
from bettong.errors import ClientError, RefusedError
from bettong.v1.ingest_pb2 import (
    Hello,
    IngestFrame,
    IngestRequest,
    IngestResponse,
    ListSourcesRequest,
    ListSourcesResponse,
    Receipt,
    Source,
    Welcome,
)
from bettong.v1.ingest_pb2_grpc import IngestServiceServicer, add_IngestServiceServicer_to_server
from tests.servers.grpc_service import serving
from tests.waiting import eventually

# For how long a client tries to connect that is to find its sender, and one that is to give up.
RECONNECT_S = 60.0
IMPATIENT_S = 0.6


def welcome(schema: pa.Schema, credits_: int = 4) -> IngestResponse:
    source = Source(arrow_schema=schema.serialize().to_pybytes())
    return IngestResponse(welcome=Welcome(credits=credits_, frame_bytes_max=1 << 20, source=source))


SCHEMA = pa.schema([pa.field("number", pa.int64(), nullable=False)])
WELCOME = welcome(SCHEMA)


# What a session does, by its requests, of which the first is the hello, and its context.
Session = Callable[[Iterator[IngestRequest], Any], Iterator[IngestResponse]]


class ScriptedSender(IngestServiceServicer):
    """Sessions do what `script` says, one after the other; the last one again and again."""

    def __init__(self, *script: Session) -> None:
        self.script = script
        self.sessions = 0

    def Ingest(  # noqa: N802 - the name in the proto
        self, request_iterator: Iterator[IngestRequest], context: grpc.ServicerContext
    ) -> Iterator[IngestResponse]:
        """See the proto."""
        session = self.script[min(self.sessions, len(self.script) - 1)]
        self.sessions += 1
        yield from session(request_iterator, context)

    def ListSources(  # noqa: N802 - the name in the proto
        self, request: ListSourcesRequest, context: grpc.ServicerContext
    ) -> ListSourcesResponse:
        """It has none."""
        del request, context
        return ListSourcesResponse()


@contextmanager
def fed_by(sender: ScriptedSender, *, reconnect_s: float = RECONNECT_S, **hello: Any) -> Iterator[Courier]:
    """A courier that connects to the sender."""
    with serving(partial(add_IngestServiceServicer_to_server, sender)) as address:
        courier = Courier(
            address,
            Hello(source="orders", stream="feed", client="feeder", **hello),
            reconnect_s=reconnect_s,
            credentials=Credentials(),
        )
        try:
            yield courier
        finally:
            courier.abandon()


def frame(sequence: int) -> IngestRequest:
    return IngestRequest(frame=IngestFrame(sequence=sequence))


def is_in_flight(courier: Courier, frames: int) -> bool:
    return courier._outbox._in_flight == frames


def broken(code: grpc.StatusCode) -> Session:
    """A session that ends before its Welcome."""

    def session(requests: Iterator[IngestRequest], context: Any) -> Iterator[IngestResponse]:
        next(requests)
        context.abort(code, "away")
        yield WELCOME

    return session


def served(requests: Iterator[IngestRequest], _: Any) -> Iterator[IngestResponse]:
    """A session that goes well: a receipt for each frame, until the client ends it."""
    next(requests)
    yield WELCOME
    for each in requests:
        yield IngestResponse(receipt=Receipt(acknowledged=each.frame.sequence, credits=1))


def cut_after(frames: int) -> Session:
    """A session that breaks after so many receipts."""

    def session(requests: Iterator[IngestRequest], context: Any) -> Iterator[IngestResponse]:
        next(requests)
        yield WELCOME
        for _ in range(frames):
            yield IngestResponse(receipt=Receipt(acknowledged=next(requests).frame.sequence, credits=1))
        context.abort(grpc.StatusCode.UNAVAILABLE, "it stops")

    return session


@pytest.mark.parametrize("code", [grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN])
def test_a_long_session_in_which_nothing_was_sent_is_opened_again_when_it_breaks(
    code: grpc.StatusCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a proxy closes idle connections."""
    lasts, later_s = threading.Event(), 0.0
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + later_s)
    monkeypatch.setattr(courier_module, "time", clock)

    def quiet(requests: Iterator[IngestRequest], context: Any) -> Iterator[IngestResponse]:
        next(requests)
        yield WELCOME
        lasts.wait(30)
        context.abort(code, "a proxy has ended it")

    sender = ScriptedSender(quiet, served)
    with fed_by(sender) as courier:
        courier.welcome()
        later_s = 1.5 * RECONNECT_S
        lasts.set()
        eventually(lambda: sender.sessions == 2, what="another session")
        courier.put(frame(1), 1, 10)
        courier.flush(10)
        assert courier.acknowledged == 1


def test_a_sender_that_breaks_at_once_again_and_again_is_given_up_and_named() -> None:
    def breaks(requests: Iterator[IngestRequest], context: Any) -> Iterator[IngestResponse]:
        next(requests)
        yield WELCOME
        context.abort(grpc.StatusCode.INTERNAL, "a frame that it cannot bear")

    with fed_by(ScriptedSender(breaks), reconnect_s=IMPATIENT_S) as courier:
        eventually(lambda: courier._failure is not None, what="it has given up")
        with pytest.raises(ClientError, match=r"INTERNAL.*tried for 1 s"):
            courier.put(frame(1), 1, 10)


def test_a_sender_that_gives_no_welcome_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its connection lives, and a function of the source hangs."""
    monkeypatch.setattr(courier_module, "_SESSION_S_MIN", IMPATIENT_S)
    ends = threading.Event()

    def hanging(requests: Iterator[IngestRequest], _: Any) -> Iterator[IngestResponse]:
        next(requests)
        ends.wait(30)
        yield WELCOME

    begun_s = time.monotonic()
    with fed_by(ScriptedSender(hanging), reconnect_s=IMPATIENT_S) as courier:
        with pytest.raises(ClientError, match="no Welcome; does a function of the source hang, or Kafka"):
            courier.welcome()
        ends.set()
    assert time.monotonic() - begun_s < 20


def test_a_client_that_tries_once_gives_a_sender_time_for_its_welcome() -> None:
    def slow(requests: Iterator[IngestRequest], context: Any) -> Iterator[IngestResponse]:
        threading.Event().wait(2 * IMPATIENT_S)
        yield from served(requests, context)

    with fed_by(ScriptedSender(slow), reconnect_s=IMPATIENT_S) as courier:
        assert courier.welcome().credits == 4


def test_a_server_that_ends_sessions_before_they_begin_is_given_up() -> None:
    def empty(requests: Iterator[IngestRequest], _: Any) -> Iterator[IngestResponse]:
        next(requests)
        yield from ()

    with (
        fed_by(ScriptedSender(empty), reconnect_s=IMPATIENT_S) as courier,
        pytest.raises(
            ClientError, match="ended the session before it began; is there a sender at that address"
        ),
    ):
        courier.welcome()


def test_a_client_with_all_receipts_ends_well_though_the_sender_is_gone() -> None:
    """The program would send again what is durable, under another name."""
    sender = ScriptedSender(cut_after(1), broken(grpc.StatusCode.UNAVAILABLE))
    with fed_by(sender, reconnect_s=IMPATIENT_S) as courier:
        courier.welcome()
        courier.put(frame(1), 1, 10)
        courier.flush(10)
        eventually(lambda: courier._failure is not None, what="it has given up")
        courier.flush(1)
        courier.finish(1)
        with pytest.raises(ClientError, match="UNAVAILABLE"):
            courier.put(frame(2), 1, 1)
        courier.finish(1)


def test_a_client_with_all_receipts_hears_that_the_stream_was_refused_since() -> None:
    with fed_by(ScriptedSender(cut_after(1), broken(grpc.StatusCode.PERMISSION_DENIED))) as courier:
        courier.welcome()
        courier.put(frame(1), 1, 10)
        eventually(lambda: courier._failure is not None, what="it was refused")
        with pytest.raises(RefusedError, match="PERMISSION_DENIED"):
            courier.finish(1)


@pytest.mark.parametrize("kind", ["ephemeral", "finite"])
def test_a_stream_that_ends_while_its_sender_is_away_is_ended_when_that_is_back(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Watermarks would wait for it."""
    monkeypatch.setattr(courier_module, "_JOIN_S_MAX", RECONNECT_S)
    is_ended = threading.Event()

    def ending(requests: Iterator[IngestRequest], context: Any) -> Iterator[IngestResponse]:
        yield from served(requests, context)
        is_ended.set()

    away = broken(grpc.StatusCode.UNAVAILABLE)
    with fed_by(ScriptedSender(cut_after(1), away, away, ending), **{kind: True}) as courier:
        courier.welcome()
        courier.put(frame(1), 1, 10)
        courier.flush(10)
        courier.finish(10)
        assert is_ended.wait(30)


def test_a_stream_that_is_neither_ends_at_once_though_its_sender_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(courier_module, "_JOIN_S_MAX", RECONNECT_S)
    sender = ScriptedSender(cut_after(1), broken(grpc.StatusCode.UNAVAILABLE))
    with fed_by(sender) as courier:
        courier.welcome()
        courier.put(frame(1), 1, 10)
        courier.flush(10)
        begun_s = time.monotonic()
        courier.finish(10)
        assert time.monotonic() - begun_s < RECONNECT_S / 2


def test_joined_frames_keep_the_schema_they_were_made_by_though_the_sender_has_another_now() -> None:
    """Only the sender can say that it no longer takes that."""
    taken: list[IngestFrame] = []

    def silent(requests: Iterator[IngestRequest], context: Any) -> Iterator[IngestResponse]:
        next(requests)
        yield welcome(SCHEMA, credits_=IN_FLIGHT_MAX + 1)
        for _ in range(IN_FLIGHT_MAX):
            next(requests)
        is_filled.wait(10)
        context.abort(grpc.StatusCode.UNAVAILABLE, "it stops")

    def changed(requests: Iterator[IngestRequest], _: Any) -> Iterator[IngestResponse]:
        next(requests)
        yield welcome(pa.schema([*SCHEMA, pa.field("more", pa.string())]), credits_=IN_FLIGHT_MAX + 1)
        for each in requests:
            taken.append(each.frame)
            yield IngestResponse(receipt=Receipt(acknowledged=each.frame.sequence, credits=1))

    is_filled = threading.Event()
    with fed_by(ScriptedSender(silent, changed), ephemeral=True) as courier:
        courier.welcome()
        for number in range(1, IN_FLIGHT_MAX + 3):
            columns = pa.record_batch([pa.array([number])], schema=SCHEMA).serialize().to_pybytes()
            made = IngestRequest(frame=IngestFrame(sequence=number, columns=columns, schema=7))
            courier.put(made, 1, 10)
            eventually(partial(is_in_flight, courier, min(number, IN_FLIGHT_MAX)), what="it goes at once")
        is_filled.set()
        courier.flush(10)
    assert [each.sequence for each in taken] == [*range(1, IN_FLIGHT_MAX + 1), IN_FLIGHT_MAX + 2]
