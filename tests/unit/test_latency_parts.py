"""The parts of a latency: stamped in headers of records, split so that they add up, counted, and shown."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong import metrics
from bettong.edges.kafka_log import LogWriter, Record, reader
from bettong.errors import LogError
from bettong.frames.frame import Frame, decode, encode
from bettong.identifiers import Origin, SequenceNumber, TopicPartition
from bettong.inspection.latency_parts import sink_parts
from bettong.latency import BOUNDS_S, LatencyCounts
from bettong.latency_parts import PARTS, STORED, LatencyPart, PartsOfLate, WorkerTimes, stamped
from bettong.topics import stage_topic
from bettong.worker.partition import PartitionWorker
from bettong.worker.stage_program import program
from bettong_processor.micro_batch.task import _Piece
from bettong_processor.resident.active_partition import ActivePartition, OutputBuffer
from bettong_processor.stamping import StampedOutput
from bettong_receiver.delivery.connector import FrameMessages
from bettong_receiver.delivery.observations import DeliveryObserver
from bettong_receiver.latency_parts import PartedLatency, split_parts
from tests.samples.worker import Reading, data, meters, worker
from tests.unit.test_receiver_delivery import Delivered

MS = 1_000_000
HOUR_NS = 3600 * 1_000_000_000
T_NS = 1_700_000_000 * 1_000_000_000
TIMES = st.integers(0, 2**62)


class Moments(NamedTuple):
    """Of a frame, Unix ns."""

    sent_ns: int
    taken_in_ns: int
    begun_ns: int
    put_out_ns: int
    read_ns: int
    delivered_ns: int


def times_of(put_out_ns: int, inside_ns: int) -> bytes:
    return STORED.pack(put_out_ns, inside_ns)


def record(parted: PartedLatency, moments: Moments, messages: int = 1) -> None:
    """A frame of sink raw."""
    record_of = result(0, moments, messages)
    frame = FrameMessages(0, decode(record_of.value), [b"x"] * messages, record_of.times)
    parted.record("raw", [frame], read_ns=moments.read_ns, delivered_ns=moments.delivered_ns)


def at(*waits_ms: float) -> Moments:
    """Splits six times that are the given milliseconds apart."""
    moments = [T_NS]
    for wait_ms in waits_ms:
        moments.append(moments[-1] + round(wait_ms * MS))
    return Moments(*moments)


def parts_of(moments: Moments) -> list[float]:
    """In ms."""
    return [each / MS for each in split_parts(np.array([moments], np.int64))[0].tolist()]


def sums_s(found: dict[str, Any], sink: str) -> list[float]:
    """Of each part, since the beginning."""
    return [LatencyCounts.parse(str(found[f"latency_part/{sink}/{part}"])).sum_s for part in PARTS]


def test_the_parts_are_the_times_between_the_moments() -> None:
    assert parts_of(at(1, 2, 3, 4, 5)) == [1, 2, 3, 4, 5]


@given(st.lists(TIMES, min_size=6, max_size=6))
def test_parts_are_never_negative_and_add_up_whatever_the_clocks_say(moments: list[int]) -> None:
    parts = split_parts(np.array([moments], np.int64))[0].tolist()
    assert min(parts) >= 0
    assert sum(parts) == min(max(0, moments[-1] - moments[0]), HOUR_NS)


@given(st.lists(st.integers(0, HOUR_NS // 5), min_size=5, max_size=5))
def test_moments_in_order_are_left_as_they_are(waits_ns: list[int]) -> None:
    moments = np.cumsum([T_NS, *waits_ns])
    assert split_parts(moments[np.newaxis, :])[0].tolist() == waits_ns


def test_what_a_clock_that_is_behind_takes_from_one_part_its_neighbour_has() -> None:
    of_worker = at(1, 2, 3, 4, 5)._replace(begun_ns=T_NS - MS, put_out_ns=T_NS + 2 * MS)
    assert parts_of(of_worker) == [1, 0, 1, 8, 5]
    ahead = at(1, 2, 3, 4, 5)._replace(begun_ns=T_NS + 100 * MS, put_out_ns=T_NS + 103 * MS)
    assert parts_of(ahead) == [1, 14, 0, 0, 0]


def test_an_outage_counts_as_an_hour_of_the_part_that_it_was_in() -> None:
    found = parts_of(at(1, 2 * HOUR_NS / MS, 3, 4, 5))
    assert found == [0, HOUR_NS / MS - 12, 3, 4, 5]


def test_a_worker_stamps_how_long_it_took_and_when_it_was_done() -> None:
    first = stamped(b"", T_NS, T_NS + 3 * MS)
    assert WorkerTimes.parse(first) == (T_NS + 3 * MS, 3 * MS)
    second = stamped(first, T_NS + 10 * MS, T_NS + 14 * MS)
    assert WorkerTimes.parse(second) == (T_NS + 14 * MS, 7 * MS), "over both stages"
    assert WorkerTimes.parse(stamped(first, T_NS, T_NS - MS)) == (T_NS - MS, 3 * MS), "no time goes back"


@pytest.mark.parametrize("stored", [b"", b"x", bytes(15), bytes(17), b"\xff" * 16])
def test_what_others_write_there_is_no_stamp(stored: bytes) -> None:
    assert WorkerTimes.parse(stored) is None
    assert WorkerTimes.parse(stamped(stored, T_NS, T_NS + MS)) == (T_NS + MS, MS)


def test_no_stamp_of_others_ends_a_worker() -> None:
    most = 2**63 - 1
    assert WorkerTimes.parse(stamped(times_of(most, most), T_NS, T_NS + MS)) == (T_NS + MS, most)


@given(st.binary(max_size=17) | st.binary(min_size=16, max_size=16), TIMES, TIMES, TIMES, TIMES)
def test_no_bytes_beside_a_record_end_a_receiver_and_parts_add_up_all_the_same(
    times: bytes, sent_ns: int, ingest_ns: int, read_ns: int, delivered_ns: int
) -> None:
    one, two = SequenceNumber(1), SequenceNumber(2)
    frame = Frame(origin=Origin("a/b"), sequence=two, previous=one, ingest_ns=ingest_ns, sent_ns=sent_ns)
    parted = PartedLatency(["raw"])
    delivered = FrameMessages(0, frame, [b"x"], times)
    parted.record("raw", [delivered], read_ns=read_ns, delivered_ns=delivered_ns)
    is_known = len(times) == 16 and sent_ns > 0
    whole_s = min(max(0, delivered_ns - sent_ns), HOUR_NS) / 1e9 if is_known else 0.0
    assert sum(sums_s(parted.metrics(), "raw")) == pytest.approx(whole_s, abs=1e-5)


class Put:
    """Stands for a LogWriter: records the values appended, and their headers."""

    def __init__(self) -> None:
        self.records: list[tuple[TopicPartition, bytes, bytes]] = []

    def append(
        self,
        to: TopicPartition,
        value: bytes,
        on_done: Callable[[int | LogError], None],
        *,
        times: bytes,
        traceparent: bytes,
    ) -> None:
        assert not traceparent
        self.records.append((to, value, times))
        on_done(len(self.records))


def put_out(stage: int, values: Sequence[bytes], times: bytes) -> Put:
    """The output of a new worker of a stage, for records with these times."""
    put = Put()
    own = worker(program(meters().stages[stage], compiled=False))
    log = TopicPartition(stage_topic("meters", own.id.stage), 0)
    partition = ActivePartition(log, own, fold=own.fold, save=PartitionWorker.increment, due_s=0.0)
    for offset, value in enumerate(values):
        partition.fold_record(Record(*log, offset, value, times), cast("LogWriter", put), OutputBuffer())
    return put


def test_stamps_lie_beside_results_which_a_replay_makes_again_byte_by_byte() -> None:
    values = [data("readings/feed", each, [Reading("m", each)]) for each in range(1, 4)]
    first, again = (put_out(0, values, b"") for _ in range(2))
    assert [each[:2] for each in first.records] == [each[:2] for each in again.records]
    stamps = [WorkerTimes.parse(times) for _, _, times in (*first.records, *again.records)]
    assert len(stamps) == 12, "a sink and a stage, three times, twice"
    assert None not in stamps
    assert len({each for each in stamps if each}) >= 6, "by the clock, of each record"


def test_times_of_an_earlier_stage_are_added() -> None:
    earlier_ns = 5_000 * MS
    before = times_of(T_NS, earlier_ns)
    for record in put_out(0, [data("readings/feed", 1, [Reading("m", 1)])], before).records:
        times = WorkerTimes.parse(record[2])
        assert times is not None
        assert earlier_ns <= times.inside_ns < 2 * earlier_ns
        assert times.put_out_ns > T_NS


def test_micro_batches_hand_on_the_stamps_of_each_record() -> None:
    own = worker(program(meters().stages[0], compiled=False))
    records = own.fold(0, data("readings/feed", 1, [Reading("m", 1)]))
    assert len(records) == 2
    piece = _Piece()
    for index, record in enumerate(records):
        piece.add(record, StampedOutput([record], times_of(T_NS + index, index), b"%d" % index))
    found = piece.take_batch().to_pylist()
    assert [each["value"] for each in found] == [each.value for each in records]
    assert [WorkerTimes.parse(each["times"]) for each in found] == [(T_NS, 0), (T_NS + 1, 1)]
    assert [each["traceparent"] for each in found] == [b"0", b"1"]
    assert piece.take_batch().num_rows == 0


def result(offset: int, moments: Moments, messages: int = 1, *, with_times: bool = True) -> Record:
    """A record of sink raw, as a worker writes it."""
    value = encode(
        Frame(
            origin=Origin("raw/notes-in/0"),
            sequence=SequenceNumber(offset + 1),
            previous=SequenceNumber(offset),
            count=messages,
            sent_ns=moments.sent_ns,
            ingest_ns=moments.taken_in_ns,
            rows=[b"x"] * messages,
        )
    )
    times = times_of(moments.put_out_ns, moments.put_out_ns - moments.begun_ns)
    return Record("app.sink.raw", 0, offset, value, times if with_times else b"")


class Clocks:
    """The clocks of a receiver: both advance by a millisecond at each call."""

    def __init__(self) -> None:
        self.asked = 0

    def now_ns(self) -> int:
        self.asked += 1
        return T_NS + 500 * MS + self.asked * MS

    def monotonic_s(self) -> float:
        self.asked += 1
        return self.asked / 1000


def delivered(tmp_path: Path, records: Sequence[Record]) -> dict[str, Any]:
    """The metrics after delivering each of these separately."""
    one, clocks = Delivered(tmp_path), Clocks()
    one.observer = DeliveryObserver(["raw", "notes", "dead-letters"], clock_ns=clocks.now_ns)
    one.delivery._on_delivered = one.observer.observe
    one.delivery._monotonic_s = clocks.monotonic_s
    for record in records:
        one.delivery.deliver([record])
    one.delivery.close()
    return one.observer.metrics()


def test_the_sums_of_the_parts_add_up_to_that_of_the_latency(tmp_path: Path) -> None:
    draw = np.random.default_rng(18)
    records = [
        result(offset, at(*draw.exponential(20, 3).tolist(), 0, 0), int(draw.integers(1, 9)))
        for offset in range(1200)
    ]
    found = delivered(tmp_path, records)
    whole = LatencyCounts.parse(found["latency/raw"])
    parts = [LatencyCounts.parse(found[f"latency_part/raw/{part}"]) for part in PARTS]
    assert {sum(each.counts) for each in parts} == {sum(whole.counts)}, "of the same messages"
    assert whole.sum_s > 100
    assert sum(each.sum_s for each in parts) == pytest.approx(whole.sum_s, rel=0.001)
    assert all(each.sum_s > 0 for each in parts), "none is left out"
    assert sum(PartsOfLate.parse(found["latency_parts/raw"]).sums_s) == pytest.approx(whole.sum_s, rel=0.001)


def test_receiver_to_sink_is_the_time_from_reading_to_the_end_of_the_delivery(tmp_path: Path) -> None:
    found = delivered(tmp_path, [result(0, at(1, 2, 3, 0, 0))])
    own = dict(zip(PARTS, sums_s(found, "raw"), strict=True))
    assert own[LatencyPart.RECEIVER_TO_SINK] == pytest.approx(0.001)
    assert own[LatencyPart.LOG_TO_RECEIVER] == pytest.approx(0.503 - 0.006 - 0.001)


def test_a_result_without_stamps_is_in_no_part(tmp_path: Path) -> None:
    found = delivered(tmp_path, [result(0, at(1, 2, 3, 4, 5), with_times=False)])
    assert sum(LatencyCounts.parse(found["latency/raw"]).counts) == 1
    assert sums_s(found, "raw") == [0.0] * len(PARTS)
    assert "latency_parts/raw" not in found


@pytest.mark.parametrize("wait_ms", [0.002, 0.37, 1.0, 41.5, 3_000.0, 600_000.0])
def test_the_p99_is_within_one_percent(wait_ms: float) -> None:
    parted = PartedLatency(["raw"])
    for number in range(1000):
        record(parted, at(0, 0, wait_ms if number < 990 else 10 * wait_ms, 0, 0), 1)
    found = PartsOfLate.parse(parted.metrics()["latency_parts/raw"])
    assert found.messages == 1000
    assert found.p99_ms[2] == pytest.approx(wait_ms, rel=0.0101)
    assert found.p99_ms[0] == 0


def test_each_part_lies_in_the_bucket_of_prometheus_that_it_belongs_to() -> None:
    parted = PartedLatency(["raw"])
    record(parted, at(1, 1.001, 2, 70_000, 0), 7)
    found = parted.metrics()
    counts = [LatencyCounts.parse(found[f"latency_part/raw/{part}"]).counts for part in PARTS]
    assert [each.index(7) for each in counts] == [0, 1, 1, len(BOUNDS_S), 0]
    assert all(sum(each) == 7 for each in counts)


def test_what_is_of_late_is_so_for_a_minute_and_what_there_ever_was_stays() -> None:
    now_s = 1000.0
    parted = PartedLatency(["raw"], monotonic_s=lambda: now_s)
    record(parted, at(900, 0, 0, 0, 0), 1)
    for _ in range(metrics.LATENCY_WINDOW_S // 10):
        now_s += 10
        record(parted, at(0, 0, 0, 1, 0), 1)
        assert PartsOfLate.parse(parted.metrics()["latency_parts/raw"]).p99_ms[0] > 800
    now_s += 10
    found = parted.metrics()
    assert PartsOfLate.parse(found["latency_parts/raw"]).p99_ms[0] == 0
    assert sums_s(found, "raw")[0] == pytest.approx(0.9)
    now_s += 10_000
    assert "latency_parts/raw" not in parted.metrics()
    assert sums_s(parted.metrics(), "raw")[0] == pytest.approx(0.9)


def test_frames_that_wait_to_be_counted_are_bounded() -> None:
    parted = PartedLatency(["raw"])
    longest = 0
    for _ in range(3000):
        record(parted, at(1, 1, 1, 1, 1), 2)
        longest = max(longest, len(parted._by_sink["raw"]._waiting))
    assert 100 < longest < 600
    assert PartsOfLate.parse(parted.metrics()["latency_parts/raw"]).messages == 6000


@pytest.mark.parametrize(
    "text",
    ["", "é", "[]", "7", "{}", '{"messages":1}', '{"messages":1,"sums_s":[1],"p99_ms":[1]}', "[" * 100_000]
    + [
        f'{{"messages":{n},"sums_s":[{s}],"p99_ms":[1,1,1,1,1]}}'
        for n, s in ((0, "1,1,1,1,1"), (1, "NaN,1,1,1,1"))
    ]
    + [
        '{"messages":1,"sums_s":[1,1,1,1,-1],"p99_ms":[1,1,1,1,1]}',
        '{"messages":1e999,"sums_s":[],"p99_ms":[]}',
    ],
)
def test_what_is_no_parts_in_a_record_is_left_out(text: str) -> None:
    with pytest.raises(ValueError, match=r"parts|Expecting"):
        PartsOfLate.parse(text)
    assert sink_parts([{"latency_parts/raw": text}]) == ()


def test_parts_of_several_receivers_are_added_up() -> None:
    one = PartsOfLate(10, [0.1, 0.0, 0.0, 0.0, 0.1], [11, 1, 1, 1, 19]).to_text()
    other = PartsOfLate(30, [0.1, 0.6, 0.0, 0.0, 0.1], [7, 50, 1, 1, 3]).to_text()
    (raw, then) = sink_parts(
        [{"latency_parts/raw": one, "x": "y"}, {"latency_parts/raw": other, "latency_parts/s/t": one}]
    )
    assert (raw.sink, raw.messages, then.sink) == ("raw", 40, "s/t")
    assert raw.mean_ms == pytest.approx(25)
    assert [each.mean_ms for each in raw.parts] == pytest.approx([5, 15, 0, 0, 5])
    assert [each.share for each in raw.parts] == pytest.approx([0.2, 0.6, 0, 0, 0.2])
    assert [each.p99_ms for each in raw.parts] == [11, 50, 1, 1, 19]
    assert (raw.largest.part, raw.largest.part.words) == (LatencyPart.LOG_TO_WORKER, "log to worker")


def test_a_latency_of_nothing_has_no_shares() -> None:
    (found,) = sink_parts([{"latency_parts/raw": PartsOfLate(1, [0.0] * 5, [0.0] * 5).to_text()}])
    assert [each.share for each in found.parts] == [0.0] * 5
    assert not any(math.isnan(each.mean_ms) for each in found.parts)


@pytest.mark.parametrize(
    "error", [SystemError("no text"), UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no text")]
)
def test_a_record_with_a_header_whose_name_is_no_text_is_read_without_times(error: Exception) -> None:
    class External:
        def headers(self) -> None:
            raise error

    assert reader._headers_of(cast("Any", External())) == (b"", b"")
