"""A store of reference tables that does not answer for a while: the worker waits for it, and has lost nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from bettong.application.plan import plan
from bettong.errors import ReferenceLostError, StoreError, StoreUnavailableError
from bettong.identifiers import ReferenceVersion
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.references.loaded import loaded_table
from bettong.worker.references.table import fingerprint_of
from bettong.worker.references.versions import ReferenceTables
from bettong.worker.stage_program import program
from tests.samples.reference_join import Order, Price, Priced, app_of
from tests.samples.worker import FRAME_BYTES_MAX, data, results
from tests.simulation.crash_guards import guard

STAGE = plan(app_of("left")).stages[0]
ORDER = data("orders/one", 1, [Order("a", "x", 1)])


class FailingStore:
    """Fails so many times before it answers. `data`: None for a version that is lost."""

    def __init__(self, failures: int, error: StoreError | None = None) -> None:
        source = STAGE.references["priced"]
        self.data: bytes | None = loaded_table(source, [Price("a", 5)]).encode()
        self.version = ReferenceVersion(source.series("priced"), 1, fingerprint_of(self.data))
        self.failures, self.calls = failures, 0
        self._error = error or StoreUnavailableError("Redis does not answer")

    def versions(self, series: str) -> list[ReferenceVersion]:
        assert series == self.version.series
        return [self.version]

    def load(self, version: ReferenceVersion) -> bytes | None:
        assert version == self.version
        self.calls += 1
        if self.calls <= self.failures:
            raise self._error
        return self.data


def worker_of(store: FailingStore) -> PartitionWorker:
    return PartitionWorker(
        program(STAGE, compiled=False), Assignment("shop", 0, 1, FRAME_BYTES_MAX), ReferenceTables(store)
    )


@pytest.mark.parametrize("error", [None, StoreError("Redis is a replica")])
def test_a_fold_waits_for_its_table_while_the_store_is_away(tmp_path: Path, error: StoreError | None) -> None:
    store = FailingStore(3, error)
    records = guard(tmp_path).of(worker_of(store))(0, ORDER)
    assert [each.cents for each in results(records, "shop.sink.out", Priced)] == [5]
    assert store.calls == 4


def test_it_does_not_wait_for_ever_and_the_worker_can_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bettong_processor.references.reading._STORE_S_MAX", 0.2)
    store = FailingStore(1_000_000)
    worker = worker_of(store)
    fold = guard(tmp_path).of(worker)
    with pytest.raises(StoreUnavailableError, match="Redis does not answer"):
        fold(0, ORDER)
    assert store.calls > 1
    assert worker.next_offset == 0
    store.failures = 0
    assert [each.cents for each in results(fold(0, ORDER), "shop.sink.out", Priced)] == [5]


def test_nobody_waits_for_a_version_that_is_lost(tmp_path: Path) -> None:
    store = FailingStore(0)
    store.data = None
    fold = guard(tmp_path).of(worker_of(store))
    with pytest.raises(ReferenceLostError, match="is not in the store"):
        fold(0, ORDER)
    assert store.calls == 1


def test_nobody_waits_for_the_table_of_a_partition_that_another_task_has(tmp_path: Path) -> None:
    store = FailingStore(1_000_000)
    fold = guard(tmp_path).of(worker_of(store), lambda: False)
    with pytest.raises(StoreUnavailableError):
        fold(0, ORDER)
    assert store.calls == 1
