"""Versions of reference tables that the store has lost: stored again if the table is the same; else the run ends.

A processor that loses the lead while it loads a table stores nothing, and starts no run.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import structlog
from pyspark.errors import PySparkException

from bettong.application.plan import plan
from bettong.edges.directory_versions import DirectoryVersions
from bettong.errors import ReferenceLoadError, ReferenceLostError, StoreUnavailableError
from bettong.identifiers import ReferenceVersion
from bettong.snapshots.references import ReferenceStore
from bettong.worker.references.loaded import loaded_table
from bettong.worker.references.versions import ReferenceTables
from bettong_processor.references.kept import KeptTable
from bettong_processor.references.lost import LostVersions
from bettong_processor.references.reloading import Reloading, store_first
from tests.samples.reference_join import Price, app_of

LOG = structlog.get_logger()
SOURCE = plan(app_of()).stages[0].references["priced"]
SERIES = SOURCE.series("priced")


class EndedRun:
    """A schedule that ended because a task failed."""

    name = "run"

    def __init__(self, error: str) -> None:
        self._error = error

    def waits_for(self) -> str:
        return ""

    def metrics(self) -> Mapping[str, str | float]:
        return {}

    def ended(self, wait_s: float) -> bool:  # noqa: ARG002 - as Run
        raise PySparkException(self._error)

    def leave(self) -> None: ...

    def stop(self, wait_s: float) -> None: ...


def table_of(cents: int) -> bytes:
    return loaded_table(SOURCE, [Price("a", cents)]).encode()


def kept(store: ReferenceStore, cents: int) -> KeptTable:
    nothing: Any = None
    return KeptTable(
        "priced", "orders", SOURCE, lambda: table_of(cents), store, nothing, lambda _: {0: 0}, LOG
    )


def names_nothing(_stage: str, _version: ReferenceVersion) -> dict[int, int]:
    return {0: 0}


def never() -> bool:
    return False


def store_lost(store: ReferenceStore, lost: LostVersions, cents: int) -> None:
    """The driver's next start, when `load` returns that table."""
    store_first([kept(store, cents)], lost, is_stopping=never, waiting=lambda _: None, poll_s=0.001)


@pytest.fixture
def store(tmp_path: Path) -> ReferenceStore:
    """It has had two versions of the table: of 1 cent, and of 2."""
    one = ReferenceStore(DirectoryVersions(tmp_path))
    for cents in (1, 2):
        table = kept(one, cents)
        table.name = names_nothing
        table.refresh(never)
    return one


def end_for(lost: LostVersions, store: ReferenceStore, version: ReferenceVersion) -> None:
    """A run ends because a worker reads the version: raises what the supervisor gets."""
    with pytest.raises(ReferenceLostError) as missed:
        ReferenceTables(store).table(SOURCE, version)
    text = f"Job aborted\nTraceback:\nbettong.errors.ReferenceLostError: {missed.value}\n\tat java"
    Reloading(EndedRun(text), [], lost, clock=lambda: 0.0, log=LOG).ended(0.1)


def noted(store: ReferenceStore, version: ReferenceVersion) -> LostVersions:
    """The store loses the version, and a run ends for that."""
    lost = LostVersions()
    store.remove(version)
    with pytest.raises(StoreUnavailableError):
        end_for(lost, store, version)
    return lost


def test_a_version_that_the_store_has_lost_is_stored_again_if_the_table_is_the_same(
    store: ReferenceStore,
) -> None:
    lost, (one, two) = LostVersions(), store.versions(SERIES)
    store.remove(two)
    with pytest.raises(StoreUnavailableError, match=f"{two.name} is not in the store.*stored again if it is"):
        end_for(lost, store, two)
    store_lost(store, lost, cents=2)
    assert (store.versions(SERIES), store.load(two)) == ([one, two], table_of(2))
    assert lost.of(SERIES) is None


def test_it_keeps_its_number_though_the_store_has_lost_those_before(store: ReferenceStore) -> None:
    (one, two) = store.versions(SERIES)
    store.remove(one)
    lost = noted(store, two)
    store_lost(store, lost, cents=2)
    assert store.versions(SERIES) == [two]


def test_another_table_does_not_take_the_place_of_a_lost_version(store: ReferenceStore) -> None:
    (one, two) = store.versions(SERIES)
    lost = noted(store, two)
    with pytest.raises(
        ReferenceLostError, match=f"{two.name} is not in the store, and .* another table now: bring"
    ):
        store_lost(store, lost, cents=3)
    assert store.versions(SERIES) == [one]


def test_a_version_that_is_there_again_needs_no_load(store: ReferenceStore) -> None:
    """Another processor has stored it, or the replica caught up."""
    (one, two) = store.versions(SERIES)
    lost = noted(store, two)
    store.save(two, table_of(2))
    store_lost(store, lost, cents=3)
    assert store.versions(SERIES) == [one, two]


def test_a_store_that_loses_a_version_twice_ends_the_processor(store: ReferenceStore) -> None:
    (_, two) = store.versions(SERIES)
    lost = noted(store, two)
    store_lost(store, lost, cents=2)
    store.remove(two)
    with pytest.raises(PySparkException, match=f"{two.name} is not in the store"):
        end_for(lost, store, two)


@pytest.mark.parametrize("leads_again", [False, True])
def test_a_lead_lost_while_a_table_is_loaded_starts_no_run(
    store: ReferenceStore, tmp_path: Path, *, leads_again: bool
) -> None:
    """It is noticed after the load only, for the next poll would come later; maybe the processor leads again then."""
    (one, two) = store.versions(SERIES)
    lost = noted(store, two)
    empty = ReferenceStore(DirectoryVersions(tmp_path / "empty"))
    for stored, missing in ((store, lost), (empty, LostVersions())):
        answers = iter([True])
        with pytest.raises(ReferenceLoadError, match="or lost the lead"):
            store_first(
                [kept(stored, 2)],
                missing,
                is_stopping=lambda answers=answers: next(answers, not leads_again),  # type: ignore[misc]
                waiting=lambda _: None,
                poll_s=30,
            )
    assert (store.versions(SERIES), empty.versions(SERIES), lost.of(SERIES)) == ([one], [], two)


def test_other_errors_of_a_run_stay_what_they_are() -> None:
    lost = LostVersions()
    with pytest.raises(PySparkException, match="PoisonError: this"):
        Reloading(EndedRun("bettong.errors.PoisonError: this"), [], lost, clock=lambda: 0.0, log=LOG).ended(
            0.1
        )
    assert lost.of(SERIES) is None
