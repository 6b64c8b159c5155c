"""What tables of states promise about timers, checked against a dict: for objects and for records of an array."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from types import SimpleNamespace
from typing import Annotated, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bettong
from bettong import NEVER, Application, Width
from bettong.application.plan import StageInput
from bettong.errors import StateChangedError
from bettong.frames.columns import Columns
from bettong.schema.schema import schema_of
from bettong.worker.batch import Batch
from bettong.worker.due import Due
from bettong.worker.state.objects import ObjectTable
from bettong.worker.state.records import RecordTable
from bettong.worker.state.table import SavedStates, StateTable
from tests.samples.state_tables import small_increments

TTL_NS = 1000


@dataclass
class Item:
    key: Annotated[str, Width(6)]


@dataclass
class Alarms:
    """`first` and `second` go by the log clock, `event` by the watermark."""

    first: bettong.LogTimer = NEVER
    event: bettong.Timer = NEVER
    second: bettong.LogTimer = NEVER


FIELDS = ("first", "event", "second")
SCHEMA = schema_of(Item)


def use(item: Item, alarms: Alarms) -> Item:
    return item


def ring(fired: bettong.Fired[str], alarms: Alarms) -> None:
    pass


def never(alarms: Alarms) -> bool:
    return False


def node(ttl: timedelta | None) -> Any:
    stream = Application("app").source("in", schema=Item, key="key")
    return stream.stateful(
        use, state=Alarms, name="fold", ttl=ttl, delete_when=never, timers=dict.fromkeys(FIELDS, ring)
    ).node


def objects(ttl: timedelta | None = None) -> StateTable:
    return ObjectTable(node(ttl))


def records(ttl: timedelta | None = None) -> StateTable:
    return RecordTable(node(ttl), np.dtype("S6"))


Make = Callable[..., StateTable]
both = pytest.mark.parametrize("make", [objects, records])


def batch(keys: Iterable[str]) -> Batch:
    columns = Columns.of_messages(SCHEMA, [Item(key) for key in keys])
    return Batch.of_frame(StageInput("in", SCHEMA, "key"), columns)


def set_timers(table: StateTable, times: dict[str, dict[str, int]]) -> None:
    """Sets timers of some keys, as a Calling does for a batch of a message each."""
    opened = table.open(batch(times))
    for row, (key, own) in enumerate(times.items()):
        for name, at_ns in own.items():
            if isinstance(opened, ObjectTable):
                state = opened.get(key) or opened.create(key)
                setattr(state, name, at_ns)
                assert opened.timers is not None
                opened.timers.note(key, state)
            else:
                opened.states[name][opened.slots[row]] = at_ns


def delete(table: StateTable, keys: list[str]) -> None:
    """Deletes the states of those keys that have one."""
    if isinstance(table, ObjectTable):
        rows = batch(keys)
        for key in set(keys):
            if table.get(key) is not None:
                table.delete(key, rows, keys.index(key))
    elif isinstance(table, RecordTable):
        slots = table._table.find(np.array([key.encode() for key in sorted(set(keys))], "S6"))
        known = slots[slots >= 0]
        table.delete(batch(keys), known, np.arange(len(known)))


def taken(table: StateTable, log_ns: int, watermark_ns: int) -> dict[str, list[tuple[int, str]]]:
    """One round: by field, times and keys, in their order."""
    found = {}
    for due in table.take_due(log_ns, watermark_ns):
        assert due.field not in found
        found[due.field] = list(zip(due.rows.columns.values(1), due.rows.key_values(), strict=True))
        assert due.rows.columns.values(0) == due.rows.key_values()
    return found


def shown(table: StateTable) -> dict[str, dict[str, int | None]]:
    return {key.decode() if isinstance(key, bytes) else str(key): state for key, state in table.items()}


STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("set"),
            st.dictionaries(
                st.sampled_from("abcdefghij"),
                st.dictionaries(
                    st.sampled_from(FIELDS),
                    st.one_of(st.integers(-3, 60), st.sampled_from([NEVER, NEVER - 1])),
                    min_size=1,
                ),
                max_size=5,
            ),
        ),
        st.tuples(st.just("delete"), st.lists(st.sampled_from("abcdefghij"), max_size=3)),
        st.tuples(st.just("take"), st.tuples(st.integers(0, 60), st.integers(0, 60))),
        st.tuples(st.just("take"), st.just((NEVER, NEVER))),
        st.tuples(st.sampled_from(["save", "save", "crash"]), st.none()),
        st.tuples(st.just("expire"), st.integers(0, 600)),
    ),
    min_size=10,
    max_size=40,
)


@both
@given(ttl=st.sampled_from([None, timedelta(microseconds=TTL_NS // 1000)]), steps=STEPS)
def test_a_table_gives_the_timers_that_a_dict_has(
    make: Make, ttl: timedelta | None, steps: list[tuple[str, Any]]
) -> None:
    with small_increments():
        run = Run(make, ttl)
        for what, argument in [("set", {key: {"first": 50} for key in "abcdefghij"}), ("save", None), *steps]:
            run.take(what, argument)


@dataclass
class Run:
    """A table beside a dict of times. A crash restores what was saved, and repeats the rest."""

    make: Make
    ttl: timedelta | None
    times: dict[str, dict[str, int]] = field(default_factory=dict)
    last_ns: dict[str, int] = field(default_factory=dict)
    increments: list[tuple[SavedStates, int, bool]] = field(default_factory=list)
    since: list[tuple[str, Any, int]] = field(default_factory=list)
    log_ns: int = 0
    root: int = 0
    round: int = 0

    def __post_init__(self) -> None:
        self.table = self.make(self.ttl)

    def take(self, what: str, argument: Any) -> None:
        """A step of the table and of the dict, which then hold the same."""
        if what == "save":
            begins = self.table.round_complete
            self.round = len(self.increments) if begins else self.round
            self.increments.append((self.table.increment(begins=begins), self.log_ns, begins))
            self.root = self.round if self.table.round_complete else self.root
            self.since = []
        elif what == "crash":
            self.table = self.make(self.ttl)
            for saved, log_ns, begins in self.increments[self.root :]:
                self.table.load(saved, log_ns=log_ns, begins=begins)
            for step in self.since:
                self._do(*step)
        else:
            if what == "expire":
                self.log_ns += argument
                argument = self.log_ns
            self.since.append((what, argument, self.log_ns))
            assert self._do(*self.since[-1]) == self._expected(what, argument)
        expected = {
            key: {name: at if at != NEVER else None for name, at in own.items()}
            for key, own in self.times.items()
        }
        assert shown(self.table) == expected
        self._check_due()

    def _do(self, what: str, argument: Any, log_ns: int) -> Any:
        self.table.note_clock(log_ns)
        if what == "set":
            return set_timers(self.table, argument)
        if what == "delete":
            return delete(self.table, argument)
        if what == "expire":
            return self.table.expire(argument)
        return taken(self.table, *argument)

    def _expected(self, what: str, argument: Any) -> Any:
        if what == "set":
            for key, own in argument.items():
                self.times.setdefault(key, dict.fromkeys(FIELDS, NEVER)).update(own)
                self.last_ns[key] = self.log_ns
        elif what == "delete":
            for key in argument:
                self.times.pop(key, None)
        elif what == "expire":
            over = [key for key in self.times if self.ttl and argument - self.last_ns[key] >= TTL_NS]
            for key in over:
                del self.times[key]
            return len(over)
        else:
            return self._fired(*argument)
        return None

    def _fired(self, log_ns: int, watermark_ns: int) -> dict[str, list[tuple[int, str]]]:
        """The first timer of each key, in the order of the fields where times are equal.

        One that is due behind the end of its state, by the same clock, is gone, and the next of its key is asked for.
        """
        clocks = {"first": log_ns, "event": watermark_ns, "second": log_ns}
        while True:
            taken_, found = 0, dict[str, list[tuple[int, str]]]()
            for key, own in self.times.items():
                due = [
                    (own[name], FIELDS.index(name))
                    for name in FIELDS
                    if own[name] <= min(clocks[name], NEVER - 1)
                ]
                if due:
                    at_ns, number = min(due)
                    own[FIELDS[number]] = NEVER
                    taken_ += 1
                    if not self.ttl or FIELDS[number] == "event" or at_ns <= self.last_ns[key] + TTL_NS:
                        found.setdefault(FIELDS[number], []).append((at_ns, key))
            if found or not taken_:
                return {name: sorted(each) for name, each in found.items()}

    def _check_due(self) -> None:
        log = min((at for own in self.times.values() for at in (own["first"], own["second"])), default=NEVER)
        event = min((own["event"] for own in self.times.values()), default=NEVER)
        due = self.table.due
        assert due.log_ns <= log
        assert due.watermark_ns <= event
        if isinstance(self.table, ObjectTable):
            assert due == Due(log, event)


@both
def test_timers_of_many_keys_fire_as_a_dict_says_and_none_is_left_behind(make: Make) -> None:
    """So many that records lie in several blocks."""
    chance, table, times = Random(7), make(), dict[str, int]()
    for clock in range(0, 3000, 250):
        changed = {f"k{chance.randrange(5000)}": chance.randrange(clock, clock + 1500) for _ in range(900)}
        set_timers(table, {key: {"second": at} for key, at in changed.items()})
        times |= changed
        due = sorted((at, key) for key, at in times.items() if at <= clock)
        assert taken(table, clock, 0).get("second", []) == due
        assert taken(table, clock, 0) == {}
        times = {key: at for key, at in times.items() if at > clock}
        assert clock < table.due.log_ns <= min(times.values())


def test_of_records_only_blocks_with_something_due_are_looked_through() -> None:
    table = RecordTable(node(None), np.dtype("S6"))
    set_timers(table, {f"k{number}": {"first": 100 + number} for number in range(3000)})
    assert table.due == Due(log_ns=100)
    # Written behind the table's back: whoever reads there finds it.
    table.states["first"][2500] = 5
    assert taken(table, 1100, 0)["first"][-1] == (1100, "k1000")
    table.states["first"][1030] = 5
    assert taken(table, 1200, 0)["first"][0] == (5, "k1030")


def test_a_timer_that_is_set_again_and_again_leaves_few_entries() -> None:
    table = ObjectTable(node(None))
    for at_ns in range(10_000, 0, -1):
        set_timers(table, {key: {"first": at_ns, "event": at_ns} for key in ("a", "b")})
        assert table.due == Due(at_ns, at_ns)
    assert table.timers is not None
    assert sum(map(len, table.timers._heaps)) < 200
    assert taken(table, 1, 0) == {"first": [(1, "a"), (1, "b")]}
    delete(table, ["a", "b"])
    assert table.due == Due()


@both
def test_a_firing_renews_no_time_to_live(make: Make) -> None:
    table = make(timedelta(microseconds=1))
    table.expire(0)
    set_timers(table, {"a": {"first": 900}})
    table.expire(900)
    (due,) = table.take_due(900, 0)
    table.open(due.rows, renews=False)
    assert table.expire(1000) == 1


@both
def test_keys_of_one_time_go_by_their_value(make: Make) -> None:
    table, keys = make(), ["b", "ä", "a", "ab", "z", "€", "B"]
    set_timers(table, {key: {"first": 5} for key in keys})
    assert [key for _, key in taken(table, 5, 0)["first"]] == sorted(keys)


def test_keys_of_several_types_fire_each_as_what_it_is() -> None:
    table = ObjectTable(node(None))
    assert table.timers is not None
    keys: list[Any] = [2**63, 7, -1, "7", b"7\0", True]
    for key in keys:
        state = table.create(key)
        state.first = 5
        table.timers.note(key, state)
    due = table.take_due(5, 0)
    found = [key for each in due for key in each.rows.columns.values(0)]
    assert sorted(map(repr, found)) == sorted(map(repr, keys))
    assert [key for each in due for key in each.rows.key_values()] == found


@pytest.mark.parametrize("wrong", [1.5, None, "5", NEVER + 1, -(2**63) - 1, float("inf")], ids=repr)
def test_what_is_no_time_is_refused_and_the_timer_is_never(wrong: Any) -> None:
    table = ObjectTable(node(None))
    state = table.create("a")
    assert table.timers is not None
    state.second, state.first = wrong, 5
    with pytest.raises(ValueError, match=r"field 'second': .* is no time"):
        table.timers.note("a", state)
    assert state.second == NEVER
    table.timers.note("a", state)
    assert table.due == Due(log_ns=5)


@pytest.mark.parametrize("odd", [np.int64(5), True, -(2**63)], ids=repr)
def test_whole_numbers_of_other_types_are_times(odd: Any) -> None:
    table = ObjectTable(node(None))
    set_timers(table, {"a": {"first": odd}})
    state: Any = table.get("a")
    assert type(state.first) is int
    assert taken(table, 5, 0) == {"first": [(int(odd), "a")]}


@both
def test_a_timer_is_due_in_a_state_that_was_made_of_an_older_one(make: Make) -> None:
    old, table = make(), make()
    set_timers(old, {"a": {"first": 5}})
    saved = old.increment(begins=True)

    def migrate(state: Any) -> Alarms:
        assert isinstance(state, SimpleNamespace | Alarms)
        return Alarms(event=state.first + 1)

    table.load(saved, log_ns=0, begins=True, migration=migrate)
    assert table.due.log_ns == NEVER
    assert taken(table, 0, 6) == {"event": [(6, "a")]}


def test_a_migration_that_makes_no_time_is_reported() -> None:
    old, table = objects(), objects()
    set_timers(old, {"a": {"first": 5}})
    late: Any = 1.5
    with pytest.raises(StateChangedError, match="what migrate= made for key 'a'"):
        table.load(old.increment(begins=True), log_ns=0, begins=True, migration=lambda _: Alarms(event=late))
