"""A task of the micro-batch schedule, without Spark: what it makes of the batches that it is given."""

from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from bettong_processor import interrupts
from bettong_processor.micro_batch import task


def test_a_batch_without_records_leads_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[tuple[int, int]] = []
    process = SimpleNamespace(begin_task=lambda *what: begun.append(what))
    monkeypatch.setattr(task, "process_of", lambda _: process)
    monkeypatch.setattr(task, "task_attempt", lambda: 3)
    monkeypatch.setattr(interrupts, "ignore", lambda: None)  # this process is none of Spark's
    names = ["topic", "partition", "offset", "value", "times", "traceparent"]
    kinds = [pa.string(), pa.int32(), pa.int64(), pa.binary(), pa.binary(), pa.binary()]
    empty = pa.RecordBatch.from_arrays([pa.array([], kind) for kind in kinds], names=names)
    assert list(task.Step(cast("Any", None), 7)(iter([empty, empty]))) == []
    assert begun == [(7, 3)]
