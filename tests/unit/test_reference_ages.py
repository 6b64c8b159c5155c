"""The ages of reference tables, in the metrics of the processor, and their faults in `bettong status`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import structlog

from bettong import metrics
from bettong.application.plan import plan
from bettong.cli.status_texts import summary
from bettong.edges.directory_versions import DirectoryVersions
from bettong.errors import ReferenceLoadError
from bettong.inspection.deployment import DeploymentAnswers, inspection
from bettong.services import PROCESSOR
from bettong.snapshots.references import ReferenceStore
from bettong_processor.references.kept import KeptTable
from bettong_processor.references.lost import LostVersions
from bettong_processor.references.reloading import Reloading
from tests.samples.reference_join import app_of
from tests.waiting import eventually

AGE = f"{metrics.REFERENCE_AGE.name}/priced"


class Run:
    """A schedule that does nothing."""

    name = "run"

    def waits_for(self) -> str:
        return "nobody"

    def metrics(self) -> Mapping[str, str | float]:
        return {}

    def ended(self, wait_s: float) -> bool:  # noqa: ARG002 - as Run
        return False

    def leave(self) -> None: ...

    def stop(self, wait_s: float) -> None: ...


@dataclass(slots=True)
class SteppedTable(KeptTable):
    """A table whose next load ends when a test says so, well or not."""

    answers: list[bool] = field(default_factory=list)
    asked: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    answered: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def refresh(self, is_stopping: Callable[[], bool]) -> None:
        self.asked.release()
        assert self.answered.acquire(timeout=30)
        if not is_stopping() and not self.answers.pop(0):
            raise ReferenceLoadError("load() failed")

    def answer(self, *, well: bool) -> None:
        """Ends the running load, and waits for the next one to begin."""
        self.answers.append(well)
        self.answered.release()
        assert self.asked.acquire(timeout=30)


def stepped(tmp_path: Path, every_ns: int | None) -> SteppedTable:
    (stage,) = plan(app_of()).stages
    source = replace(stage.references["priced"], reload_every_ns=every_ns)
    nothing: Any = None
    store = ReferenceStore(DirectoryVersions(tmp_path))
    return SteppedTable("priced", "orders", source, nothing, store, nothing, nothing, nothing)


def test_the_age_of_a_table_counts_from_the_last_load_that_went_well(tmp_path: Path) -> None:
    table, now_s = stepped(tmp_path, every_ns=1_000_000), [100.0]
    reloading = Reloading(Run(), [table], LostVersions(), clock=lambda: now_s[0], log=structlog.get_logger())
    assert table.asked.acquire(timeout=30)
    now_s[0] = 130.0
    assert reloading.metrics()[AGE] == 30.0, "since the run began"
    table.answer(well=True)
    now_s[0] = 150.0
    assert reloading.metrics()[AGE] == 20.0
    table.answer(well=False)
    now_s[0] = 190.0
    assert reloading.metrics()[AGE] == 60.0
    table.answer(well=True)
    assert reloading.metrics()[AGE] == 0.0
    reloading.stop(0.0)
    table.answered.release()


def test_a_table_that_stays_as_it_is_has_an_age_only_while_it_cannot_be_loaded(tmp_path: Path) -> None:
    table, now_s = stepped(tmp_path, every_ns=None), [100.0]
    table.answers.append(True)
    reloading = Reloading(Run(), [table], LostVersions(), clock=lambda: now_s[0], log=structlog.get_logger())
    assert table.asked.acquire(timeout=30)
    assert AGE not in reloading.metrics()
    table.answered.release()
    eventually(
        lambda: not [each for each in threading.enumerate() if each.name == "table priced"], seconds=30
    )
    assert AGE not in reloading.metrics()

    failing = stepped(tmp_path, every_ns=None)
    failing.answers.append(False)
    reloading = Reloading(
        Run(), [failing], LostVersions(), clock=lambda: now_s[0], log=structlog.get_logger()
    )
    failing.answered.release()
    eventually(lambda: bool(reloading.faults()), seconds=30)
    now_s[0] = 107.0
    assert reloading.metrics()[AGE] == 7.0
    reloading.stop(0.0)
    failing.answered.release()


def test_prometheus_gets_it_by_join() -> None:
    (series,) = [each for each in metrics.SERIES if each.metric is metrics.REFERENCE_AGE]
    assert (series.name, series.labels) == ("bettong_processor_reference_age_seconds", ("join",))


def test_status_says_which_tables_are_as_they_were() -> None:
    record = {
        metrics.SERVICE.name: PROCESSOR.name,
        metrics.STATE.name: "running",
        metrics.REFERENCES.name: "priced: why [b]",
    }
    found = inspection("shop", [], DeploymentAnswers(live={"one": record}))
    lines = [line for line in summary(found.overview) if "reference" in line]
    assert lines == [r"[red]reference tables are out of date[/red]: priced: why \[b]"]
    quiet = inspection("shop", [], DeploymentAnswers(live={"one": record | {metrics.REFERENCES.name: ""}}))
    assert not [line for line in summary(quiet.overview) if "reference" in line]
