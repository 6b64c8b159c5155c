"""What the processor reads out of Spark's words: faults, progress, and where a query starts."""

import json

from bettong import metrics
from bettong.errors import ApplicationError, LogTruncatedError, PoisonError
from bettong.identifiers import TopicPartition
from bettong_processor.faults import TEXT_CHARACTERS_MAX, fault_of
from bettong_processor.micro_batch.offsets import committed_offsets, exceeds, starting_offsets
from bettong_processor.micro_batch.progress import durations_of, ends_of, metrics_of

PYTHON = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: [PYTHON_EXCEPTION] Thrown:
Traceback (most recent call last):
  File "worker.py", line 9, in fold
{error}
\tat org.apache.spark.api.python.BasePythonRunner
Caused by: java.lang.IllegalStateException: nothing of ours
"""


def test_a_truncated_log_is_final_and_reported_in_our_own_words() -> None:
    fault = fault_of(
        PYTHON.format(error="bettong.errors.LogTruncatedError: stage 'a', partition 3: no state reaches 7")
    )
    assert fault.final is LogTruncatedError
    assert fault.text == "LogTruncatedError: stage 'a', partition 3: no state reaches 7"


def test_a_mistake_in_the_application_is_final() -> None:
    fault = fault_of(PYTHON.format(error="bettong.errors.ApplicationError: no such file"))
    assert fault.final is ApplicationError


def test_a_message_that_stops_the_processor_is_final_and_reported_whole() -> None:
    reported = (
        "bettong.errors.PoisonError: 'divide' (on_error=\"stop\") cannot process a message: " + "x" * 1500
    )
    text = PYTHON.format(error=f"ZeroDivisionError: division by zero\n\nThe above exception ...\n{reported}")
    fault = fault_of(text)
    assert fault.final is PoisonError
    assert fault.text == reported.removeprefix("bettong.errors.")


def test_records_that_spark_finds_missing_are_final() -> None:
    fault = fault_of(
        "[KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE] Some data may have been lost: offset 5\nmore"
    )
    assert fault.final is LogTruncatedError
    assert "offset 5" in fault.text


def test_a_store_that_is_away_is_a_passing_fault() -> None:
    fault = fault_of(PYTHON.format(error="bettong.errors.StoreError: Redis at x does not answer"))
    assert fault.final is None
    assert fault.text == "StoreError: Redis at x does not answer"


def test_an_error_without_a_text_and_a_fault_without_python_are_reported_too() -> None:
    assert fault_of(PYTHON.format(error="NotImplementedError")).text.startswith("NotImplementedError")
    assert fault_of("org.apache.kafka.common.errors.TimeoutException: no broker\n at x").text.endswith(
        "no broker"
    )
    assert fault_of("").text == "unknown"


def test_a_lost_python_worker_is_reported_in_the_words_of_spark() -> None:
    fault = fault_of(
        "An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.\n"
        ": org.apache.spark.SparkException: Job aborted: Python worker exited unexpectedly (crashed).\n\tat a.b\n"
    )
    assert fault.final is None
    assert fault.text.startswith("org.apache.spark.SparkException: Job aborted: Python worker exited")


def test_long_texts_are_cut() -> None:
    assert len(fault_of(PYTHON.format(error="ValueError: " + "x" * 5000)).text) == TEXT_CHARACTERS_MAX


def test_progress_becomes_batch_and_duration() -> None:
    progress = {
        "batchId": 12,
        "durationMs": {"addBatch": 80, "triggerExecution": 100},
        "sources": [
            {
                "endOffset": {"a": {"0": 5, "1": 7}},
                "latestOffset": {"a": {"0": 9, "1": 7}, "b": {"0": 2}},
            }
        ],
    }
    assert metrics_of(progress) == {metrics.BATCH.name: "12", metrics.BATCH_MS.name: 100.0}
    assert durations_of(progress) == {"batch": 12, "addBatch": 80, "triggerExecution": 100}


def test_before_the_first_batch_there_are_no_metrics() -> None:
    assert metrics_of(None) == {}
    assert durations_of(None) == {}
    assert ends_of({"batchId": 0, "sources": [{"endOffset": None, "latestOffset": None}]}) == {}


def test_a_query_starts_at_the_snapshots_and_else_at_the_beginning() -> None:
    offsets = json.loads(starting_offsets(("a", "b"), 2, {TopicPartition("a", 1): 40}))
    assert offsets == {"a": {"0": -2, "1": 40}, "b": {"0": -2, "1": -2}}


def test_a_checkpoint_is_behind_when_any_snapshot_is_beyond_its_last_batch() -> None:
    committed = committed_offsets('v1\n{"batchWatermarkMs":0}\n{"a":{"0":40,"1":7}}')
    first, second = TopicPartition("a", 0), TopicPartition("a", 1)
    assert committed == {first: 40, second: 7}
    assert not exceeds({first: 40, second: 5}, committed)
    assert exceeds({first: 39, second: 8}, committed)
    assert exceeds({TopicPartition("b", 0): 1}, committed)
    for unreadable in ("", "v1\n{}\n-", 'v1\n{}\n{"a":{"0"'):
        assert committed_offsets(unreadable) == {}


def test_offsets_that_spark_gives_as_text_are_read_too() -> None:
    """As `lastProgress` of Spark 4 has them."""
    progress = {
        "batchId": 1,
        "sources": [{"endOffset": '{"a":{"0":4}}', "latestOffset": '{"a":{"0":9,"1":2}}'}],
    }
    assert ends_of(progress) == {("a", 0): 4}
    assert ends_of(None) == {}
