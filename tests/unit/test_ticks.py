"""TICKs of the processor: which time they carry, and when a partition gets one."""

from __future__ import annotations

from random import Random

import pytest

from bettong.errors import LogUnavailableError
from bettong.frames.frame import FrameKind, decode, tick_record
from bettong_processor.ticks import TICK_S_MIN, TickPacing

HOUR_NS = 3600 * 1_000_000_000
NOW_NS = 500_000 * HOUR_NS


def test_a_tick_carries_time_and_nothing_else() -> None:
    frame = decode(tick_record("check", NOW_NS))
    assert (frame.kind, frame.stream, frame.ingest_ns) == (FrameKind.TICK, "check", NOW_NS)
    assert (frame.sequence, frame.previous, frame.count) == (0, 0, 0)
    assert decode(tick_record("s" * 100, NOW_NS)).origin == "s" * 100 + "/tick"


def test_a_partition_has_one_tick_at_a_time_and_they_are_apart() -> None:
    pacing = TickPacing()
    assert pacing.allows(7, 0.0)
    pacing.begin(0.0)
    assert not pacing.allows(8, 99.0), "the log has not answered"
    pacing.finish(7)
    assert not pacing.allows(7, 99.0), "it lies in the log, and is not folded"
    assert not pacing.allows(8, TICK_S_MIN / 2)
    assert pacing.allows(8, TICK_S_MIN)


def test_a_tick_that_the_log_did_not_take_is_followed_by_another() -> None:
    pacing = TickPacing()
    pacing.begin(0.0)
    pacing.finish(LogUnavailableError("away"))
    assert not pacing.allows(7, 0.0)
    assert pacing.allows(7, TICK_S_MIN)


@pytest.mark.parametrize("seed", range(20))
def test_however_slow_log_and_fold_are_no_second_tick_is_on_its_way(seed: int) -> None:
    chance, pacing = Random(seed), TickPacing()
    log: list[str] = []
    next_offset, asked, written_s, now_s = 0, 0, [-1.0], 0.0
    for _ in range(2000):
        now_s += chance.random() * 0.1
        deed = chance.randrange(4)
        if deed == 0 and pacing.allows(next_offset, now_s):
            assert not asked
            assert "tick" not in log[next_offset:]
            assert now_s - written_s[-1] >= TICK_S_MIN
            pacing.begin(now_s)
            written_s.append(now_s)
            asked = 1
        elif deed == 1 and asked:
            asked = 0
            if chance.random() < 0.2:
                pacing.finish(LogUnavailableError("away"))
            else:
                pacing.finish(len(log))
                log.append("tick")
        elif deed == 2:
            next_offset = min(len(log), next_offset + chance.randint(1, 4))
        elif deed == 3:
            log.append("record")
    assert len(written_s) > 50
