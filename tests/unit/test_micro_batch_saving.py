"""What the driver has saved of partitions that rest."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
import structlog

from bettong import metrics
from bettong.config.processor import ProcessorSettings
from bettong.edges.directory_snapshots import DirectorySnapshots
from bettong.errors import StoreUnavailableError
from bettong.identifiers import PartitionId
from bettong.snapshots.chain import Increment
from bettong_processor.micro_batch import saving
from bettong_processor.micro_batch.uploads import Stores, Uploads

PARTITION = PartitionId("s", 0)


class Away(DirectorySnapshots):
    """A store that takes nothing for a while."""

    is_away = True

    def save(self, partition: PartitionId, increment: Increment, data: bytes) -> None:
        if self.is_away:
            raise StoreUnavailableError("the bucket does not answer")
        super().save(partition, increment, data)


def test_a_partition_that_rests_is_no_longer_said_to_be_unsaved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    durable, local = Away(tmp_path / "durable"), DirectorySnapshots(tmp_path / "local")
    local.save(PARTITION, Increment(5, 0, 5), b"state")
    uploads = Uploads(Stores(local, durable), interval_s=0, clock=lambda: 0.0, log=structlog.get_logger())
    record: dict[str, Any] = {metrics.SNAPSHOT_FAULT.name: "the bucket does not answer"}
    process = SimpleNamespace(
        uploads=uploads, metrics=SimpleNamespace(write=lambda _, values: record.update(values))
    )
    monkeypatch.setattr(saving, "process_of", lambda *_: process)
    save = saving.Save(cast("ProcessorSettings", None), "log", ((PARTITION, 5),))
    assert [each.num_rows for each in save(numbers())] == [0]
    assert uploads.fault(PARTITION) == "the bucket does not answer"
    durable.is_away = False
    assert [each.num_rows for each in save(numbers())] == [1]
    assert record[metrics.SNAPSHOT_FAULT.name] == ""
    assert record[metrics.SNAPSHOT_OFFSET.name] == 5


def test_an_older_state_of_another_machine_is_no_news(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its task runs behind that of the machine that has folded last."""
    durable = DirectorySnapshots(tmp_path / "durable")
    record: dict[str, Any] = {}
    for machine, offset in (("that folded last", 9), ("that folded before", 5)):
        local = DirectorySnapshots(tmp_path / machine)
        local.save(PARTITION, Increment(offset, 0, offset), b"state")
        uploads = Uploads(Stores(local, durable), interval_s=0, clock=lambda: 0.0, log=structlog.get_logger())
        process = SimpleNamespace(
            uploads=uploads, metrics=SimpleNamespace(write=lambda _, values: record.update(values))
        )
        monkeypatch.setattr(saving, "process_of", lambda *_, process=process: process)
        list(saving.Save(cast("ProcessorSettings", None), "log", ((PARTITION, 9),))(numbers()))
        assert record[metrics.SNAPSHOT_OFFSET.name] == 9
        reported = uploads.saved(PARTITION)
        assert (reported is None) == (offset == 5), "its next batch would report it"


def numbers() -> Any:
    """Of one task."""
    return iter([pa.RecordBatch.from_pydict({"id": [0]})])
