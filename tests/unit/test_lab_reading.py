"""What a run reads: how late results were, and what processes say of their garbage collection."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from bettong.errors import LabError
from bettong.garbage import PauseLog
from bettong.lab.measures import latencies
from bettong.lab.reading import LatencyRecorder, SinkReading
from bettong.lab.spec import LoadStep
from bettong.lab.statistics.comparison import is_detail
from bettong.lab.target.gc_pauses import GcPause, logging_pauses, pauses

STEPS = [LoadStep(messages_per_s=10, seconds=10), LoadStep(messages_per_s=20, seconds=5)]
LOG = """\
[1764193000123ms] Using Serial
[1764193001500ms] GC(0) Pause Young (Allocation Failure) 24M->3M(118M) 7.512ms
[1764193002000ms] GC(1) Concurrent Mark Cycle 9.900ms
[1764193003250ms] GC(2) Pause Full (System.gc()) 30M->5M(118M) 20.000ms
"""


def test_a_result_counts_for_the_step_in_which_its_message_was_due() -> None:
    latency = LatencyRecorder(STEPS, warm_up_s=2)
    latency.record(50.0, 51.0)  # before it is known when the run began
    latency.begin_s = 100.0
    for due_s in (99.0, 101.9, 102.0, 109.9, 110.0, 114.0, 120.0):
        latency.record(due_s, due_s + 0.5)
    assert [each.get_total_count() for each in latency.histograms] == [2, 3]
    assert abs(latency.histograms[0].get_max_value() / 1e6 - 500) < 1
    assert {second: [round(each) for each in late] for second, late in latency.sampled_ms.items()} == {
        2: [500],
        9: [500],
        10: [500],
        14: [500],
        20: [500],
    }


def test_the_first_message_of_a_step_counts_for_it() -> None:
    """Its due time is in whole ns on its way, and falls short of the beginning of the step."""
    latency = LatencyRecorder(STEPS, warm_up_s=0)
    for number in range(1000):
        latency.begin_s = 1_764_193_000.0 + number / 999
        due_s = int((latency.begin_s + 10.0) * 1e9) / 1e9
        latency.record(due_s, due_s + 0.5)
    assert [each.get_total_count() for each in latency.histograms] == [0, 1000]


def test_each_result_of_a_frame_counts() -> None:
    """Clients join small frames while the system stands still: one frame then stands for many late messages."""
    latency = LatencyRecorder(STEPS, warm_up_s=0)
    latency.begin_s = 100.0
    for number in range(90):
        latency.record(101.0 + number / 1000, 101.005 + number / 1000)
    latency.record(102.0, 102.5, results=10)
    assert latency.histograms[0].get_total_count() == 100
    assert round(latency.histograms[0].get_value_at_percentile(95) / 1e6, -1) == 500


def test_a_result_from_before_its_message_was_due_is_an_error() -> None:
    latency = LatencyRecorder(STEPS, warm_up_s=0)
    latency.record(90.0, 80.0)
    latency.begin_s = 100.0
    with pytest.raises(
        LabError, match=r"a result came 0.500 s before its message was due, 2.000 s after .*message_of"
    ):
        latency.record(102.0, 101.5)
    assert latency.histograms[0].get_total_count() == 0


def test_steps_of_one_rate_are_named_apart_and_others_by_their_rates_alone() -> None:
    steps = [LoadStep(messages_per_s=rate, seconds=5) for rate in (1000, 5000, 1000)]
    reading = SinkReading("127.0.0.1:1", "sums", 1, LatencyRecorder(steps, warm_up_s=0))
    reading.latency.begin_s = 100.0
    for due_s, late_s in ((101.0, 0.001), (106.0, 0.002), (111.0, 0.003)):
        reading.latency.record(due_s, due_s + late_s)
    found = {each.metric: each.value for each in latencies(steps, {"sums": reading})}
    assert {name: round(value) for name, value in found.items() if name.endswith(", p50")} == {
        "sums in step 1 at 1,000/s, p50": 1,
        "sums at 5,000/s, p50": 2,
        "sums in step 3 at 1,000/s, p50": 3,
    }
    assert {name.rpartition(", ")[2] for name in found if is_detail(name)} == {"p90", "p99.99", "max"}


def test_a_reading_of_which_nothing_is_expected_is_done_at_once() -> None:
    for size, done in ((0, True), (1, False)):
        reading = SinkReading("127.0.0.1:1", "sums", size, LatencyRecorder([], warm_up_s=0))
        assert reading.done.is_set() is done


def test_pauses_are_read_from_javas_logs_and_nothing_else_is(tmp_path: Path) -> None:
    (tmp_path / "spark-jvm-17.log").write_text(LOG)
    (tmp_path / "kafka-18.log").write_text("[1764193000001ms] Using Serial\n")
    assert list(pauses(tmp_path)) == [
        GcPause("spark-jvm", 1764193001.5, 7.512),
        GcPause("spark-jvm", 1764193003.25, 20.0),
    ]


SEARCHES = """
import gc, os, pathlib, sys
from bettong.garbage import log_pauses

gc.collect()
gc.disable()
log_pauses(pathlib.Path(sys.argv[1]), "sender")

def search():
    cycles = [[] for _ in range(300_000)]
    for each in cycles:
        each.append(each)
    del cycles, each
    gc.collect()

search()
if not os.fork():
    search()
    os._exit(0)
os.wait()
"""


def test_python_writes_its_searches_as_java_does(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", SEARCHES, str(tmp_path)], check=True)
    found = list(pauses(tmp_path))
    assert [each.target for each in found] == ["sender", "sender"]
    assert all(1 < each.lasting_ms < 60_000 and abs(each.at_s - time.time()) < 600 for each in found)
    assert len(list(tmp_path.iterdir())) == 2
    assert all("generation 2, 30" in file.read_text() for file in tmp_path.iterdir())


def test_a_search_too_short_to_matter_is_not_written(tmp_path: Path) -> None:
    readings_ns = iter([0, 99_999, 1_000_000, 1_100_000])
    log = PauseLog(tmp_path, "sender", lambda: next(readings_ns))
    for _ in range(2):
        log.note("start", {})
        log.note("stop", {"generation": 0, "collected": 3})
    assert [(each.target, each.lasting_ms) for each in pauses(tmp_path)] == [("sender", 0.1)]


def test_java_is_told_where_to_write() -> None:
    assert logging_pauses(Path("/folder"), "kafka") == {
        "JDK_JAVA_OPTIONS": "-Xlog:gc:file=/folder/kafka-%p.log:timemillis:filecount=0"
    }
