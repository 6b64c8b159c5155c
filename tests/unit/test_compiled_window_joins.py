"""Compiled joins of windows: what is beyond a bound or left out, what memory they keep, which states are refused."""

from __future__ import annotations

import numpy as np
import pytest

from bettong.errors import SnapshotError
from bettong.frames.columns import Array
from bettong.worker import firing_bounds
from bettong.worker.exclusions import ExcludedTimer, Exclusion
from bettong.worker.joins import window_columns
from bettong.worker.partition import PartitionWorker
from bettong.worker.state.item_tables import DENSE
from bettong.worker.state.pane_items import are_items
from bettong.worker.state.pane_pool import NEWEST, OLDEST
from bettong.worker.state.pane_table import PaneTable
from tests.samples.compiled_joins import (
    OUT,
    WINDOWS,
    Join,
    Talk,
    call,
    described_shortly,
    ready,
    same,
)
from tests.samples.gathering_windows import words_in_use
from tests.samples.timers import tick as tick_of
from tests.samples.worker import data, dead_letters, fold, results, worker

FAR_NS = 10**6
TUMBLING, DELAYED, SLIDING, _, _, SESSIONS, OUTER_SESSIONS, _ = WINDOWS


def both(join: Join) -> tuple[PartitionWorker, PartitionWorker]:
    return worker(ready(join, compiled=False)), worker(ready(join, compiled=True))


def panes_of(one: PartitionWorker) -> PaneTable:
    table = one.tables["talks"]
    assert isinstance(table, PaneTable)
    return table


@pytest.mark.parametrize("timer", [b"", b'{"key":"l1","timer":"due","at":130}'])
@pytest.mark.parametrize("join", [DELAYED, SLIDING, OUTER_SESSIONS], ids=described_shortly)
def test_windows_beyond_the_bound_of_a_record_or_left_out_are_dead_letters(
    join: Join, timer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their contents are dropped, in both execution modes."""
    monkeypatch.setattr(firing_bounds, "FIRINGS_MAX", 8)
    pair = both(join)
    own = timer.replace(b"130", {DELAYED: b"130", SLIDING: b"143", OUTER_SESSIONS: b"140"}[join])
    for one in pair:
        left_out = ExcludedTimer("talks", own, "talks", "killed the worker")
        one.exclusions = {1: Exclusion(1, timers=(left_out,), is_logged=True)} if timer else {}
    messages = [
        call(line, 40 * each, 10 * line + each, answers=answers)
        for line, count in ((1, 20), (2, 3), (3, 9))
        for each in range(count)
        for answers in (False, True)
    ]
    same(*pair, data("in/x", 1, messages, watermark_ns=0))
    reasons = [each.reason for each in dead_letters(same(*pair, tick_of(FAR_NS)))]
    assert sum("fired 8 times" in each for each in reasons) >= 13
    assert sum("killed" in each for each in reasons) == bool(timer)
    assert pair[1].keys == 0
    assert words_in_use(panes_of(pair[1])) == 0


@pytest.mark.parametrize("join", [TUMBLING, SLIDING, OUTER_SESSIONS], ids=described_shortly)
def test_pairs_come_in_parts_and_their_room_is_used_again(
    join: Join, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A window with a hundred messages, and keys with messages of one side only."""
    monkeypatch.setattr(window_columns, "_PAIRS_MAX", 7)
    pair, used, found = both(join), set[int](), 0
    for number in range(1, 9):
        messages = [
            call(each % 3, 40 * number + each % 9, 100 * number + each, answers=each % 3 > 0 and each % 7 < 4)
            for each in range(60 if number % 2 else 5)
        ]
        records = same(*pair, data("in/x", number, messages, watermark_ns=40 * number))
        used.add(int(panes_of(pair[1]).panes.items.arrays.used[0]))
        found += len(results(records, OUT, Talk))
    found += len(results(same(*pair, tick_of(FAR_NS)), OUT, Talk))
    assert found > 100
    assert len(used) <= 4
    assert words_in_use(panes_of(pair[1])) == 0


def test_a_session_of_two_has_the_messages_of_the_older_one_first() -> None:
    pair = both(Join(SESSIONS.kind))
    times = [(30, 3), (31, 4), (10, 1), (11, 2), (20, 5), (21, 6)]
    messages = [call(1, at_ns, number, answers=number % 2 == 0) for at_ns, number in times]
    for number, each in enumerate(messages, 1):
        assert not results(same(*pair, data("in/x", number, [each], watermark_ns=1)), OUT, Talk)
    found = results(same(*pair, tick_of(FAR_NS)), OUT, Talk)
    assert [(each.call, each.reply) for each in found] == sorted(
        ((each.call, each.reply) for each in found), key=lambda pair: ([1, 5, 3].index(pair[0]), pair[1])
    )
    assert len(found) > 5


def test_a_session_that_has_grown_does_not_fire_in_either_speed() -> None:
    """Else dead letters of other firings would have other indexes."""
    pair = both(Join(SESSIONS.kind))
    grown = [call(1, 20, 1, answers=False), call(1, 24, 2, answers=True)]
    over = [call(2, 20, 3 * each, answers=each % 2 == 0) for each in range(1, 9)]
    same(*pair, data("in/x", 1, [*grown, *over], watermark_ns=1))
    letters = dead_letters(same(*pair, tick_of(40, 31)))
    assert {each.index for each in letters} == {0}
    assert pair[1].keys == 1


@pytest.fixture(scope="module")
def saved() -> PartitionWorker:
    one = worker(ready(SLIDING, compiled=True))
    messages = [call(line, 15 * line, line, answers=line % 2 == 0) for line in range(1, 9)]
    fold(one, [data("in/x", 1, messages, watermark_ns=1)])
    return one


def changed(saved: list[Array], array: int, row: int, column: int, value: int) -> list[Array]:
    arrays = [each.copy() for each in saved]
    arrays[array][row, column] = value
    return arrays


def test_messages_that_nobody_can_have_saved_are_refused(saved: PartitionWorker) -> None:
    pool = panes_of(saved).panes
    panes, _ = pool.of_keys(panes_of(saved).words[:8])
    items = pool.items_of(panes)
    assert [each.shape[0] for each in items] == [8, 4, 4]
    assert are_items(pool.kinds, items, 8)
    for wrong in (
        changed(items, 0, 0, 0, 2),
        changed(items, 0, 0, 0, DENSE),
        changed(items, 0, 0, 1, 2**62),
        changed(items, 1, 0, 0, 0),
        items[:-1],
        [items[0], items[1][:, 1:], items[2]],
        [items[0], items[1][1:], items[2]],
    ):
        assert not are_items(pool.kinds, wrong, 8)


def test_a_snapshot_whose_panes_are_not_those_of_its_keys_is_refused(saved: PartitionWorker) -> None:
    states = panes_of(saved).dump()
    fresh = panes_of(worker(ready(SLIDING, compiled=True)))
    fresh.load(states, log_ns=0, begins=True)
    assert fresh.dump() == states
    record = np.array(panes_of(saved).states[:8])
    words = record.view(np.int64).reshape(8, -1)
    words[:, OLDEST], words[:, NEWEST] = np.arange(8), 1
    assert record.tobytes() in states.states
    wrong = record.copy()
    wrong.view(np.int64).reshape(8, -1)[0, NEWEST] = 2
    broken = states._replace(states=states.states.replace(record.tobytes(), wrong.tobytes()))
    with pytest.raises(SnapshotError, match="but not as many as its keys have"):
        fresh.load(broken, log_ns=0, begins=True)
