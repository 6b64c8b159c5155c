"""To which partitions a tick reports how far a client has come in event time; pure, its clocks passed in."""

from dataclasses import replace

import pytest

from bettong.frames.frame import FrameKind, decode
from bettong.ingest.session import NO_PARTITION
from bettong_sender.ticker import ENDED_MAX, ORIGINS_PER_TICK_MAX, Round, Ticker
from tests.samples.sender import PARTITIONS, MemoryLog, readings, sensor_of
from tests.simulation.sender_session import EVERY, NOW_NS, STAGE, TICK_S, SimulatedSession


def reported(round_: Round, now_s: float = 0.0) -> dict[int, dict[str, int]]:
    """What the TICKs of a round say, by partition."""
    found: dict[int, dict[str, int]] = {}
    for append in round_.number(now_s, NOW_NS + 5).appends:
        frame = decode(append.value)
        assert (append.topic, append.numbered_in, append.opens) == (STAGE, NO_PARTITION, False)
        assert (frame.kind, frame.origin) == (FrameKind.TICK, "orders/tick")
        assert (frame.sequence, frame.previous, frame.ingest_ns) == (0, 0, NOW_NS + 5)
        assert frame.columns is None
        assert not frame.watermark_ns
        assert not found.get(append.partition, {}).keys() & frame.watermarks.keys()
        watermarks = {str(origin): at_ns for origin, at_ns in frame.watermarks.items()}
        found.setdefault(append.partition, {}).update(watermarks)
    return found


def at_tick(ticker: Ticker, now_s: float) -> dict[int, dict[str, int]]:
    """A round that comes to the log."""
    round_ = ticker.round(now_s, TICK_S)
    found = reported(round_)
    round_.note_durable()
    return found


def others(*partitions: int, ns: int) -> dict[int, dict[str, int]]:
    """That for all partitions but those."""
    return {partition: {"orders/feed": ns} for partition in EVERY if partition not in partitions}


def test_a_watermark_is_reported_to_partitions_that_got_no_frame_and_not_to_the_one_that_did() -> None:
    ticker, log = Ticker(), MemoryLog()
    ours = SimulatedSession(readings(), ticker)
    ours.send(1, (sensor_of(2), 50))
    assert at_tick(ticker, 1.0) == {}, "it is not in the log yet"
    ours.arrive_all(log)
    assert at_tick(ticker, 1.0) == others(2, ns=50)
    assert at_tick(ticker, 2.0) == {}, "nothing has moved"


def test_only_watermarks_are_reported_that_move() -> None:
    ticker, log = Ticker(), MemoryLog()
    ours = SimulatedSession(readings(), ticker)
    for sequence, at in enumerate((50, 30, 50), 1):
        ours.send(sequence, (sensor_of(sequence % 2), at))
    ours.arrive_all(log)
    assert at_tick(ticker, 1.0) == others(0, 1, ns=50)
    ours.send(4, (sensor_of(0), 60), now_s=1.0)
    ours.arrive_all(log)
    assert at_tick(ticker, 2.0) == others(0, ns=60)


def test_a_partition_that_got_a_frame_within_the_tick_gets_a_report_at_the_next() -> None:
    ticker, log = Ticker(), MemoryLog()
    ours = SimulatedSession(readings(), ticker)
    ours.send(1, (sensor_of(0), 50), now_s=10.0)
    ours.send(2, (sensor_of(1), 60), now_s=10.1)
    ours.arrive_all(log)
    assert at_tick(ticker, 10.15) == others(0, 1, ns=60)
    assert at_tick(ticker, 10.31) == {0: {"orders/feed": 60}}
    assert at_tick(ticker, 10.51) == {}


def test_a_frame_that_is_missing_in_one_partition_holds_the_watermark_back_and_all_behind_it() -> None:
    ticker, log = Ticker(), MemoryLog()
    ours = SimulatedSession(readings(), ticker)
    ours.send(1, (sensor_of(0), 50))
    ours.arrive_all(log)
    ours.send(2, (sensor_of(0), 60), (sensor_of(1), 60))
    ours.send(3, (sensor_of(0), 70))
    for _ in range(2):
        ours.arrive((STAGE, 0), log)
    assert at_tick(ticker, 1.0) == others(0, ns=50)
    ours.arrive_all(log)
    assert at_tick(ticker, 2.0) == others(0, ns=70)


def test_what_was_not_written_is_reported_again() -> None:
    ticker, log = Ticker(), MemoryLog()
    ours = SimulatedSession(readings(), ticker)
    ours.send(1, (sensor_of(0), 50))
    ours.arrive_all(log)
    assert reported(ticker.round(1.0, TICK_S)) == others(0, ns=50)
    assert at_tick(ticker, 2.0) == others(0, ns=50)


def test_to_a_partition_that_may_skip_a_frame_as_a_gap_what_came_before_is_reported() -> None:
    ticker, log = Ticker(), MemoryLog()
    ours = SimulatedSession(readings(), ticker)
    ours.send(1, (sensor_of(0), 50))
    ours.arrive_all(log)
    ours.send(2, (sensor_of(1), 60))
    ours.send(3, (sensor_of(1), 70))
    for lost in (True, False):
        ours.arrive((STAGE, 1), log, lost=lost)
    assert at_tick(ticker, 1.0) == others(0, ns=50)


def test_a_session_that_ended_is_reported_once_when_its_last_frame_is_in_the_log_and_forgotten() -> None:
    ticker, log = Ticker(), MemoryLog()
    ours = SimulatedSession(readings(), ticker)
    ours.send(1, (sensor_of(0), 50))
    ticker.close(ours.progress)
    ticker.close(ours.progress)
    assert at_tick(ticker, 1.0) == {}
    ours.arrive_all(log)
    assert at_tick(ticker, 2.0) == others(0, ns=50)
    assert len(ticker) == 1
    assert at_tick(ticker, 3.0) == {}
    assert len(ticker) == 0


def test_a_session_that_ended_without_a_frame_or_with_a_lost_one_is_forgotten() -> None:
    ticker, log = Ticker(), MemoryLog()
    empty, lossy = (SimulatedSession(readings(), ticker, stream=name) for name in ("empty", "lossy"))
    lossy.send(1, (sensor_of(0), 50))
    empty.arrive_all(log)
    for where in lossy.in_flight:
        lossy.arrive(where, log, lost=True)
    for each in (empty, lossy):
        ticker.close(each.progress)
    assert at_tick(ticker, 1.0) == {}
    assert len(ticker) == 0


def test_of_sessions_that_ended_the_newest_are_kept() -> None:
    ticker, log = Ticker(), MemoryLog()
    for number in range(ENDED_MAX + 3):
        ours = SimulatedSession(readings(), ticker, stream=f"s{number}")
        if number < 5:
            ours.send(1, (sensor_of(0), 50))
            ours.arrive_all(log)
        ticker.close(ours.progress)
    assert len(ticker) == ENDED_MAX
    assert {origin for origins in at_tick(ticker, 1.0).values() for origin in origins} == {
        "orders/s3",
        "orders/s4",
    }


def test_an_end_goes_to_whoever_heard_of_the_origin_and_nothing_is_reported_after_it() -> None:
    ticker, log = Ticker(), MemoryLog()
    ours = SimulatedSession(readings(), ticker)
    ours.send(1, (sensor_of(0), 50))
    ours.arrive_all(log)
    assert at_tick(ticker, 1.0) == others(0, ns=50)
    ours.send(2, (sensor_of(0), 60), now_s=2.0)
    ours.arrive_all(log)
    late = ticker.round(2.5, TICK_S)
    assert late.notices
    ticker.end(ours.progress)
    ended = ours.session.end(3.0, NOW_NS)
    assert late.number(3.0, NOW_NS).appends == [], "its END may be in the log already"
    ends = {each.partition: decode(each.value) for each in ended.appends}
    assert list(ends) == list(EVERY)
    assert {(each.kind, each.watermark_ns) for each in ends.values()} == {(FrameKind.END, 60)}
    assert at_tick(ticker, 4.0) == {}
    ticker.close(ours.progress)
    assert at_tick(ticker, 5.0) == {}
    assert len(ticker) == 0


def test_an_earlier_session_of_a_stream_that_ended_is_reported_no_more() -> None:
    ticker, log = Ticker(), MemoryLog()
    first = SimulatedSession(readings(), ticker)
    first.send(1, (sensor_of(0), 50))
    first.arrive_all(log)
    ticker.close(first.progress)
    second = SimulatedSession(readings(), ticker)
    ticker.end(second.progress)
    assert at_tick(ticker, 1.0) == {}


def test_an_end_goes_to_every_partition_where_time_is_needed_and_else_where_the_session_went() -> None:
    timed = SimulatedSession(readings(), Ticker())
    assert {each.partition for each in timed.session.end(3.0, NOW_NS).appends} == set(EVERY)
    untimed = SimulatedSession(replace(readings(), needs_time=False), Ticker())
    ended = untimed.session.end(3.0, NOW_NS)
    assert {each.partition for each in ended.appends} == {where for _, where in untimed.in_flight}


@pytest.mark.parametrize("sessions", [1, ORIGINS_PER_TICK_MAX, ORIGINS_PER_TICK_MAX + 1])
def test_many_clients_share_ticks_that_fit_the_smallest_frame(sessions: int) -> None:
    ticker, log = Ticker(), MemoryLog()
    for number in range(sessions):
        ours = SimulatedSession(readings(), ticker, stream=f"{number:0128}")
        ours.send(1, (sensor_of(0), 50 + number))
        ours.arrive_all(log)
    taken = ticker.round(1.0, TICK_S).number(1.0, NOW_NS)
    assert len(taken.appends) == (PARTITIONS - 1) * -(-sessions // ORIGINS_PER_TICK_MAX)
    assert max(len(each.value) for each in taken.appends) < 16_384 * 3 // 4, "names of sources may be longer"
    assert all(len(origins) == sessions for origins in at_tick(ticker, 1.0).values())


def test_of_two_sessions_of_one_stream_the_newer_watermark_is_reported() -> None:
    ticker, log = Ticker(), MemoryLog()
    for at in (70, 50):
        ours = SimulatedSession(readings(), ticker)
        ours.send(1, (sensor_of(0), at))
        ours.arrive_all(log)
    assert at_tick(ticker, 1.0) == others(0, ns=70)


def test_the_slowest_client_that_is_not_idle_decides_how_far_a_source_is_behind() -> None:
    ticker, log = Ticker(), MemoryLog()
    assert ticker.slowest_ns(0.0) == {}
    fast, slow = (SimulatedSession(readings(), ticker, stream=name) for name in ("fast", "slow"))
    silent = SimulatedSession(readings(), ticker, stream="silent")
    fast.send(1, (sensor_of(0), 90))
    slow.send(1, (sensor_of(0), 40))
    for each in (fast, slow, silent):
        each.arrive_all(log)
    at_tick(ticker, 1.0)
    assert ticker.slowest_ns(2.0) == {"orders": 40}
    fast.send(2, (sensor_of(0), 95), now_s=50.0)
    fast.arrive_all(log)
    at_tick(ticker, 50.0)
    assert ticker.slowest_ns(62.0) == {"orders": 95}
    ticker.close(fast.progress)
    assert ticker.slowest_ns(62.0) == {}
