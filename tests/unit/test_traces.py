"""Which frames are traced, by which ids, and what headers of the log say of it; and that services agree on it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace.sampling import Decision, TraceIdRatioBased

from bettong.client.tracing import StreamTracing
from bettong.edges.kafka_log import Record
from bettong.errors import LogError
from bettong.identifiers import Origin, SequenceNumber, TopicPartition
from bettong.ingest.refusal import Refusal
from bettong.topics import stage_topic
from bettong.traces import (
    NO_SAMPLING,
    FrameSampling,
    RecordPosition,
    TraceContext,
    TraceSpan,
    accept_context,
    append_context,
    client_context,
    fold_span,
)
from bettong.v1.ingest_pb2 import Hello
from bettong.worker.stage_program import program
from bettong_processor.stamping import Stamping
from bettong_receiver.delivery.connector import FrameMessages, MovingPosition, SinkBatch
from bettong_receiver.delivery.tracing import DeliveryTracing
from bettong_receiver.positions import PositionKey
from bettong_receiver.progress import DeliveryProgress, SinkPartition
from bettong_receiver.tracing import SubscriberTracing
from bettong_sender.intake import Intake, Limits
from bettong_sender.status import SenderStatus
from bettong_sender.tracing import SenderTracing
from tests.samples.sender import orders, route, rows_frame, taken
from tests.samples.worker import Reading, data, meters, worker

FEED = Origin("orders/feed-1")
ALL = FrameSampling(1.0)
IDS = st.binary(min_size=16, max_size=16).filter(any)
SPAN_IDS = st.binary(min_size=8, max_size=8).filter(any)


def number(of: int) -> SequenceNumber:
    return SequenceNumber(of)


@given(IDS, SPAN_IDS)
def test_a_context_is_read_as_it_was_written(trace_id: bytes, span_id: bytes) -> None:
    context = TraceContext(trace_id, span_id)
    assert context.traceparent == b"00-%s-%s-01" % (trace_id.hex().encode(), span_id.hex().encode())
    assert TraceContext.parse(context.traceparent) == context


TRACE, SPAN_ID = b"0af7651916cd43dd8448eb211c80319c", b"b7ad6b7169203331"


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"\xff" * 55,
        b"00-%s-%s-00" % (TRACE, SPAN_ID),  # not sampled
        b"00-%s-%s-01-more" % (TRACE, SPAN_ID),
        b"ff-%s-%s-01" % (TRACE, SPAN_ID),
        b"00-%s-%s-01" % (TRACE.upper(), SPAN_ID),
        b"00-%s-%s-01" % (b"0" * 32, SPAN_ID),
        b"00-%s-%s-01" % (TRACE, b"0" * 16),
        b"00-%s-%s-1" % (TRACE, SPAN_ID),
        b"00-%s-%s-01\n" % (TRACE, SPAN_ID),
    ],
)
def test_what_is_no_sampled_context_is_none(header: bytes) -> None:
    assert TraceContext.parse(header) is None


@pytest.mark.parametrize("header", [b"00-%s-%s-03", b"cc-%s-%s-01", b"cc-%s-%s-01-what will be"])
def test_flags_and_versions_that_are_unknown_do_no_harm(header: bytes) -> None:
    assert TraceContext.parse(header % (TRACE, SPAN_ID)) == TraceContext(
        bytes.fromhex(TRACE.decode()), bytes.fromhex(SPAN_ID.decode())
    )


@given(st.binary(max_size=80))
def test_no_header_of_others_raises(header: bytes) -> None:
    found = TraceContext.parse(header)
    assert found is None or len(found.trace_id) == 16


@given(st.floats(0, 1), st.text("abc/-", min_size=1), st.integers(1, 2**62), st.integers(0, 2**63 - 1))
def test_opentelemetrys_sampler_decides_alike(ratio: float, origin: str, sequence: int, sent_ns: int) -> None:
    every = ALL.trace_id(Origin(origin), number(sequence), sent_ns)
    assert every is not None
    theirs = TraceIdRatioBased(ratio).should_sample(None, int.from_bytes(every), "frame").decision
    ours = FrameSampling(ratio).trace_id(Origin(origin), number(sequence), sent_ns)
    assert (ours is not None) is (theirs is Decision.RECORD_AND_SAMPLE)
    assert ours in {None, every}


@pytest.mark.parametrize("ratio", [0.0, 0.01, 0.3, 1.0])
def test_the_share_of_frames_is_the_ratio(ratio: float) -> None:
    frames = 20_000
    traced = sum(FrameSampling(ratio).trace_id(FEED, number(each), 7) is not None for each in range(frames))
    assert traced == pytest.approx(ratio * frames, abs=5 * (frames * ratio * (1 - ratio)) ** 0.5)


def test_a_frame_is_sampled_or_not_whenever_it_was_sent_and_each_run_has_traces_of_its_own() -> None:
    some = FrameSampling(0.1)
    found = [[some.trace_id(FEED, number(each), sent_ns) for each in range(1, 500)] for sent_ns in (1, 2)]
    assert [each is None for each in found[0]] == [each is None for each in found[1]]
    traced = [each for run in found for each in run if each is not None]
    assert len(set(traced)) == len(traced) > 50


def test_frames_of_other_origins_and_numbers_have_other_ids() -> None:
    origins = ["a/1", "a/11", "a/1/1", "b/1"]
    ids = {ALL.trace_id(Origin(origin), number(each), 5) for origin in origins for each in range(1, 12)}
    assert len(ids) == len(origins) * 11


def test_a_client_tells_its_share_and_nonsense_is_none() -> None:
    for ratio in (0.01, 1.0, 1e-9):
        (_, said) = FrameSampling(ratio).metadata[0]
        assert FrameSampling.of_metadata(said) == FrameSampling(ratio)
    assert NO_SAMPLING.metadata == ()
    for nonsense in ("", "much", "-1", "1.1", "nan", "inf"):
        assert FrameSampling.of_metadata(nonsense) == NO_SAMPLING


class Clock:
    """Unix ns; goes on by a microsecond each time it is asked."""

    def __init__(self) -> None:
        self.ns = 1_700_000_000_000_000_000

    def __call__(self) -> int:
        self.ns += 1000
        return self.ns


class Log:
    """Answers at once, or refuses; keeps the headers of what is appended."""

    def __init__(self, fault: LogError | None = None, *, takes: int | None = None) -> None:
        """`fault`: what it answers for traced records; with `takes` it takes so many, and raises it for the next."""
        self.traceparents: dict[TopicPartition, list[bytes]] = {}
        self._fault = fault
        self._takes = takes

    def append(
        self,
        to: TopicPartition,
        value: bytes,
        on_done: Callable[[int | LogError], None],
        *,
        traceparent: bytes = b"",
    ) -> None:
        assert value
        if self._takes is not None and traceparent:
            if not self._takes:
                assert self._fault is not None
                raise self._fault
            self._takes -= 1
        lies = self.traceparents.setdefault(to, [])
        lies.append(traceparent)
        is_taken = self._fault is None or self._takes is not None or not traceparent
        on_done(len(lies) - 1 if is_taken or self._fault is None else self._fault)


def taken_in(
    sampling: FrameSampling, client: FrameSampling, frames: int, log: Log | None = None
) -> tuple[list[TraceSpan], Log]:
    """What a sender reports of so many frames, each `sent_ns` its number, and what it appends; until one is refused."""
    spans: list[TraceSpan] = []
    log = log or Log()

    async def session() -> None:
        tracing = SenderTracing(sampling, spans.append, Clock())
        limits = Limits(credits=64, sessions_max=8, buffer_bytes_max=1 << 20)
        status = SenderStatus(since_s=1)
        intake = Intake("shop", {"orders": route()}, limits, status, clock=lambda: 1, tracing=tracing)
        intake.use(log, {})
        feed = intake.open(Hello(source="orders", stream="feed-1"), "1.2.3.4", client)
        await feed.open(number(0))
        for each in range(1, frames + 1):
            frame = rows_frame(each, orders(range(40)))
            frame.sent_ns = each
            with contextlib.suppress(Refusal):
                await taken(feed, frame)
        feed.close()
        await asyncio.to_thread(intake.close)

    asyncio.run(session())
    return spans, log


def test_a_sender_reports_a_frame_and_each_of_its_records_below_it() -> None:
    spans, log = taken_in(ALL, ALL, 1)
    *appended, accepted = spans
    trace_id = ALL.trace_id(FEED, number(1), 1)
    assert trace_id is not None
    assert accepted.context == accept_context(trace_id)
    assert accepted.parent == client_context(trace_id).span_id
    assert accepted.attributes == {
        "bettong.origin": FEED, "bettong.sequence": 1, "messaging.batch.message_count": 40,
    }  # fmt: skip
    assert len(appended) > 1, "keys of several partitions"
    headers = {header for to in log.traceparents for header in log.traceparents[to] if header}
    assert {each.context.traceparent for each in appended} == headers
    for each in appended:
        assert each.parent == accepted.context.span_id
        assert accepted.begun_ns < each.begun_ns < each.ended_ns < accepted.ended_ns
        at = TopicPartition(
            str(each.attributes["messaging.destination.name"]),
            int(each.attributes["messaging.destination.partition.id"]),
        )
        assert each.context == append_context(accepted.context, at)
        offset = int(each.attributes["messaging.kafka.offset"])
        assert log.traceparents[at][offset] == each.context.traceparent


def test_without_a_client_that_traces_a_senders_span_is_the_root() -> None:
    spans, _ = taken_in(ALL, NO_SAMPLING, 1)
    assert [each.parent for each in spans if each.name == "accept orders"] == [b""]


def test_a_sender_gives_no_header_to_frames_that_are_not_sampled_and_reports_nothing_of_them() -> None:
    some = FrameSampling(0.3)
    spans, log = taken_in(some, NO_SAMPLING, 40)
    traced = {each for each in range(1, 41) if some.trace_id(FEED, number(each), each) is not None}
    assert 3 < len(traced) < 30
    found = {each.attributes["bettong.sequence"] for each in spans if each.name == "accept orders"}
    assert found == traced
    headers = [header for all_of in log.traceparents.values() for header in all_of]
    assert sum(map(bool, headers)) == sum(each.name.startswith("append") for each in spans)
    assert b"" in headers


def test_a_record_that_the_log_refuses_is_an_error_and_so_is_its_frame() -> None:
    spans, _ = taken_in(ALL, NO_SAMPLING, 1, Log(LogError("the disk is full")))
    assert {each.failed for each in spans} == {"the disk is full"}
    assert all("messaging.kafka.offset" not in each.attributes for each in spans)


@pytest.mark.parametrize("takes", [0, 1])
def test_a_record_that_the_log_does_not_even_take_is_an_error_and_ends_its_frame(takes: int) -> None:
    spans, _ = taken_in(ALL, NO_SAMPLING, 1, Log(LogError("the queue is full"), takes=takes))
    *appended, accepted = spans
    assert [each.failed for each in appended] == [""] * takes + ["the queue is full"]
    assert "messaging.kafka.offset" not in appended[-1].attributes
    assert (accepted.name, accepted.failed) == ("accept orders", "the queue is full")


def test_a_client_reports_frames_that_have_their_receipt() -> None:
    spans: list[TraceSpan] = []
    tracing = StreamTracing(FEED, ALL, spans.append, clock_ns=Clock())
    for each in (1, 2, 5):
        tracing.begin(each, sent_ns=each, messages=3)
    tracing.acknowledged(2)
    assert [each.attributes["bettong.sequence"] for each in spans] == [1, 2]
    tracing.acknowledged(2)
    tracing.acknowledged(9)
    assert [each.attributes["bettong.sequence"] for each in spans] == [1, 2, 5]
    trace_id = ALL.trace_id(FEED, number(5), 5)
    assert trace_id is not None
    assert spans[2].context == client_context(trace_id)
    assert spans[2].parent == b""
    assert spans[2].begun_ns < spans[2].ended_ns


CONTEXT = TraceContext(bytes(range(16)), bytes(range(8)))


def folded(stamping: Stamping, headers: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
    """Times and traceparent of what records with these headers lead to."""
    own = worker(program(meters().stages[0], compiled=False))
    topic = stage_topic("meters", own.id.stage)
    found = []
    for offset, header in enumerate(headers):
        value = data("readings/feed", offset + 1, [Reading("m", offset)] * 3)
        output = stamping.fold(own, own.fold, Record(topic, 0, offset, value, b"", header))
        assert len(output.records) == 2
        found.append((output.times, output.traceparent))
    return found


def test_a_worker_reports_the_fold_of_a_traced_record_and_hands_the_trace_on() -> None:
    spans: list[TraceSpan] = []
    beside = folded(Stamping(report=spans.append), [b"", CONTEXT.traceparent, b"nonsense", b""])
    (span,) = spans
    assert [traceparent for _, traceparent in beside] == [b"", span.context.traceparent, b"", b""]
    assert span.parent == CONTEXT.span_id
    assert span.context.trace_id == CONTEXT.trace_id
    assert span.context.span_id != CONTEXT.span_id
    stage = meters().stages[0].name
    assert span.name == f"fold {stage}"
    assert span.attributes == {
        "messaging.system": "kafka",
        "messaging.destination.name": stage_topic("meters", stage),
        "messaging.destination.partition.id": "0",
        "messaging.kafka.offset": 1,
        "messaging.batch.message_count": 3,
        "bettong.stage": stage,
        "bettong.records": 2,
    }
    assert all(len(times) == 16 for times, _ in beside)


def test_a_replay_hands_the_same_trace_on() -> None:
    spans: list[TraceSpan] = []
    runs = [folded(Stamping(report=spans.append), [CONTEXT.traceparent] * 3) for _ in range(2)]
    headers = [[traceparent for _, traceparent in run] for run in runs]
    assert headers[0] == headers[1]
    assert len(set(headers[0])) == 3


def test_a_worker_that_reports_nothing_hands_a_trace_on_as_it_came() -> None:
    assert [each for _, each in folded(Stamping(), [CONTEXT.traceparent, b""])] == [CONTEXT.traceparent, b""]


def test_a_worker_that_measures_nothing_puts_nothing_beside_its_records() -> None:
    assert folded(Stamping(measures=False), [CONTEXT.traceparent]) == [(b"", b"")]


def test_each_partition_stage_and_offset_has_a_span_of_its_own() -> None:
    def fold(stage: int, partition: int, offset: int) -> bytes:
        own = worker(program(meters().stages[stage], compiled=False), partition=partition, partitions=2)
        position = RecordPosition("t", partition, offset)
        span = fold_span(CONTEXT, position, own.id, messages=1, results=1, begun_ns=2, ended_ns=1)
        assert span.ended_ns == 2, "a clock that was set back counts as no time"
        return span.context.span_id

    assert (
        len({fold(stage, partition, offset) for stage in (0, 1) for partition in (0, 1) for offset in (0, 1)})
        == 8
    )


def batch(headers: Sequence[bytes]) -> SinkBatch[Any]:
    key = SinkPartition("raw", 3)
    moving = MovingPosition(PositionKey("app", *key), DeliveryProgress.fresh(0))
    frames: list[Any] = [
        FrameMessages(offset, None, [b"x"] * 2, b"", header)  # type: ignore[arg-type]
        for offset, header in enumerate(headers)
    ]
    return SinkBatch(key, frames, moving)


def test_a_receiver_reports_the_delivery_of_a_traced_result_to_each_destination() -> None:
    spans: list[TraceSpan] = []
    for to in ("files and Redis", "Postgres"):
        tracing = DeliveryTracing(spans.append, {"raw": "app.sink.raw"}, to, clock_ns=Clock())
        tracing.delivered([batch([b"", CONTEXT.traceparent, b"?"])], 0.25)
    assert [each.attributes["bettong.destination"] for each in spans] == ["files and Redis", "Postgres"]
    assert len({each.context for each in spans}) == 2
    for span in spans:
        assert span.name == "deliver raw"
        assert (span.parent, span.context.trace_id) == (CONTEXT.span_id, CONTEXT.trace_id)
        assert span.ended_ns - span.begun_ns == 250_000_000
        assert span.attributes["messaging.kafka.offset"] == 1
        assert span.attributes["messaging.destination.partition.id"] == "3"
        assert span.attributes["messaging.batch.message_count"] == 2


def test_a_subscriber_has_a_result_when_its_response_was_handed_over() -> None:
    spans: list[TraceSpan] = []
    tracing = SubscriberTracing(spans.append, "raw", "subscriber 1", clock_ns=Clock())
    tracing.read(CONTEXT.traceparent, RecordPosition("app.sink.raw", 0, 7), 2)
    tracing.delivered(0, 7)
    tracing.delivered(1, 8)
    assert not spans, "other responses"
    tracing.delivered(0, 8)
    tracing.delivered(0, 8)
    (span,) = spans
    assert span.parent == CONTEXT.span_id
    assert span.attributes["bettong.destination"] == "subscriber 1"
    assert span.begun_ns < span.ended_ns
