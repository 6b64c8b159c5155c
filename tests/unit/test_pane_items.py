"""Items of compiled windows in snapshots: about as large as their tables, and refused where they are damaged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pytest

import bettong
from bettong import Application, Width
from bettong.application.plan import plan
from bettong.application.windows.kinds import Ranges
from bettong.errors import SnapshotError
from bettong.frames.columns import Array
from bettong.worker.partition import PartitionWorker
from bettong.worker.stage_program import program
from bettong.worker.state.item_tables import DENSE
from bettong.worker.state.pane_items import are_items
from bettong.worker.state.pane_table import PaneTable
from tests.samples.timers import tick as tick_of
from tests.samples.worker import data, fold, results, worker

OUT = "meters.sink.out"


@dataclass
class Visit:
    key: int
    at: int
    number: int
    url: Annotated[str, Width(256)]


@dataclass
class Visits:
    key: int
    about: int
    few: int
    pages: int


def made(*, compiled: bool) -> PartitionWorker:
    app = Application("meters")
    aggregates = bettong.aggregate(
        Visits,
        about=bettong.ApproxDistinct("number"),
        few=bettong.ApproxDistinct("url"),
        pages=bettong.Distinct("url"),
    )
    source = app.source("in", schema=Visit, key="key", event_time="at")
    source.window(Ranges(40, 40, 0, 0), bettong.compiled(aggregates), name="visits").sink("out")
    return worker(program(plan(app).stages[0], compiled=compiled))


def table_of(one: PartitionWorker) -> PaneTable:
    table = one.tables["visits"]
    assert isinstance(table, PaneTable)
    return table


def visited(*, compiled: bool) -> PartitionWorker:
    one = made(compiled=compiled)
    for key in range(3):
        visits = [Visit(key, 5, number, f"page {number % 3}") for number in range(4000)]
        fold(one, [data("in/x", 1 + key, visits, watermark_ns=1)])
    return one


@pytest.fixture(scope="module")
def saved() -> PartitionWorker:
    return visited(compiled=True)


def test_a_snapshot_is_about_as_large_as_the_items_are(saved: PartitionWorker) -> None:
    python = len(visited(compiled=False).tables["visits"].dump().states)
    compiled = len(table_of(saved).dump().states)
    assert 3 * 4096 < python < 3 * 5000
    # Of each key: registers as they are, three registers that are words, three pages of 256 bytes.
    assert compiled < python + 3 * (3 * 16 + 3 * (8 + 256)) + 2000


def test_after_a_restart_items_are_the_same_and_others_join_them(saved: PartitionWorker) -> None:
    again = made(compiled=True)
    again.restore(saved.snapshot())
    assert table_of(again).dump().states == table_of(saved).dump().states
    python = visited(compiled=False)
    more = [Visit(key, 6, number, f"page {number % 5}") for key in range(3) for number in range(3000, 5000)]
    found = []
    for one in (python, again):
        fold(one, [data("in/x", 4, more, watermark_ns=2)])
        found.append(results(fold(one, [tick_of(10**7)]), OUT, Visits))
    assert found[0] == found[1]
    assert [each.pages for each in found[0]] == [5, 5, 5]


def changed(saved: list[Array], array: int, row: int, column: int, value: int) -> list[Array]:
    arrays = [each.copy() for each in saved]
    arrays[array][row, column] = value
    return arrays


def test_items_that_nobody_can_have_saved_are_refused(saved: PartitionWorker) -> None:
    pool = table_of(saved).panes
    items = pool.items_of(np.arange(3))
    # Counts, then of each kind its items, then bytes of those kinds that are of registers.
    assert [each.shape for each in items] == [(3, 3), (0, 2), (9, 2), (9, 33), (3, 512), (0, 512)]
    assert items[0].tolist() == [[DENSE, 3, 3]] * 3
    assert are_items(pool.kinds, items, 3)
    wrong = [
        changed(items, 0, 0, 0, 1),
        changed(items, 0, 0, 0, -2),
        changed(items, 0, 0, 1, 4),
        changed(items, 0, 0, 1, 2**62),
        changed(items, 0, 0, 2, DENSE),
        changed(items, 2, 0, 0, 0),
        changed(items, 2, 0, 0, 64),
        changed(items, 2, 0, 1, 4096),
        changed(items, 2, 0, 1, -1),
        changed(items, 3, 0, 0, 0),
        changed(items, 4, 1, 5, 64 << 8),
        changed(items, 4, 1, 5, -1),
        items[:-1],
        [*items[:3], items[3][:, 1:], *items[4:]],
        [*items[:3], items[3].astype(np.float64), *items[4:]],
        [*items[:4], items[4][1:], items[5]],
    ]
    for each in wrong:
        assert not are_items(pool.kinds, each, 3)
    assert not are_items(pool.kinds, items, 2)


def test_a_snapshot_with_items_of_no_aggregate_is_refused() -> None:
    one = visited(compiled=True)
    pool = table_of(one).panes
    items = pool.items_of(np.arange(3))
    pool.items_of = lambda panes: changed(items, 2, 0, 1, 4096)  # type: ignore[method-assign] # noqa: ARG005
    with pytest.raises(SnapshotError, match="items of no aggregate"):
        table_of(made(compiled=True)).load(table_of(one).dump(), log_ns=0, begins=True)
