"""Windows: what fires, when, and of which messages; which are late; and that no message is lost uncounted."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bettong
from bettong import Application, Window
from bettong.application.windows.kinds import Ephemeral, Ranges, Sessions, WindowKind
from bettong.frames.times import encode_times
from bettong.testing import run, watermark
from bettong.worker.output.framing import OutputRecord
from bettong.worker.partition import PartitionWorker
from tests.samples.timers import tick as tick_of
from tests.samples.windows import OUT, Amount, Meaning, Seen, Values, windowed
from tests.samples.worker import data, dead_letters, fold, python, results, worker


def us(count: int) -> timedelta:
    return timedelta(microseconds=count)


def fresh(kind: WindowKind, **options: Any) -> PartitionWorker:
    app = Application("meters")
    node = windowed(app, kind, **options)
    if options.get("late") == "side":
        node.late.sink("late")
    return worker(python(app))


def seen(records: list[OutputRecord]) -> list[Seen]:
    return results(records, OUT, Seen)


def values(records: list[OutputRecord]) -> list[str]:
    return [each.values for each in seen(records)]


RANGES = st.builds(
    lambda slide, times, offset, delay: Ranges(slide * times // 2 or 1, max(1, slide), offset % slide, delay),
    st.integers(1, 12),
    st.integers(2, 7),
    st.integers(0, 11),
    st.sampled_from([0, 0, 5, 30]),
).filter(lambda kind: kind.slide_ns <= kind.size_ns)
EPHEMERAL = st.builds(Ephemeral, st.integers(1, 9), st.integers(0, 9))
SESSIONS = st.builds(Sessions, st.integers(1, 9), st.sampled_from([0, 0, 5, 30]))
STEPS = st.lists(
    st.tuples(st.integers(1, 2), st.integers(-14, 25), st.integers(-9, 9)), min_size=1, max_size=40
)


@settings(max_examples=300)
@given(
    kind=RANGES | SESSIONS | EPHEMERAL,
    late=st.sampled_from(["drop", "fire", "oldest", "side"]),
    emit_empty=st.booleans(),
    steps=STEPS,
    crashes=st.sets(st.integers(0, 39)),
)
def test_windows_are_what_their_semantics_say(
    kind: WindowKind,
    late: str,
    emit_empty: bool,  # noqa: FBT001 - hypothesis fills it in
    steps: list[tuple[int, int, int]],
    crashes: set[int],
) -> None:
    """Each message in its own record; an advancing watermark; workers restored in between."""
    emit_empty = emit_empty and isinstance(kind, Ranges)
    late = "drop" if late == "oldest" and isinstance(kind, Ephemeral) else late
    one = fresh(kind, late=late, emit_empty=emit_empty)
    meanings: dict[int, Meaning] = {}
    watermark_ns = 0
    for number, (key, ahead_ns, forward_ns) in enumerate(steps, 1):
        at_ns = max(0, watermark_ns + ahead_ns)
        meaning = meanings.setdefault(key, Meaning(kind, late, emit_empty, watermark_ns))
        expected = [(key, *each) for each in meaning.take(at_ns, number)]
        watermark_ns = max(watermark_ns, watermark_ns + forward_ns)
        fired = [(key, *each) for key, other in meanings.items() for each in other.reach(watermark_ns)]
        expected += sorted(fired, key=lambda each: (each[2], each[0]))
        found = fold(one, [data("in/x", number, [Amount(key, at_ns, number)], watermark_ns=watermark_ns)])
        assert [(each.key, each.start, each.end, ordered(each.values)) for each in seen(found)] == expected
        assert all(each.final for each in seen(found))
        if number in crashes:
            saved = one.snapshot()
            one = fresh(kind, late=late, emit_empty=emit_empty)
            one.restore(saved)
            assert one.snapshot() == saved
    lates = sum(len(each.lates) for each in meanings.values())
    assert (one.counters.late, one.counters.partly_late) == (
        lates,
        sum(each.partly_late for each in meanings.values()),
    )
    assert one.keys == sum(each.is_known for each in meanings.values())


@settings(max_examples=300)
@given(
    kind=RANGES | SESSIONS | EPHEMERAL,
    emit_empty=st.booleans(),
    late=st.sampled_from(["drop", "fire", "oldest", "side"]),
    bound_ns=st.sampled_from([0, 0, 6]),
    steps=st.lists(st.tuples(st.integers(1, 2), st.integers(-14, 9)), min_size=1, max_size=30),
    cuts=st.sets(st.integers(1, 29)),
)
def test_windows_are_the_same_however_messages_are_cut_into_frames(
    kind: WindowKind,
    emit_empty: bool,  # noqa: FBT001 - hypothesis fills it in
    late: str,
    bound_ns: int,
    steps: list[tuple[int, int]],
    cuts: set[int],
) -> None:
    """Frames as a sender makes them: those in which a message is late say how far the origin was before each."""
    late = "drop" if late == "oldest" and isinstance(kind, Ephemeral) else late
    emit_empty = emit_empty and isinstance(kind, Ranges)
    needs_each_watermark = emit_empty or isinstance(kind, Ephemeral)
    messages, newest_ns = list[Amount](), 0
    for number, (key, ahead_ns) in enumerate(steps, 1):
        messages.append(Amount(key, max(0, newest_ns + ahead_ns), number))
        newest_ns = max(newest_ns, messages[-1].at)
    found = []
    for frame_cuts in (set(range(len(messages))), cuts):
        one = fresh(kind, late=late, emit_empty=emit_empty)
        records = fold(one, framed(messages, frame_cuts, bound_ns, needs_each_watermark=needs_each_watermark))
        by_key = {key: [each for each in seen(records) if each.key == key] for key in (1, 2)}
        lates = sorted(results(records, "meters.sink.late", Amount), key=lambda each: each.value)
        found.append((by_key, lates, one.counters.late, one.counters.partly_late, one.keys))
    assert found[0] == found[1]


def framed(
    messages: list[Amount], cuts: set[int], bound_ns: int, *, needs_each_watermark: bool
) -> list[bytes]:
    """Messages of a client, cut before these indexes, and its watermarks."""
    starts = sorted({0, *(cut for cut in cuts if cut < len(messages))})
    frames, newest_ns = list[bytes](), 0
    for number, (start, stop) in enumerate(pairwise([*starts, len(messages)]), 1):
        own = []
        for each in messages[start:stop]:
            own.append(max(0, newest_ns - bound_ns))
            newest_ns = max(newest_ns, each.at)
        is_late = any(each.at < before for each, before in zip(messages[start:stop], own, strict=True))
        frames.append(
            record(
                number,
                messages[start:stop],
                max(0, newest_ns - bound_ns),
                message_watermarks=encode_times(np.array(own)) if is_late or needs_each_watermark else b"",
            )
        )
    return frames


def ordered(shown: str) -> str:
    return " ".join(sorted(shown.split(), key=int))


def amounts(*pairs: tuple[int, int], key: int = 1) -> list[Amount]:
    return [Amount(key, at_ns, value) for at_ns, value in pairs]


def record(sequence: int, messages: list[Amount], watermark_ns: int, **more: Any) -> bytes:
    return data("in/x", sequence, messages, watermark_ns=watermark_ns, **more)


VECTOR = ((1_000_000_000, 2), (1_001_000_000, 3), (1_002_000_000, 4), (50, 1), (1_003_000_000, 5))


@pytest.mark.parametrize("late", ["drop", "fire"])
def test_the_vector_of_the_late_policies(late: str) -> None:
    """From the text of the semantics: a message that is late, between others of a window that is open."""
    one = fresh(bettong.tumbling(timedelta(seconds=1)), late=late)
    found, watermark_ns = list[str](), 0
    for number, each in enumerate(VECTOR, 1):
        watermark_ns = max(watermark_ns, each[0])
        found += values(fold(one, [record(number, amounts(each), watermark_ns)]))
    assert found == (["1"] if late == "fire" else [])
    assert values(fold(one, [record(6, amounts((5_000_000_000, 9), key=2), 5_000_000_000)])) == ["2 3 4 5"]
    assert one.counters.late == 1


@pytest.mark.parametrize("partitions", [1, 16])
@pytest.mark.parametrize("frames", [1, 5])
@pytest.mark.parametrize("late", ["drop", "fire"])
def test_the_vector_is_the_same_in_one_frame_or_five_and_over_any_number_of_partitions(
    late: str, frames: int, partitions: int
) -> None:
    app, messages = Application("meters"), amounts(*VECTOR)
    windowed(app, bettong.tumbling(timedelta(seconds=1)), late=late)
    inputs: list[Any] = [("in", messages)] if frames == 1 else [("in", each) for each in messages]
    found = run(app, [*inputs, watermark(5_000_000_000)], partitions=partitions)
    seen_values = [each.values for each in found.outputs["out"]]
    assert seen_values == (["1"] if late == "fire" else []) + ["2 3 4 5"]
    assert found.late == 1


class Uncombined(Values):
    def combine(self, left: list[int], right: list[int]) -> list[int]:
        if 13 in left + right:
            raise ValueError("unlucky")
        return super().combine(left, right)

    def output(self, key: int, accumulator: list[int], window: Window) -> Seen | None:
        if 7 in accumulator:
            raise ValueError("seven")
        return super().output(key, accumulator, window)


def test_a_window_whose_functions_raise_is_a_dead_letter_and_over() -> None:
    app = Application("meters")
    source = app.source("in", schema=Amount, key="key", event_time="at")
    source.window(bettong.sliding(us(4), us(2)), Uncombined(), name="seen").sink("out")
    one = worker(python(app))
    found = fold(one, [record(1, amounts((0, 13), (2000, 1), (4000, 2), (8000, 7)), 99_000)])
    assert values(found) == ["13", "1 2", "2"]
    assert [(each.reason, each.message.decode(), each.fired) for each in dead_letters(found)] == [
        ("ValueError: unlucky", '{"key":1,"timer":"due","at":4000}', True),
        ("ValueError: seven", '{"key":1,"timer":"due","at":10000}', True),
        ("ValueError: seven", '{"key":1,"timer":"due","at":12000}', True),
    ]
    assert one.keys == 0


def test_late_messages_go_to_their_own_stream_as_they_came() -> None:
    one = fresh(bettong.tumbling(us(1)), late="side")
    fold(one, [record(1, amounts((5000, 1)), 5000)])
    found = fold(one, [record(2, [*amounts((3999, 2), (4000, 3)), *amounts((10, 4), key=7)], 5000)])
    assert results(found, "meters.sink.late", Amount) == [
        Amount(1, 3999, 2),
        Amount(1, 4000, 3),
        Amount(7, 10, 4),
    ]
    assert seen(found) == []
    assert one.counters.late == 3


def test_each_message_is_used_partly_late_late_or_a_dead_letter() -> None:
    one = fresh(bettong.sliding(us(4), us(2)))
    fold(one, [record(1, amounts((6000, 1)), 6000)])
    found = fold(one, [record(2, amounts((5000, 2), (1000, 3), (7000, -4), (7000, 5)), 20_000)])
    # The panes of a sliding window are combined, the older one first.
    assert values(found) == ["2 1 5", "1 5"]
    assert [each.reason for each in dead_letters(found)] == ["ValueError: negative"]
    assert (one.counters.late, one.counters.partly_late, one.counters.dead_letters) == (1, 1, 1)
    assert one.keys == 0


class Windows(Values):
    """Windows of windows."""

    def update(self, accumulator: list[int], amount: Seen) -> list[int]:  # type: ignore[override]
        return [*accumulator, int(amount.values)]


def test_a_result_has_the_event_time_of_its_windows_last_nanosecond() -> None:
    """So what follows by another key, or in a window of windows, finds it there."""
    app = Application("meters")
    source = app.source("in", schema=Amount, key="key", event_time="at")
    minutes = source.window(bettong.tumbling(us(1)), Values(), name="small")
    hours = minutes.window(bettong.tumbling(us(3)), Windows(), name="large")
    hours.sink("out")
    one = worker(python(app))
    found = fold(one, [record(1, amounts((500, 1), (1500, 2), (2999, 3), (3000, 4)), 3000)])
    assert seen(found) == [Seen(1, 0, 3000, "1 2 3")]
    assert one.counters.late == 0


def test_a_group_gives_its_result_with_its_last_message_or_when_it_has_waited_long_enough() -> None:
    one = fresh(bettong.counts(3, timeout=us(5)))
    first = fold(one, [record(1, amounts((1, 1), (9, 2), (3, 3), (4, 4)), 9, ingest_ns=100)])
    assert seen(first) == [Seen(1, 1, 10, "1 2 3")]
    assert seen(fold(one, [tick_of(5099, 9)])) == []
    assert seen(fold(one, [tick_of(5100, 9)])) == [Seen(1, 4, 5, "4")]
    assert (one.keys, one.counters.late) == (0, 0)


def test_windows_that_are_open_show_what_they_have_when_they_have_changed() -> None:
    one = fresh(bettong.sliding(us(4), us(2)), early=us(1))
    assert values(fold(one, [record(1, amounts((4500, 1)), 4500, ingest_ns=10)])) == []
    found = seen(fold(one, [tick_of(1010, 4500)]))
    assert [(each.start, each.values, each.final) for each in found] == [
        (2000, "1", False),
        (4000, "1", False),
    ]
    assert seen(fold(one, [tick_of(9000, 4500)])) == [], "nothing has changed since"
    fold(one, [record(2, amounts((6500, 2)), 5000, ingest_ns=9000)])
    found = seen(fold(one, [tick_of(10_000, 5000)]))
    assert [(each.start, each.values) for each in found] == [(4000, "1 2"), (6000, "2")]
    found = seen(fold(one, [tick_of(10_000, 99_000)]))
    assert [each.values for each in found if each.final] == ["1", "1 2", "2"]
    assert len(found) == 3
    assert one.keys == 0


@pytest.mark.parametrize(
    ("given_", "remedy"),
    [
        (Seen, "'w': Seen is a class; give bettong.aggregate(Seen, FIELD=bettong.Count(), ...)"),
        (Values, "'w': Values is a class; give an object of it: Values()"),
    ],
)
def test_a_class_in_place_of_an_aggregation_is_told_what_to_write(given_: Any, remedy: str) -> None:
    source = Application("meters").source("in", schema=Amount, key="key", event_time="at")
    with pytest.raises(bettong.ApplicationError) as refused:
        source.window(bettong.tumbling(us(1)), given_, name="w")
    assert remedy in str(refused.value)


@pytest.mark.parametrize(
    ("given_", "complaint"),
    [
        (lambda: bettong.tumbling(timedelta(0)), "tumbling: size="),
        (lambda: bettong.sliding(us(5), timedelta(0)), "sliding: slide="),
        (lambda: bettong.sliding(us(5), us(6)), "slide=0:00:00.000006 is longer than size"),
        (lambda: bettong.tumbling(us(5), offset=us(5)), "tumbling: offset="),
        (lambda: bettong.sessions(timedelta(0)), "sessions: gap="),
        (lambda: bettong.counts(0), "counts: count=0"),
        (lambda: bettong.counts(3, timeout=timedelta(0)), "counts: timeout="),
        (lambda: fresh(60), "60 is no kind of windows"),  # type: ignore[arg-type]
        (lambda: fresh(bettong.counts(3), late="fire"), "late=: groups of so many messages"),
        (lambda: fresh(bettong.sessions(us(1)), emit_empty=True), "emit_empty: only windows of a fixed"),
        (lambda: fresh(bettong.sessions(us(1)), late="later"), "late='later'"),
        (lambda: fresh(bettong.sessions(us(1)), early=timedelta(0)), "early="),
        (lambda: windowed(Application("meters"), bettong.sessions(us(1))).late, 'give it late="side"'),
    ],
)
def test_what_is_no_window_is_refused_when_the_application_is_built(given_: Any, complaint: str) -> None:
    with pytest.raises(bettong.ApplicationError) as refused:
        given_()
    assert complaint in str(refused.value)
