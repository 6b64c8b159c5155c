"""Joins do not depend on how messages are batched into frames, on the number of partitions, or on crashes."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from itertools import accumulate, pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
import structlog
from hypothesis import given, settings
from hypothesis import strategies as st

import bettong
from bettong.application.joins.joined import Joined
from bettong.application.joins.kinds import Within
from bettong.application.plan import Plan, plan
from bettong.edges.directory_snapshots import DirectorySnapshots
from bettong.frames.frame import tick_record
from bettong.identifiers import Origin, PartitionId
from bettong.inspection.key_history import KeyHistory
from bettong.snapshots.chain import Increment
from bettong.worker.output.framing import OutputRecord
from bettong.worker.partition import Assignment
from bettong.worker.stage_program import StageProgram, program
from bettong_processor.programs import Programs
from bettong_processor.restoring import Restoring, WorkerLimits
from tests.samples.joins import (
    OUT,
    US,
    Entry,
    Event,
    Make,
    Pair,
    as_of,
    event,
    in_window,
    joined,
    late_of,
    latest,
    record,
    us,
    within,
)
from tests.samples.lateness import Client
from tests.samples.state_tables import small_increments
from tests.samples.timers import tick as tick_of
from tests.samples.worker import FRAME_BYTES_MAX, data, dead_letters, fold, results, worker

SILENT = structlog.wrap_logger(structlog.ReturnLogger(), processors=[])
FAR_NS = 10**9
JOINS: dict[str, Make] = {
    **{f"within, {how}": within(-4, 7, how) for how in ("inner", "left", "right", "outer")},
    "within, before": within(-9, -3, "outer"),
    "as of": as_of(None, "left"),
    "as of, tolerance": as_of(6, "inner"),
    "latest": latest("left", delete_when="gone"),
    "tumbling": in_window(bettong.tumbling(us(8)), "outer"),
    "sliding": in_window(bettong.sliding(us(12), us(4), delay=us(3)), "inner"),
    "sessions": in_window(bettong.sessions(us(5)), "left"),
}


@cache
def planned(name: str) -> Plan:
    return plan(joined(JOINS[name]))


@cache
def made(name: str) -> StageProgram:
    return program(planned(name).stages[0], compiled=False)


@settings(max_examples=150)
@given(
    name=st.sampled_from(sorted(JOINS)),
    steps=st.lists(
        st.tuples(st.integers(1, 3), st.booleans(), st.integers(-14, 9), st.booleans()),
        min_size=1,
        max_size=30,
    ),
    cuts=st.sets(st.integers(1, 29)),
    partitions=st.sampled_from([1, 3, 16]),
)
def test_joins_are_the_same_however_frames_are_cut_and_whatever_the_partitions(
    name: str, steps: list[tuple[int, bool, int, bool]], cuts: set[int], partitions: int
) -> None:
    """Frames as a sender makes them of a client's. Each message alone, in one partition, is the measure."""
    events, newest = list[Event](), 0
    for number, (key, is_right, ahead, gone) in enumerate(steps, 1):
        at = max(0, newest + ahead)
        events.append(Event(key, is_right, at * US, number, gone and number % 3 == 0))
        newest = max(newest, at)
    alone = run(name, events, set(range(len(events))), 1)
    assert run(name, events, cuts, partitions) == alone


def run(name: str, events: list[Event], cuts: set[int], partitions: int) -> Any:
    """The output for events divided before these indexes: by key, the pairs made by messages, and by timers.

    Which of these two comes first depends on where records end.
    """
    alone_at_once = over_when_they_come(name, events)
    of = made(name)
    workers = [worker(of, partition=partition, partitions=partitions) for partition in range(partitions)]
    client = Client(planned(name), partitions)
    starts = sorted({0, *(cut for cut in cuts if cut < len(events))})
    found: defaultdict[int, tuple[list[Pair], list[Pair]]] = defaultdict(lambda: ([], []))
    late: defaultdict[tuple[int, str], list[int]] = defaultdict(list)
    dead: list[tuple[str, str]] = []

    def note(records: list[OutputRecord]) -> None:
        for each in results(records, OUT, Pair):
            # A pair of `join_within` that has both sides is made by messages.
            is_by_time = not name.startswith("within") or (
                -1 in (each.left, each.right) and max(each.left, each.right) not in alone_at_once
            )
            found[each.key][is_by_time].append(each)
        for kind in (Event, Entry):
            for each in late_of(records, kind):
                late[each.key, kind.__name__].append(each.value)
        dead.extend((each.reason, each.message.decode()) for each in dead_letters(records))

    for start, stop in pairwise([*starts, len(events)]):
        for partition, value in client.send(events[start:stop]):
            note(fold(workers[partition], [value]))
    for each in workers:
        note(fold(each, [tick_record("log", 2_000_000, {Origin("in/a"): FAR_NS})]))
    counters = [
        sum(getattr(each.counters, name) for each in workers) for name in ("late", "partly_late", "results")
    ]
    return dict(found), dict(late), sorted(dead), counters, sum(each.keys for each in workers)


def over_when_they_come(name: str, events: list[Event]) -> set[int]:
    """The values of messages of `join_within` that can have no partner any more when they arrive."""
    nodes = [each.node for each in planned(name).stages[0].operators]
    kind = next(each.kind for each in nodes if isinstance(each, Joined))
    if not isinstance(kind, Within):
        return set()
    newest = accumulate((each.at for each in events), max, initial=0)
    return {
        each.value
        for each, before in zip(events, newest, strict=False)
        if each.at + max(0, kind.reach_ns(is_right=each.right)[1]) < before
    }


def test_a_history_says_what_a_join_kept_and_made() -> None:
    """What `bettong state get` and `bettong replay` show."""
    of = made("within, left")
    log = [
        record(1, [event(1, "l", 5, 7), event(2, "r", 5, 8)], 5),
        record(2, [event(1, "r", 6, 9), event(1, "l", 6, 1)], 6),
    ]
    one = worker(of)
    fold(one, log[:1])
    kept = {
        "due": 12 * US + 1,
        "count": 1,
        "left": [[5 * US, 0, {"key": 1, "right": False, "at": 5 * US, "value": 7, "gone": False}]],
        "right": [],
        "left_alone": [[5 * US, 0]],
        "right_alone": [],
    }
    assert one.tables["pairs"].state_of(1) == kept
    history = KeyHistory(of, Assignment("meters", 0, 1, FRAME_BYTES_MAX), 1, {})
    events = [each for offset, value in enumerate(log) for each in history.fold(offset, value)]
    first, second, third = (each.steps[0] for each in events)
    assert (first.before, first.after) == (None, kept)
    assert second.before == kept
    assert [each.outputs for each in events] == [
        (),
        (("out", '{"key":1,"left":7,"right":9}'),),
        (("out", '{"key":1,"left":1,"right":9}'),),
    ]
    assert third.after["count"] == 3


def random_log(seed: int) -> list[bytes]:
    """Few keys, some of whose messages are late; some pairs fail; TICKs by both clocks."""
    chance, values = Random(seed), list[bytes]()
    watermark, clock_ns = 20, 0
    for number in range(1, 91):
        clock_ns += chance.choice([0, 5, 30, 1000])
        if chance.random() < 0.2:
            values.append(tick_of(clock_ns, watermark * US))
        events = [
            Event(
                chance.randrange(6),
                chance.random() < 0.5,
                max(0, watermark + chance.randrange(-14, 12)) * US,
                10 * number + each,
                chance.random() < 0.2,
            )
            for each in range(chance.randrange(1, 5))
        ]
        watermark += chance.choice([0, 1, 3, 12])
        values.append(
            data("in/x", number, events, previous=0, ingest_ns=clock_ns, watermark_ns=watermark * US)
        )
    return values


class ShuffledIncrements(DirectorySnapshots):
    """A store that lists increments in any order."""

    def __init__(self, path: Path, chance: Random) -> None:
        super().__init__(path)
        self._chance = chance

    def increments(self, partition: PartitionId) -> list[Increment]:
        found = super().increments(partition)
        self._chance.shuffle(found)
        return found


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", JOINS)
def test_a_crash_at_any_record_changes_neither_results_nor_states(
    tmp_path: Path, name: str, seed: int
) -> None:
    values, chance = random_log(seed), Random(seed)
    programs = Programs(planned(name), {"in": made(name)})
    with small_increments():
        straight, outputs, states = worker(made(name)), [], []
        for value in values:
            outputs.append(fold(straight, [value]))
            states.append(straight.snapshot())
        assert sum(len(results(each, OUT, Pair)) for each in outputs) > 10
        assert straight.counters.deleted > 3 or name == "as of"
        assert (straight.counters.late > 3) == (name != "latest")
        restoring = Restoring(programs, WorkerLimits(1, FRAME_BYTES_MAX), SILENT)
        store = ShuffledIncrements(tmp_path, chance)
        crashed = worker(made(name))
        for offset, value in enumerate(values):
            assert fold(crashed, [value]) == outputs[offset]
            if chance.random() < 0.5:
                store.save(PartitionId("in", 0), *crashed.increment())
            # It dies here; the next worker replays the records since the last increment, and goes on.
            crashed = restoring.newest(store, PartitionId("in", 0))
            for again in range(crashed.next_offset, offset + 1):
                assert fold(crashed, [values[again]]) == outputs[again]
            assert crashed.snapshot() == states[offset]
