"""The word count of `python -m benchmarks.peers`: words and their counts, who has answered what, how late, who runs."""

from __future__ import annotations

import time
from collections import Counter
from threading import Event

import pytest

from benchmarks.peers.answered import AnsweredRecords
from benchmarks.peers.bettong.contestant import HERE as BETTONG
from benchmarks.peers.entries import entries_of, left_out
from benchmarks.peers.fixed_rate import FixedRate, paced
from benchmarks.peers.load import Load, Record
from benchmarks.peers.race import RaceError
from benchmarks.peers.steady import waits_of
from benchmarks.peers.word_load import by_word, word_load
from benchmarks.peers.workloads import WORD_COUNT
from bettong.edges.application_file import load as load_application
from bettong.testing import run
from tests.samples.peer_loads import judged, load_frames

WORDS = 50_000
MESSAGES = 5000
FRAME_MESSAGES = 700
# 100 messages a second, the first second of two warming up.
RATE = FixedRate(messages_per_s=100, seconds=1.0, warm_up_s=1.0)


def small_load() -> Load:
    """One record of each word before the clock, then a, b, a, a."""
    opening = [Record(word, word) for word in (b"a", b"b")]
    timed = [Record(word, word) for word in (b"a", b"b", b"a", b"a")]
    expected = {b"a": [b"a 1", b"a 2", b"a 3", b"a 4"], b"b": [b"b 1", b"b 2"]}
    return Load(opening, timed, 4, 2, expected, by_word)


def test_every_word_comes_once_before_the_clock_and_each_count_is_expected_once() -> None:
    of = word_load(MESSAGES)
    words = Counter(record.value for record in of.opening + of.timed)
    assert {record.value for record in of.opening} == words.keys()
    assert len(words) == len(of.opening) == of.opening_results == WORDS
    assert len(of.timed) == of.timed_messages == MESSAGES
    assert all(record.key == record.value for record in of.opening + of.timed)
    assert of.expected == {
        word: [b"%b %d" % (word, count + 1) for count in range(times)] for word, times in words.items()
    }
    assert max(words.values()) > 2, "some word came twice by chance"
    assert word_load(MESSAGES).timed == of.timed, "always the same"


def test_bettongs_application_counts_words() -> None:
    of = word_load(MESSAGES)
    app = load_application(str(BETTONG / f"{WORD_COUNT.module}.py"))
    outcome = run(app, list(load_frames(of, FRAME_MESSAGES)))
    judged(of, outcome.outputs["counts"])
    assert not outcome.dead_letters
    with pytest.raises(RaceError, match="not the right ones"):
        judged(of, outcome.outputs["counts"][1:])


def test_each_result_answers_its_record() -> None:
    answered = AnsweredRecords(small_load(), merges=False)
    results = [b"b 1", b"a 1", b"a 2", b"a 3", b"b 2", b"a 4"]
    assert [answered.note(result) for result in results] == [[-1], [-2], [0], [2], [1], [3]]
    assert answered.left == 0


def test_a_merged_result_answers_all_records_of_its_key_before_it() -> None:
    answered = AnsweredRecords(small_load(), merges=True)
    assert [answered.note(result) for result in (b"a 3", b"b 1")] == [[-2, 0, 2], [-1]]
    assert answered.left == 2, "a's last and b's"
    assert [answered.note(result) for result in (b"a 4", b"b 2")] == [[3], [1]]
    assert answered.left == 0


@pytest.mark.parametrize(
    ("results", "merges", "said"),
    [
        ([b"a 1", b"a 1"], False, "b'a 1' came twice, or behind a later one"),
        ([b"a 3", b"a 2"], True, "b'a 2' came twice, or behind a later one"),
        ([b"a 1", b"a 4"], False, "b'a 4' came without 2 before it"),
        ([b"a 5"], True, "nobody expected the result b'a 5'"),
        ([b"c 1"], False, "nobody expected the result b'c 1'"),
    ],
    ids=["doubled", "moved", "lost", "too many", "strange"],
)
def test_a_wrong_count_is_named(results: list[bytes], said: str, *, merges: bool) -> None:
    answered = AnsweredRecords(small_load(), merges=merges)
    for result in results[:-1]:
        answered.note(result)
    with pytest.raises(RaceError, match=said):
        answered.note(results[-1])


def test_latency_counts_from_when_a_record_was_due_and_the_warm_up_is_left_out() -> None:
    assert RATE.messages == 200
    # The results of the warm-up and of what was there before are a second late, the nth one behind it n ms.
    late_s = [1.0 if number < 100 else (number - 99) / 1000 for number in range(RATE.messages)]
    came = [(number, 50.0 + number / 100 + late) for number, late in enumerate(late_s)]
    p50, p99, p999 = waits_of([(-1, 50.0), *came], RATE, 50.0).samples()
    assert p50.value == pytest.approx(50, rel=0.002)
    assert p99.value == pytest.approx(99, rel=0.002)
    assert p999.value == pytest.approx(100, rel=0.002)


def test_a_wait_that_is_longer_than_the_histogram_counts_as_the_longest() -> None:
    (p50, *_) = waits_of([(100, 51.0 + 3600)], RATE, 50.0).samples()
    assert p50.value == pytest.approx(60_000, rel=0.002)


def test_records_that_are_overdue_come_at_once_and_none_behind_the_end() -> None:
    records = small_load().timed
    stopping = Event()
    found = paced(records, RATE, time.monotonic() - 60.0, stopping)
    assert [next(found), next(found)] == records[:2]
    stopping.set()
    assert not list(found)


def test_a_record_does_not_come_before_it_is_due() -> None:
    begun_s = time.monotonic()
    came_s = [time.monotonic() - begun_s for _ in paced(small_load().timed, RATE, begun_s, Event())]
    assert all(now_s >= RATE.due_s(number) for number, now_s in enumerate(came_s))
    assert len(came_s) == 4


def test_everybody_who_can_count_words_is_measured_by_latency() -> None:
    entries = {entry.name: entry.measurements for entry in entries_of(WORD_COUNT)}
    assert list(entries) == [
        "Bettong, resident",
        "Bettong, micro-batch",
        "bytewax",
        "Quix Streams, a commit each 100 ms",
        "Spark, applyInPandasWithState",
        "Spark Structured Streaming",
        "PyFlink, a checkpoint each 100 ms",
        "PyFlink, at least once",
    ]
    names = [(each.name, each.unit) for each in entries["bytewax"]]
    assert names == [
        ("bytewax, p50", "ms"),
        ("bytewax, p99", "ms"),
        ("bytewax, p99.9", "ms"),
        ("bytewax, CPU", "% of a core"),
    ]
    assert "OPERATOR_OR_SINK_NOT_IN_ALLOWLIST" in left_out(WORD_COUNT)["Spark, real-time mode"]
