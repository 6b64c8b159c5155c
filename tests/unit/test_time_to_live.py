"""States that end: at the record that takes the log clock to their end, the same after every crash."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from hashlib import blake2b
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import structlog
from rich.console import Console

import bettong
from bettong import Application
from bettong.application.plan import Plan, plan
from bettong.cli.check import tree
from bettong.cli.replay import events_table
from bettong.edges.directory_snapshots import DirectorySnapshots
from bettong.frames.frame import Frame, FrameKind, encode
from bettong.identifiers import Origin, PartitionId, SequenceNumber
from bettong.inspection.json_lines import event_json
from bettong.inspection.key_history import KeyHistory
from bettong.snapshots.chain import Increment
from bettong.v1.snapshot_pb2 import Snapshot
from bettong.worker.output.framing import OutputRecord
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.stage_program import program
from bettong.worker.state.objects import ObjectTable
from bettong_processor.programs import Programs
from bettong_processor.restoring import Restoring, WorkerLimits
from tests.samples.application import refused
from tests.samples.worker import FRAME_BYTES_MAX, data, fold, opening, results, tick, worker
from tests.simulation.twins import compiled_twin

TTL = timedelta(microseconds=5)
TTL_NS = 5000
OUT = "meters.sink.out"
SILENT = structlog.wrap_logger(structlog.ReturnLogger(), processors=[])


@dataclass
class Note:
    key: bettong.u32


@dataclass
class Counted:
    key: bettong.u32
    count: bettong.i64


@dataclass
class Kept:
    count: int = 0


def count(note: Note, kept: Kept) -> Counted:
    """Raises for 99, when it has counted it."""
    kept.count += 1
    if note.key == 99:
        raise ValueError("99")
    return Counted(note.key, kept.count)


@bettong.vectorized
def count_all(note: Note, kept: Kept, keys: bettong.RowIndexes) -> Counted:
    """Of frames whose keys differ."""
    totals: Any = kept.count
    np.add.at(totals, keys, 1)
    return Counted(note.key, totals[keys])


def is_even(kept: Kept) -> bool:
    return kept.count % 2 == 0


count_compiled, is_even_compiled = compiled_twin(count), compiled_twin(is_even)
SPEEDS: dict[str, Callable[..., Any]] = {"python": count, "compiled": count_compiled, "vectorized": count_all}
DELETING = {"python, deleting": (count, is_even), "compiled, deleting": (count_compiled, is_even_compiled)}
Speed = str
every_speed = pytest.mark.parametrize("speed", SPEEDS)


def described(speed: Speed, ttl: timedelta | None) -> Plan:
    app = Application("meters")
    function, delete_when = DELETING.get(speed) or (SPEEDS[speed], None)
    app.source("in", schema=Note, key="key").stateful(
        function, state=Kept, name="count", ttl=ttl, delete_when=delete_when
    ).sink("out")
    return plan(app)


@cache
def made(speed: Speed, ttl: timedelta | None = TTL) -> Programs:
    of = described(speed, ttl)
    return Programs(of, {"in": program(of.stages[0], compiled=True)})


def fresh(speed: Speed, ttl: timedelta | None = TTL) -> PartitionWorker:
    return worker(made(speed, ttl).stages["in"])


class Log:
    """Frames of one client, numbered."""

    def __init__(self) -> None:
        self.values: list[bytes] = []

    def add(self, at_ns: int, *keys: int) -> bytes:
        """The messages of some keys, taken in then."""
        messages = [Note(key) for key in keys]
        self.values.append(data("in/x", len(self.values) + 1, messages, previous=0, ingest_ns=at_ns))
        return self.values[-1]


def counts(records: list[OutputRecord]) -> list[int]:
    return [each.count for each in results(records, OUT, Counted)]


@every_speed
@pytest.mark.parametrize(("after_ns", "expected"), [(TTL_NS - 1, 2), (TTL_NS, 1), (3 * TTL_NS, 1)])
def test_the_first_message_after_the_time_to_live_finds_a_fresh_state(
    speed: Speed, after_ns: int, expected: int
) -> None:
    one, log = fresh(speed), Log()
    fold(one, [log.add(1000, 1)])
    assert counts(fold(one, [log.add(1000 + after_ns, 1)])) == [expected]


@every_speed
def test_a_message_renews_the_state_of_its_key_and_of_no_other(speed: Speed) -> None:
    one, log = fresh(speed), Log()
    fold(one, [log.add(0, 1, 2), log.add(TTL_NS - 1, 1)])
    assert one.keys == 2
    assert counts(fold(one, [log.add(2 * TTL_NS - 2, 1, 2)])) == [3, 1]
    assert one.counters.expired == 1


def test_a_message_that_fails_renews_the_state_too() -> None:
    for speed in ("python", "compiled"):
        one, log = fresh(speed), Log()
        fold(one, [log.add(0, 99), log.add(TTL_NS - 1, 99), log.add(2 * TTL_NS - 2, 99)])
        assert one.tables["count"].state_of(99) == {"count": 3}


@every_speed
def test_every_record_of_the_partition_moves_the_clock(speed: Speed) -> None:
    movers = {
        "a session starts": opening("in/y", 0, ingest_ns=TTL_NS),
        "time passes": tick(TTL_NS),
        "a session ends": encode(
            Frame(
                origin=Origin("in/y"),
                sequence=SequenceNumber(0),
                previous=SequenceNumber(0),
                kind=FrameKind.END,
                ingest_ns=TTL_NS,
            )
        ),
        "another key's message": data("in/y", 1, [Note(2)], previous=0, ingest_ns=TTL_NS),
        "a gap": data("in/y", 3, [Note(1)], previous=2, ingest_ns=TTL_NS),
        "a duplicate": data("in/x", 1, [Note(1)], previous=0, ingest_ns=TTL_NS),
    }
    for what, mover in movers.items():
        one = fresh(speed)
        fold(one, [Log().add(0, 1)])
        assert one.tables["count"].state_of(1) == {"count": 1}
        fold(one, [mover])
        assert one.tables["count"].state_of(1) is None, what
        assert one.counters.expired == 1, what


@every_speed
def test_a_record_with_an_older_clock_ends_nothing_and_renews_by_the_clock_of_the_log(speed: Speed) -> None:
    one, log = fresh(speed), Log()
    fold(one, [log.add(9000, 1), log.add(2000, 2), tick(13_999)])
    assert one.keys == 2
    fold(one, [tick(14_000)])
    assert one.keys == 0


@every_speed
@pytest.mark.parametrize("seed", range(2))
def test_what_is_due_ends_at_its_time_and_not_a_nanosecond_before(speed: Speed, seed: int) -> None:
    """After a restore, too, of increments in any order of messages."""
    one, again = fresh(speed), fresh(speed)
    with small_increments():
        for value in random_log(seed):
            fold(one, [value])
            assert (one.due_ns is None) == (one.keys == 0)
            again.restore(one.increment()[1])
            assert again.due_ns == one.due_ns
            if one.due_ns is None:
                continue
            ended = fresh(speed)
            ended.restore(one.snapshot())
            fold(ended, [tick(one.due_ns - 1)])
            assert ended.keys == one.keys
            fold(ended, [tick(one.due_ns)])
            assert ended.keys < one.keys


@every_speed
def test_without_a_time_to_live_nothing_is_ever_due(speed: Speed) -> None:
    one = fresh(speed, None)
    fold(one, [Log().add(1000, 1)])
    assert one.due_ns is None
    assert not one.program.is_ever_due()
    assert fresh(speed).program.is_ever_due()


@every_speed
def test_the_history_of_a_key_shows_where_its_state_began_anew(speed: Speed) -> None:
    of, log = KeyHistory(made(speed).stages["in"], Assignment("meters", 0, 1, FRAME_BYTES_MAX), 1, {}), Log()
    steps = []
    for offset, at_ns in enumerate((0, 1000, 1000 + TTL_NS)):
        (event,) = of.fold(offset, log.add(at_ns, 1))
        steps += [(step.before, step.after) for step in event.steps]
    one, two = {"count": 1}, {"count": 2}
    assert steps == [(None, one), (one, two), (None, one)]


@every_speed
def test_the_history_of_a_key_shows_which_record_ended_its_state(speed: Speed) -> None:
    of, log = KeyHistory(made(speed).stages["in"], Assignment("meters", 0, 1, FRAME_BYTES_MAX), 1, {}), Log()
    values = [log.add(0, 1), tick(TTL_NS - 1), tick(TTL_NS), tick(2 * TTL_NS), log.add(2 * TTL_NS, 1)]
    values += [log.add(3 * TTL_NS, 2)]
    events = [event for offset, value in enumerate(values) for event in of.fold(offset, value)]
    assert [(event.offset, event.verdict) for event in events] == [
        (0, "taken"),
        (2, "time-passed"),
        (4, "taken"),
        (5, "time-passed"),
    ]
    assert [(step.before, step.after) for step in events[1].steps] == [({"count": 1}, None)]
    console = Console(file=io.StringIO(), width=200)
    console.print(events_table(events))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert shown.count("time passed") == 2
    assert '"message": null' in event_json(events[1])


@every_speed
def test_without_a_time_to_live_a_state_lives_for_ever(speed: Speed) -> None:
    one, log = fresh(speed, None), Log()
    fold(one, [log.add(0, 1), tick(2**62)])
    assert counts(fold(one, [log.add(2**62, 1)])) == [2]


def random_log(seed: int) -> list[bytes]:
    """Few keys, which come again before and after their time; clocks that go back; gaps, duplicates, ticks."""
    chance, log, clock_ns = Random(seed), Log(), 0
    values: list[bytes] = []
    for _ in range(70):
        clock_ns += chance.choice([0, 0, 300, 900, 2000, 6000])
        keys = chance.sample(range(12), chance.randint(1, 3))
        value = log.add(max(clock_ns - chance.choice([0, 0, 800]), 0), *keys)
        kind = chance.random()
        values.append(
            tick(clock_ns) if kind < 0.1 else chance.choice(values or [value]) if kind < 0.2 else value
        )
    return values


def memory(of: PartitionWorker) -> int:
    """How many keys have anything kept."""
    table: Any = of.tables["count"]
    last_ns = table._lifetimes._last_ns
    aged = len(last_ns) if isinstance(table, ObjectTable) else np.count_nonzero(last_ns >= 0)
    assert of.keys == aged
    return of.keys


class Shuffled(DirectorySnapshots):
    """A store that lists increments in any order."""

    def __init__(self, path: Path, chance: Random) -> None:
        super().__init__(path)
        self._chance = chance

    def increments(self, partition: PartitionId) -> list[Increment]:
        found = super().increments(partition)
        self._chance.shuffle(found)
        return found


@contextmanager
def small_increments() -> Iterator[None]:
    """So that a round of writing every key takes several of them."""
    with (
        patch.multiple("bettong.worker.state.objects", INCREMENT_KEYS=2, WHOLE_FROM=1),
        patch.multiple("bettong.worker.state.records", INCREMENT_KEYS=2, WHOLE_FROM=1),
    ):
        yield


@pytest.mark.parametrize("speed", [*SPEEDS, *DELETING])
@pytest.mark.parametrize("seed", range(4))
def test_a_crash_at_any_record_changes_neither_results_nor_states_nor_memory(
    tmp_path: Path, speed: Speed, seed: int
) -> None:
    values, chance = random_log(seed), Random(seed)
    with small_increments():
        straight, outputs, states, keys = fresh(speed), [], [b""], [0]
        for value in values:
            outputs.append(fold(straight, [value]))
            states.append(straight.snapshot())
            keys.append(memory(straight))
        assert straight.counters.expired > 20
        assert (straight.counters.deleted > 10) == (speed in DELETING)
        restoring = Restoring(made(speed), WorkerLimits(1, FRAME_BYTES_MAX), SILENT)
        store = Shuffled(tmp_path, chance)
        crashed = fresh(speed)
        for offset, value in enumerate(values):
            assert fold(crashed, [value]) == outputs[offset]
            if chance.random() < 0.5:
                store.save(PartitionId("in", 0), *crashed.increment())
            # The worker dies here; the next one folds the records since the last increment again, and goes on.
            crashed = restoring.newest(store, PartitionId("in", 0))
            for again in range(crashed.next_offset, offset + 1):
                assert fold(crashed, [values[again]]) == outputs[again]
            assert crashed.snapshot() == states[offset + 1]
            assert memory(crashed) == keys[offset + 1]


@every_speed
def test_what_was_restored_shows_no_state_that_a_shorter_time_to_live_has_ended(speed: Speed) -> None:
    one, log = fresh(speed), Log()
    fold(one, [log.add(0, 1), log.add(2000, 2)])
    again = fresh(speed, timedelta(microseconds=2))
    again.restore(one.snapshot())
    assert [key for key, _ in again.tables["count"].items()] == [2]
    assert again.keys == 1


# Of the bytes that a partition without a time to live had stored before there was one: snapshot and increments, but
# for the fingerprint of code, which each version of Python makes another one, and for what counts messages since.
STORED = {
    "python": "a481d54951f1d472d19efefc1e04c330",
    "compiled": "f5f8712ca7b557f8afca80402a6805b2",
    "vectorized": "f5f8712ca7b557f8afca80402a6805b2",
}


@every_speed
def test_without_a_time_to_live_the_stored_bytes_are_those_of_before(speed: Speed) -> None:
    one, stored = fresh(speed, None), []
    with small_increments():
        for value in random_log(1):
            fold(one, [value])
            stored += [one.snapshot(), one.increment()[1]]
    digest = blake2b(digest_size=16)
    for each in stored:
        read = Snapshot.FromString(each[8:])
        assert not read.ended
        assert not read.last_ns
        assert not read.counters.expired
        read.ClearField("state_schemas")
        read.ClearField("before")
        read.ClearField("accounts")
        digest.update(read.SerializeToString(deterministic=True))
    assert digest.hexdigest() == STORED[speed]


@pytest.mark.parametrize(
    "ttl",
    [60, 60.0, "60 s", True, timedelta(0), timedelta(seconds=-1), timedelta(days=36_501), timedelta.max],
    ids=repr,
)
def test_a_time_that_is_none_to_live_is_refused_where_it_is_given(ttl: Any) -> None:
    with refused("stateful 'count'", f"ttl={ttl!r}", "expected a datetime.timedelta above 0", "36500 days"):
        described("python", ttl)


def test_the_longest_time_to_live_stays_within_the_clock() -> None:
    for speed in SPEEDS:
        one, log = fresh(speed, timedelta(days=36_500)), Log()
        fold(one, [log.add(0, 1), tick(2**63 - 1)])
        assert one.keys == 0


def test_the_graph_shows_how_long_a_state_lives() -> None:
    text = io.StringIO()
    for ttl in (timedelta(days=1, seconds=5), None):
        Console(width=200, file=text).print(tree(described("python", ttl)))
    with_ttl, without = [line for line in text.getvalue().splitlines() if "stateful" in line]
    assert "state Kept, ttl 1 day 0:00:05" in with_ttl
    assert "ttl" not in without
