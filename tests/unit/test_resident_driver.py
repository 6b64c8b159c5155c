"""What ends a resident run, and how it stops. Spark, the assignor and Kafka are stand-ins."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
import structlog

from bettong_processor.resident import driver
from bettong_processor.resident.driver import Resident
from bettong_processor.resident.slots import group_of


class Context:
    """A SparkContext whose jobs run until their group is cancelled, or `ended`."""

    def __init__(self) -> None:
        self.running: dict[str, threading.Event] = {}
        self.cancelled: list[str] = []
        self._local = threading.local()

    def setJobGroup(self, group: str, *_: object, **__: object) -> None:  # noqa: N802 - Spark's name
        self._local.group = group

    def parallelize(self, *_: object) -> "Context":
        return self

    def mapPartitions(self, _: object) -> "Context":  # noqa: N802 - Spark's name
        return self

    def collect(self) -> None:
        assert self.running.setdefault(self._local.group, threading.Event()).wait(30)

    def cancelJobGroup(self, group: str) -> None:  # noqa: N802 - Spark's name
        self.cancelled.append(group)
        self.running.setdefault(group, threading.Event()).set()

    def cancelAllJobs(self) -> None:  # noqa: N802 - Spark's name
        for group in list(self.running):
            self.running[group].set()


class Assignor:
    """Whose updates are `update`."""

    def __init__(self, update: Callable[[], None]) -> None:
        self._update = update

    def update_assignment(self, _: int) -> None:
        self._update()

    def stop_slots(self) -> bool:
        return True


class Progress:
    at_rest = False

    def start(self) -> None: ...

    def stop(self) -> None: ...


def resident(context: Context, update: Callable[[], None] = lambda: None) -> Resident:
    spark: Any = context
    task: Any = None
    assignor: Any = Assignor(update)
    progress: Any = Progress()
    return Resident(spark, task, assignor, progress, structlog.get_logger())


def test_an_assignor_that_ends_by_what_nobody_foresaw_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def garbled() -> None:
        raise ValueError("invalid literal")

    monkeypatch.setattr(driver, "slots_of", lambda _: 1)
    monkeypatch.setattr(driver, "has_task", lambda *_: False)
    with pytest.raises(ValueError, match="invalid literal"):
        resident(Context(), garbled).ended(10)


def test_a_stop_cancels_what_waits_for_an_executor_before_it_waits_for_any_task(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Slot 0 has a task, which ends only once the job of slot 1 cannot get its executor any more.

    A job is cancelled at each look until it is gone: at the first it may not have begun.
    """
    context = Context()

    def has_task(_: object, slot: int) -> bool:
        return slot == 0

    def cancelled(group: str) -> None:
        Context.cancelJobGroup(context, group)
        context.running.setdefault(group_of(0), threading.Event()).set()

    monkeypatch.setattr(driver, "slots_of", lambda _: 2)
    monkeypatch.setattr(driver, "has_task", has_task)
    monkeypatch.setattr(context, "cancelJobGroup", cancelled)
    resident(context).stop(5)
    assert set(context.cancelled) == {group_of(1)}
