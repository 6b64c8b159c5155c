"""A task of the micro-batch schedule, without Spark: what it makes of the batches that it is given."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pyarrow as pa
import pytest

from bettong.config.processor import ProcessorSettings
from bettong.config.reading import read
from bettong.identifiers import PartitionId
from bettong.snapshots.chain import Increment
from bettong.snapshots.store import SnapshotStore
from bettong_processor import interrupts
from bettong_processor.micro_batch import task


def test_a_batch_without_records_leads_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[tuple[int, int]] = []
    process = SimpleNamespace(begin_task=lambda *what: begun.append(what))
    monkeypatch.setattr(task, "process_of", lambda *_: process)
    monkeypatch.setattr(task, "task_attempt", lambda: 3)
    monkeypatch.setattr(interrupts, "ignore", lambda: None)  # this process is none of Spark's
    names = ["topic", "partition", "offset", "value", "times", "traceparent"]
    kinds = [pa.string(), pa.int32(), pa.int64(), pa.binary(), pa.binary(), pa.binary()]
    empty = pa.RecordBatch.from_arrays([pa.array([], kind) for kind in kinds], names=names)
    assert list(task.Step(cast("Any", None), "log", 7)(iter([empty, empty]))) == []
    assert begun == [(7, 3)]


def test_a_process_shares_states_with_others_over_the_same_log_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = read(ProcessorSettings, {"application": "app.py", "state_dir": tmp_path})
    parts = Mock()
    parts.restoring.application = "shop"
    monkeypatch.setattr(task, "resources_of", lambda _: parts)
    partition, increment = PartitionId("a", 0), Increment(5100, 0, 5100)

    def local(log: str) -> SnapshotStore:
        return task.process_of.__wrapped__(settings, log).partitions._stores.local

    local("0" * 12).save(partition, increment, b"state")
    assert local("0" * 12).increments(partition) == [increment]
    assert local("1" * 12).increments(partition) == []
