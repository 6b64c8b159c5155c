"""`bettong.testing.case_from`: versions of reference tables, and the ends of clients' streams, are in the case."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import bettong
from bettong.application.plan import plan
from bettong.inspection.live.source_logs import source_stages, with_joins
from bettong.testing import (
    AppSession,
    CaseError,
    LoggedRecord,
    Outcome,
    Reference,
    assert_alike,
    case_from,
    check,
    clock,
    end_stream,
    frame,
    read_log,
    run,
    write_log,
)
from bettong.testing.inputs import EndOfStream
from bettong.testing.logged import Span, is_needed, with_tables
from bettong.testing.memory_references import MemoryReferences
from bettong.testing.pasted_test import case_test
from bettong.topics import stage_topic
from tests.samples.clicks import Click, Hour, counting_app, hours_app
from tests.samples.reference_join import Order, Price, Priced, app_of, priced

PARTITIONS = 3
HOUR_NS, S_NS = 3600 * 10**9, 10**9
BEGIN_NS = 1_795_485_600 * S_NS
ALWAYS: Span = (None, None)
DEAR, DEARER, FREE = [Price("a", 11)], [Price("a", 12), Price("b", 21)], [Price("a", 0)]
MS = clock(10**6)
ORDERS: list[Any] = [
    Reference("priced", DEAR),
    clock(at=BEGIN_NS),
    frame("orders", Order("a", "x", 1), Order("b", "y", 2)),
    clock(S_NS),
    Reference("priced", DEARER),
    MS,
    frame("orders", Order("a", "x", 3), Order("b", "y", 4)),
    clock(S_NS),
    Reference("priced", FREE),
    Reference("priced", DEAR),
    MS,
    ("orders", Order("a", "x", 5)),
]


def at(second: int) -> datetime:
    return datetime.fromtimestamp(BEGIN_NS // S_NS, UTC) + timedelta(seconds=second)


class Recording:
    """An application that ran, and what Kafka and the store of tables would hold of it."""

    def __init__(self, app: bettong.Application, inputs: Sequence[Any]) -> None:
        self.app = app
        self.plan = plan(app)
        session = AppSession(app, partitions=PARTITIONS)
        session.step(*inputs)
        self.outcome: Outcome = session.finish()
        self.tables: MemoryReferences = session._references
        self.records = [
            LoggedRecord(stage_topic(self.plan.application, id_.stage), id_.partition, offset, value)
            for id_, partition in session._processor.partitions.items()
            for offset, value in enumerate(partition._log)
        ]

    def log(self, span: Span = ALWAYS) -> list[LoggedRecord]:
        """As `bettong log` writes it."""
        found = with_tables(self.plan, self.records, span, self.tables)
        lines = write_log(each for each in found if is_needed(each, span))
        path = self.folder / "log.jsonl"
        path.write_text("".join(lines))
        return read_log(path)

    folder: Path


@pytest.fixture
def recording(tmp_path: Path) -> Any:
    def recorded(app: bettong.Application, inputs: Sequence[Any]) -> Recording:
        found = Recording(app, inputs)
        found.folder = tmp_path
        return found

    return recorded


def behind_another_key() -> bettong.Application:
    app = bettong.Application("shop-by-sku")
    orders = app.source("orders", schema=Order, key="account").map(same).key_by("sku")
    orders.join_reference(lambda: DEAR, priced, key="sku", name="priced").sink("out")
    return app


def same(order: Order) -> Order:
    return order


behind_another_key_app = behind_another_key()
orders_app = app_of()


@pytest.mark.parametrize("app", [orders_app, behind_another_key_app], ids=lambda app: app.name)
def test_a_case_holds_the_versions_that_messages_saw(app: bettong.Application, recording: Any) -> None:
    recorded = recording(app, ORDERS)
    assert sorted(each.cents for each in recorded.outcome.outputs["out"]) == [11, 11, 12, 21]
    case = case_from(app, recorded.log())
    assert_alike(run(app, case, partitions=PARTITIONS), recorded.outcome)
    assert [step.table for step in case if isinstance(step, Reference)] == [DEAR, DEARER, FREE, DEAR]
    check(app, case)


def test_a_span_begins_with_the_version_that_was_seen_then(recording: Any) -> None:
    recorded = recording(orders_app, ORDERS)
    span = (at(1), at(2))
    for log in (recorded.log(span), recorded.log()):
        case = case_from(orders_app, log, span=span)
        assert [step.table for step in case if isinstance(step, Reference)] == [DEARER]
        found = run(orders_app, case).outputs["out"]
        assert sorted(found, key=lambda each: each.number) == [Priced(3, 12), Priced(4, 21)]
    named = {each.offset for each in recorded.log((at(2), None)) if "/" in each.topic}
    assert named == {2, 3, 4}, "the one that is in force, and those that come"


def test_one_key_sees_its_versions(recording: Any) -> None:
    case = case_from(orders_app, recording(orders_app, ORDERS).log(), key="y")
    assert run(orders_app, case).outputs["out"] == [Priced(4, 21)]


def test_a_test_of_it_holds_the_rows(recording: Any) -> None:
    text = case_test(orders_app, case_from(orders_app, recording(orders_app, ORDERS).log(), key="y"))
    assert "Reference('priced', [Price(sku='a', cents=11)])" in text
    compile(text, "test_pasted.py", "exec")


def test_a_log_without_its_tables_says_what_is_missing(recording: Any) -> None:
    recorded = recording(orders_app, ORDERS)
    with pytest.raises(CaseError, match=r"no table of join_reference 'priced'; `bettong log` writes it, too"):
        case_from(orders_app, recorded.records)
    second = [each for each in recorded.log() if not ("/" in each.topic and each.offset == 2)]
    with pytest.raises(CaseError, match="no version 2 of the table of join_reference 'priced'"):
        case_from(orders_app, second)
    spoilt = [
        LoggedRecord(each.topic, each.partition, each.offset, b"BTR1" + each.value[4:-8])
        if "/" in each.topic
        else each
        for each in recorded.log()
    ]
    with pytest.raises(CaseError, match="'priced'"):
        case_from(orders_app, spoilt)


def test_records_that_name_a_version_again_change_nothing(recording: Any) -> None:
    recorded = recording(orders_app, ORDERS)
    again = [
        LoggedRecord(each.topic, each.partition, each.offset + 100, each.value) for each in recorded.log()
    ]
    kept = [each for each in again if "/" not in each.topic]
    assert case_from(orders_app, [*recorded.log(), *kept]) == case_from(orders_app, recorded.log())


def test_logs_are_read_of_sources_and_of_stages_that_join_with_tables() -> None:
    planned = plan(behind_another_key_app)
    assert [stage.name for stage in source_stages(planned)] == ["orders"]
    assert with_joins(planned, source_stages(planned)) == list(planned.stages)
    (only,) = plan(counting_app).stages
    assert with_joins(plan(counting_app), [only]) == [only]


SLOW = frame("clicks", Click("a", "p", 5), client="slow")
FAST = frame("clicks", Click("b", "p", 3 * HOUR_NS), client="fast")
LATE = frame("clicks", Click("c", "p", 6), client="fast")


@pytest.mark.parametrize("finishes", [True, False])
def test_a_client_that_had_finished_does_so_in_the_case(finishes: bool, recording: Any) -> None:  # noqa: FBT001
    end = [clock(S_NS), end_stream(client="slow")] if finishes else []
    recorded = recording(hours_app, [clock(at=BEGIN_NS), SLOW, FAST, *end, clock(S_NS), LATE])
    case = case_from(hours_app, recorded.log())
    assert [step for step in case if isinstance(step, EndOfStream)] == [
        EndOfStream("clicks", "slow")
    ] * finishes
    outcome = run(hours_app, case)
    assert_alike(outcome, recorded.outcome)
    assert outcome.outputs["hours"] == ([Hour("p", 0, 1)] if finishes else [])
    check(hours_app, case)


def test_an_end_of_a_client_that_is_not_in_the_case_is_left_out(recording: Any) -> None:
    recorded = recording(hours_app, [SLOW, frame("clicks", Click("b", "q", 7), client="fast"), end_stream()])
    case = case_from(hours_app, recorded.log(), key="q")
    assert [step for step in case if isinstance(step, EndOfStream)] == [EndOfStream("clicks", "fast")]


def test_ends_are_left_out_where_nothing_goes_by_event_time(recording: Any) -> None:
    case = case_from(counting_app, recording(counting_app, [SLOW, end_stream()]).log())
    assert [step for step in case if isinstance(step, EndOfStream)] == []
