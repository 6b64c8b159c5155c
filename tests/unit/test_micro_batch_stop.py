"""A clean stop of the query: what its last batch has led to is saved."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn, cast

import pytest
import structlog
from py4j.protocol import Py4JNetworkError
from pyspark.sql.streaming.query import StreamingQuery

from bettong_processor.micro_batch.query import MicroBatch
from bettong_processor.micro_batch.ticking import Ticking
from bettong_processor.micro_batch.unsaved import Unsaved
from bettong_processor.progress import Progress

PROGRESS = {"batchId": 7, "sources": [{"endOffset": {"a.stage.s": {"0": 12, "1": 0}}}]}


@dataclass
class Query:
    """What is used of Spark's StreamingQuery, whose last batch ends while it is waited for."""

    last: Mapping[str, Any] | None
    active: list[bool] = field(default_factory=lambda: [True, True, False])
    stopped: bool = False

    @property
    def lastProgress(self) -> Mapping[str, Any] | None:  # noqa: N802 - Spark's name
        return self.last if self.stopped else None

    @property
    def status(self) -> dict[str, bool]:
        return {"isTriggerActive": self.active.pop(0)}

    def stop(self) -> None:
        self.stopped = True


class Quiet:
    """Progress that nobody looks at, TICKs that nobody needs."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


@pytest.mark.parametrize(
    ("last", "saved"), [(PROGRESS, [{("a.stage.s", 0): 12, ("a.stage.s", 1): 0}]), (None, [])]
)
def test_a_stop_saves_what_the_last_batch_led_to(last: Mapping[str, Any] | None, saved: list[Any]) -> None:
    found: list[Any] = []
    query = Query(last)

    def save(ends: Any) -> Any:
        found.append(ends)
        return ends

    progress, ticking = cast("Progress", Quiet()), cast("Ticking", Quiet())
    spark, unsaved = cast("StreamingQuery", query), Unsaved(60.0, {})
    MicroBatch(spark, progress, ticking, unsaved, save, structlog.get_logger()).stop(10)
    assert query.stopped
    assert query.active == []
    assert found == saved


class Busy(Query):
    """Never at rest: while messages come one batch follows the other."""

    batch = 0

    @property
    def lastProgress(self) -> Mapping[str, Any] | None:  # noqa: N802 - Spark's name
        self.batch += 1
        return {"batchId": self.batch // 3}

    @property
    def status(self) -> dict[str, bool]:
        return {"isTriggerActive": True}


def test_a_stop_waits_for_the_batch_at_work_and_not_for_those_behind_it() -> None:
    query = Busy(None)
    progress, ticking = cast("Progress", Quiet()), cast("Ticking", Quiet())
    spark, unsaved = cast("StreamingQuery", query), Unsaved(60.0, {})
    MicroBatch(spark, progress, ticking, unsaved, lambda ends: ends, structlog.get_logger()).stop(10)
    assert query.stopped
    assert query.batch < 10


class Active(Query):
    """Runs on, although a call to Java has failed."""

    isActive = True  # noqa: N815 - Spark's name


class Unreachable(Query):
    """Java does not answer."""

    @property
    def isActive(self) -> NoReturn:  # noqa: N802 - Spark's name
        raise Py4JNetworkError("Java does not answer")


@pytest.mark.parametrize(("kind", "stopped"), [(Active, True), (Unreachable, False)])
def test_a_query_that_still_runs_is_stopped_when_the_run_is_left(kind: type[Query], *, stopped: bool) -> None:
    """Else Spark refuses the next one, which has the same name."""
    query = kind(None)
    progress, ticking = cast("Progress", Quiet()), cast("Ticking", Quiet())
    spark, unsaved = cast("StreamingQuery", query), Unsaved(60.0, {})
    MicroBatch(spark, progress, ticking, unsaved, lambda ends: ends, structlog.get_logger()).leave()
    assert query.stopped == stopped
