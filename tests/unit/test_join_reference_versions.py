"""Which version of a reference table a fold sees, and how users' tests switch it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import bettong
from bettong.application.plan import plan
from bettong.errors import ReferenceLostError
from bettong.frames.frame import reference_record
from bettong.identifiers import ReferenceVersion
from bettong.testing import (
    AppSession,
    CaseError,
    CheckError,
    DeadMessage,
    Reference,
    assert_alike,
    check,
    clock,
    run,
)
from bettong.v1.snapshot_pb2 import Snapshot
from bettong.worker.output.framing import OutputRecord
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.references.loaded import loaded_table
from bettong.worker.references.table import fingerprint_of
from bettong.worker.references.versions import ReferenceTables
from bettong.worker.stage_program import StageProgram, program
from tests.samples.reference_join import (
    Order,
    Price,
    Priced,
    app_of,
    priced_or_not,
    prices,
)
from tests.samples.worker import FRAME_BYTES_MAX, data, fold, results
from tests.simulation.crash_guards import guard


class Kept:
    def __init__(self) -> None:
        self.kept: dict[ReferenceVersion, bytes] = {}

    def load(self, version: ReferenceVersion) -> bytes | None:
        return self.kept.get(version)

    def versions(self, series: str) -> list[ReferenceVersion]:
        return sorted(each for each in self.kept if each.series == series)

    def add(self, ready: StageProgram, number: int, rows: list[Price]) -> ReferenceVersion:
        source = ready.stage.references["priced"]
        data = loaded_table(source, rows).encode()
        version = ReferenceVersion(source.series("priced"), number, fingerprint_of(data))
        self.kept[version] = data
        return version


def ready_program() -> StageProgram:
    (stage,) = plan(app_of("left")).stages
    return program(stage, compiled=False)


def worker_of(ready: StageProgram, store: Kept) -> PartitionWorker:
    return PartitionWorker(ready, Assignment("shop", 0, 1, FRAME_BYTES_MAX), ReferenceTables(store))


def order_of(number: int) -> bytes:
    return data("orders/one", number, [Order("a", "x", number)])


def cents(records: list[OutputRecord]) -> list[int]:
    return [each.cents for each in results(records, "shop.sink.out", Priced)]


def test_records_switch_versions_old_ones_and_others_do_not() -> None:
    ready, store = ready_program(), Kept()
    one, two, three = (store.add(ready, number, [Price("a", number)]) for number in (1, 2, 3))
    worker = worker_of(ready, store)
    stranger = two._replace(series="other")
    named = [reference_record("orders", 1, each) for each in (two, one, two, stranger, three, two)]
    found = [cents(fold(worker, [order_of(number), record])) for number, record in enumerate(named, 1)]
    assert [*found, cents(fold(worker, [order_of(7)]))] == [[1], [2], [2], [2], [2], [3], [3]]


def test_versions_of_tables_that_no_join_here_has_are_kept_for_who_goes_back_to_one_and_are_bounded() -> None:
    """A worker of an application without the join can fold the record that names the table."""
    ready, store = ready_program(), Kept()
    one, two = (store.add(ready, number, [Price("a", number)]) for number in (1, 2))
    others = [one._replace(series=f"other {number}") for number in range(100)]
    worker = worker_of(ready, store)
    fold(worker, [reference_record("orders", 1, each) for each in (*others, two)])
    stored = Snapshot.FromString(worker.snapshot()[8:]).references
    assert {each.series for each in stored} == {two.series, *(each.series for each in others[:65])}


def test_a_snapshot_says_at_which_version_the_fold_is() -> None:
    ready, store = ready_program(), Kept()
    _, two = (store.add(ready, number, [Price("a", number)]) for number in (1, 2))
    worker = worker_of(ready, store)
    fold(worker, [order_of(1)])
    assert not Snapshot.FromString(worker.snapshot()[8:]).references
    fold(worker, [reference_record("orders", 1, two)])
    saved = worker.snapshot()
    (stored,) = Snapshot.FromString(saved[8:]).references
    assert (stored.series, stored.number, stored.fingerprint) == two
    again = worker_of(ready, store)
    again.restore(saved)
    assert cents(fold(again, [order_of(2)])) == [2]
    assert again.snapshot() == worker_after(worker, order_of(2)).snapshot()


def worker_after(worker: PartitionWorker, *records: bytes) -> PartitionWorker:
    fold(worker, records)
    return worker


@dataclass
class At:
    sku: str
    at: int


def at_price(at: At, price: Price) -> Price:
    return Price(at.sku, price.cents)


def test_a_record_that_names_a_version_is_no_word_of_a_client_that_is_called_so() -> None:
    app = bettong.Application("shop")
    ats = app.source("ats", schema=At, key="sku", event_time="at")
    priced_ats = ats.join_reference(prices, at_price, key="sku", name="priced")
    tumbling = bettong.tumbling(timedelta(seconds=1))
    priced_ats.window(
        tumbling, bettong.aggregate(Price, cents=bettong.Sum("cents"), sku=bettong.Last("sku"))
    ).sink("out")
    (stage,) = plan(app).stages
    ready, store = program(stage, compiled=False), Kept()
    _, two = (store.add(ready, number, [Price("a", number)]) for number in (1, 2))
    worker = worker_of(ready, store)
    fold(worker, [data("ats/reference", 1, [At("a", 5)], ingest_ns=10), reference_record("ats", 20, two)])
    stored = Snapshot.FromString(worker.snapshot()[8:])
    assert [(each.origin, each.heard_ns) for each in stored.event_clock.origins] == [("ats/reference", 10)]
    assert stored.now_ns == 20


@dataclass
class Waiting:
    due_at: bettong.LogTimer = bettong.NEVER


def wait(order: Order, waiting: Waiting) -> None:
    waiting.due_at = 5


def reminder(fired: bettong.Fired[str], waiting: Waiting) -> Order:
    return Order(fired.key, "x", fired.at)


def test_what_is_due_in_the_record_that_names_a_version_meets_the_one_before() -> None:
    app = bettong.Application("shop")
    orders = app.source("orders", schema=Order, key="sku")
    due = orders.stateful(wait, state=Waiting, timers={"due_at": reminder})
    due.join_reference(prices, priced_or_not, key="sku", how="left", name="priced").sink("out")
    (stage,) = plan(app).stages
    ready, store = program(stage, compiled=False), Kept()
    _, two = (store.add(ready, number, [Price("a", number)]) for number in (1, 2))
    worker = worker_of(ready, store)
    assert cents(fold(worker, [order_of(1)])) == []
    assert cents(fold(worker, [reference_record("orders", 10, two)])) == [1]
    assert cents(fold(worker, [order_of(2)])) == [2]


def test_a_version_that_is_gone_stops_the_fold_before_anything_has_changed() -> None:
    ready, store = ready_program(), Kept()
    store.add(ready, 1, [Price("a", 1)])
    two = store.add(ready, 2, [Price("a", 2)])
    worker = worker_of(ready, store)
    worker.read_references()
    fold(worker, [order_of(1), reference_record("orders", 1, two)])
    before, kept = worker.snapshot(), store.kept.pop(two)
    with pytest.raises(ReferenceLostError, match=f"{two.series}: {two.name} is not in the store"):
        worker.read_references()
    assert (worker.next_offset, worker.snapshot()) == (2, before)
    store.kept[two] = kept
    assert cents(fold(worker, [order_of(2)])) == [2]


def test_a_store_that_has_lost_the_first_version_is_noticed_though_another_is_there() -> None:
    ready, store = ready_program(), Kept()
    first = store.add(ready, 1, [Price("a", 1)])
    log = [order_of(1), reference_record("orders", 1, first), order_of(2)]
    store.kept.clear()
    store.add(ready, 1, [Price("a", 7)])
    worker = worker_of(ready, store)
    with pytest.raises(ReferenceLostError, match=f"{first.name} is not in the store"):
        fold(worker, log)
    assert worker.next_offset == 3


def test_a_version_that_is_gone_is_no_message_that_kills(tmp_path: Path) -> None:
    ready, store = ready_program(), Kept()
    first = store.add(ready, 1, [Price("a", 1)])
    kept = store.kept.pop(first)
    fold_ = guard(tmp_path).of(worker_of(ready, store))
    with pytest.raises(ReferenceLostError, match="no version of it is stored"):
        fold_(0, order_of(1))
    again = guard(tmp_path)
    worker = worker_of(ready, store)
    assert again.read_deaths(worker, again.marks.of(worker.id)) is None
    store.kept[first] = kept
    assert cents(again.of(worker)(0, order_of(1))) == [1]


def test_a_worker_that_is_only_looked_at_needs_no_table() -> None:
    ready, store = ready_program(), Kept()
    two = store.add(ready, 2, [Price("a", 2)])
    saved = worker_after(worker_of(ready, store), reference_record("orders", 1, two)).snapshot()
    reader = PartitionWorker(ready, Assignment("shop", 0, 1, FRAME_BYTES_MAX))
    reader.restore(saved)
    assert reader.next_offset == 1
    with pytest.raises(ReferenceLostError, match="nothing is read here"):
        reader.read_references()


# What users' tests see.


def test_load_is_called_once_and_not_where_a_version_is_given() -> None:
    calls: list[int] = []

    def load() -> list[Price]:
        calls.append(1)
        return prices()

    app = app_of(load=load)
    session = AppSession(app)
    assert session.step(("orders", Order("a", "x", 1))) == {"out": [Priced(1, 10)]}
    session.step(Reference("priced", pa.table({"sku": ["a"], "cents": [11]})))
    assert session.step(("orders", Order("a", "x", 2)), clock(5)) == {"out": [Priced(2, 11)]}
    assert calls == [1]
    given = [Reference("priced", [Price("a", 5)]), clock(at=17), ("orders", Order("a", "x", 3))]
    assert run(app, given).outputs["out"] == [Priced(3, 5)]
    assert calls == [1]


def taking_spark(spark: Any) -> Any:
    return spark.table("prices")


def failing() -> Any:
    raise OSError("no such file")


@pytest.mark.parametrize(
    ("load", "inputs", "text"),
    [
        (failing, [], "join_reference 'priced': load\\(\\) failed: OSError: no such file"),
        (
            taking_spark,
            [],
            "load\\(\\) takes Spark's session, which tests do not have; give its table as the first",
        ),
        (prices, [Reference("prices", [])], "unknown join_reference 'prices'; the application has 'priced'"),
        (
            prices,
            [Reference("priced", [Price("a", 1)] * 2)],
            "join_reference 'priced': key 'sku': 'a' comes twice",
        ),
    ],
)
def test_a_case_that_cannot_be_says_why(load: Any, inputs: list[Any], text: str) -> None:
    with pytest.raises(CaseError, match=text):
        run(app_of(load=load), [*inputs, ("orders", Order("a", "x", 1))])


def test_a_case_that_differs_is_pasted_with_its_versions() -> None:
    calls: list[int] = []

    def by_chance(order: Order, price: Price) -> Priced:
        calls.append(price.cents)
        return Priced(order.number, price.cents + (price.cents == 7) * len(calls))

    app = bettong.Application("shop")
    orders = app.source("orders", schema=Order)
    orders.join_reference(prices, by_chance, key="sku", name="priced").sink("out")
    with pytest.raises(CheckError) as caught:
        check(app, [Reference("priced", [Price("a", 7)]), ("orders", Order("a", "x", 1))])
    assert "Reference('priced', [Price(sku='a', cents=7)])" in caught.value.test
    assert "import" in caught.value.test.partition("Reference")[0]


def test_outcomes_of_a_table_in_any_order_are_alike() -> None:
    case = [("orders", Order("b", "x", 1))]
    assert_alike(run(app_of(load=lambda: prices()[::-1]), case), run(app_of(), case))
    assert run(app_of(on="sku"), case).dead_letters == list[DeadMessage]()
