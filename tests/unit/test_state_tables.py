"""What every table of states promises, checked against a dict: for objects and for records of an array."""

from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.errors import SnapshotError
from bettong.worker.state.lifetimes import LogSlotLifetimes
from bettong.worker.state.objects import ObjectTable
from bettong.worker.state.records import RecordTable
from bettong.worker.state.table import SavedStates, StateTable
from tests.samples.state_tables import (
    FIRST,
    TTL_NS,
    Make,
    add,
    batch,
    both,
    delete,
    loaded,
    node,
    small_increments,
    totals,
)

ALL = list(range(13))
KEYS = st.lists(st.sampled_from(ALL), max_size=8)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), KEYS, st.integers(0, 400)),
        st.tuples(st.just("delete"), KEYS, st.just(0)),
        st.tuples(st.sampled_from(["save", "save", "crash"]), st.just([]), st.just(0)),
        st.tuples(st.just("expire"), st.just([]), st.integers(0, 1500)),
    ),
    min_size=15,
    max_size=40,
)


@both
@given(ttl=st.sampled_from([None, timedelta(microseconds=TTL_NS // 1000)]), steps=STEPS)
def test_a_table_is_a_dict_whose_keys_end_and_what_was_saved_makes_it_again(
    make: Make, ttl: timedelta | None, steps: list[tuple[str, list[int], int]]
) -> None:
    """A crash restores what was last saved, the increments from their root on, and folds the rest again."""
    with small_increments():
        run = Run(make, ttl)
        # Enough keys that not all of them are written each time.
        for step in [("add", ALL, 0), ("save", [], 0), *steps]:
            run.take(*step)


@dataclass
class Run:
    """A table beside a dict of totals and last messages."""

    make: Make
    ttl: timedelta | None
    model: dict[str, tuple[int, int]] = field(default_factory=dict)
    increments: list[tuple[SavedStates, int, bool]] = field(default_factory=list)
    since: list[tuple[str, list[int], int]] = field(default_factory=list)
    log_ns: int = 0
    root: int = 0
    round: int = 0

    def __post_init__(self) -> None:
        self.table = self.make(self.ttl)

    def take(self, what: str, keys: list[int], forward_ns: int) -> None:
        """A step of the table and of the dict, which then hold the same."""
        self.log_ns += forward_ns
        if what == "save":
            self._save()
        elif what == "crash":
            self._crash()
        else:
            self.since.append((what, keys, self.log_ns))
            assert self._do(*self.since[-1]) == self._expired()
            self._change(what, keys)
        assert totals(self.table) == {key: total for key, (total, _) in self.model.items()}

    def _do(self, what: str, keys: list[int], log_ns: int) -> int:
        expired = self.table.expire(log_ns)
        if what == "add":
            add(self.table, keys)
        elif what == "delete":
            delete(self.table, keys)
        return expired

    def _expired(self) -> int:
        over = [key for key, (_, at) in self.model.items() if self.ttl and self.log_ns - at >= TTL_NS]
        for key in over:
            del self.model[key]
        return len(over)

    def _change(self, what: str, keys: list[int]) -> None:
        for key in keys:
            if what == "add":
                self.model[f"k{key}"] = (self.model.get(f"k{key}", (FIRST, 0))[0] + 1, self.log_ns)
            else:
                self.model.pop(f"k{key}", None)

    def _save(self) -> None:
        begins = self.table.round_complete
        self.round = len(self.increments) if begins else self.round
        self.increments.append((self.table.increment(begins=begins), self.log_ns, begins))
        self.root = self.round if self.table.round_complete else self.root
        self.since = []

    def _crash(self) -> None:
        self.table = self.make(self.ttl)
        for saved, log_ns, begins in self.increments[self.root :]:
            self.table.load(saved, log_ns=log_ns, begins=begins)
        for each in self.since:
            self._do(*each)


def completed(table: StateTable) -> list[tuple[SavedStates, bool]]:
    """Increments up to the end of the current round."""
    found = []
    while not table.round_complete:
        found.append((table.increment(begins=False), False))
        assert len(found) < len(ALL)
    return found


def half_a_round(table: StateTable) -> list[tuple[SavedStates, bool]]:
    """A root, and the first increment of a round that has still to come to most keys: all but 0, 1 and 2."""
    add(table, ALL)
    root = table.increment(begins=True)
    add(table, [0])
    second = table.increment(begins=True)
    assert not table.round_complete
    return [(root, True), (second, True)]


@both
def test_a_round_writes_no_key_that_ended_before_it(make: Make) -> None:
    with small_increments():
        for ended in ALL:
            table = make(None)
            add(table, ALL)
            table.increment(begins=True)
            delete(table, [ended])
            add(table, [(ended + 1) % len(ALL)])
            increments = [(table.increment(begins=True), True)]
            assert not table.round_complete
            increments += completed(table)
            assert totals(loaded(make, increments)).keys() == {f"k{key}" for key in ALL if key != ended}


@both
def test_a_round_at_work_writes_no_key_that_ended_meanwhile(make: Make) -> None:
    with small_increments():
        for ended in ALL:
            table = make(None)
            increments = half_a_round(table)
            delete(table, [ended])
            increments += completed(table) or [(table.increment(begins=False), False)]
            for root in (increments, increments[1:]):
                assert totals(loaded(make, root)).keys() == {f"k{key}" for key in ALL if key != ended}


@both
def test_a_key_that_had_a_message_and_then_ended_is_not_written(make: Make) -> None:
    with small_increments():
        for ended in ALL:
            table = make(None)
            increments = half_a_round(table)
            add(table, [ended])
            delete(table, [ended])
            increments.append((table.increment(begins=False), False))
            assert totals(loaded(make, increments)).keys() == {f"k{key}" for key in ALL if key != ended}


@both
def test_a_round_goes_on_after_a_crash_without_the_keys_that_ended(make: Make) -> None:
    with small_increments():
        for ended in ALL:
            table = make(None)
            increments = half_a_round(table)
            delete(table, [ended])
            increments.append((table.increment(begins=False), False))
            again = loaded(make, increments)
            increments += completed(again)
            assert totals(loaded(make, increments[1:])) == totals(table)


@both
def test_a_new_key_has_a_new_state_whoever_had_its_slot_before(make: Make) -> None:
    table = make(None)
    add(table, [1, 1, 1])
    first = table.increment(begins=True)
    delete(table, [1])
    again = loaded(make, [(first, True), (table.increment(begins=True), True)])
    for each in (table, again):
        add(each, [2])
        assert totals(each) == {"k2": FIRST + 1}


@both
def test_memory_is_that_of_the_keys_that_live(make: Make) -> None:
    table = make(timedelta(microseconds=8))
    for clock in range(3000):
        table.expire(clock * 1000)
        add(table, [clock * 3 + each for each in range(3)])
        assert table.keys == 3 * min(clock + 1, 8)
    if isinstance(table, RecordTable):
        assert len(table.states) == 1024, "slots are given again"
        assert not table._ended
    else:
        assert not table._ended  # type: ignore[attr-defined]


@both
def test_keys_that_come_and_go_between_two_increments_leave_nothing(make: Make) -> None:
    table = make(None)
    add(table, [0])
    table.increment(begins=True)
    empty = table.increment(begins=False).ended
    for _ in range(3):
        for key in (0, 1, 2):
            add(table, [key])
            delete(table, [key])
    assert len(table._ended) == 1  # type: ignore[attr-defined]
    ended = table.increment(begins=False)
    assert ended.ended != empty
    add(table, [3])
    delete(table, [3])
    assert table.increment(begins=False).ended == empty
    assert totals(loaded(make, [(ended, True)])) == {}


@both
def test_to_find_what_is_over_looks_at_no_key_that_lives(make: Make) -> None:
    """Shown by what is read: reading a key that lives would raise, or never end."""
    table = make(timedelta(microseconds=1))
    add(table, [0])
    table.expire(500)
    add(table, list(range(1, 200)))
    lifetimes = table._lifetimes  # type: ignore[attr-defined]
    if isinstance(lifetimes, LogSlotLifetimes):
        lifetimes._last_ns[2:] = -(2**40)  # reading one would expire it
    else:
        for key in list(lifetimes._last_ns)[2:]:
            lifetimes._last_ns[key] = None
    assert table.expire(1000) == 1


@both
def test_no_older_increment_brings_a_key_back(make: Make) -> None:
    table = make(None)
    add(table, [1, 2])
    first = table.increment(begins=True), True
    delete(table, [1])
    second = table.increment(begins=True), True
    add(table, [1])
    third = table.increment(begins=True), True
    assert totals(loaded(make, [first, second])) == {"k2": FIRST + 1}
    assert totals(loaded(make, [first, second, third])) == {"k2": FIRST + 1, "k1": FIRST + 1}


@both
def test_equal_states_have_equal_bytes_whatever_has_ended(make: Make) -> None:
    table, straight = make(None), make(None)
    add(table, [1, 2, 3])
    delete(table, [1, 3])
    add(table, [3])
    add(straight, [2, 3])
    assert table.dump() == straight.dump()


@both
def test_what_was_saved_without_a_time_to_live_begins_to_age_at_that_moment(make: Make) -> None:
    old = make(None)
    add(old, [1])
    table = make(timedelta(microseconds=1))
    table.load(old.increment(begins=True), log_ns=5000, begins=True)
    assert table.expire(5999) == 0
    assert totals(table) == {"k1": FIRST + 1}
    assert table.expire(6000) == 1
    assert totals(table) == {}


@both
def test_a_time_to_live_can_be_changed_and_taken_away(make: Make) -> None:
    old = make(timedelta(microseconds=5))
    for clock in (1000, 2000):
        old.expire(clock)
        add(old, [clock])
    saved = old.increment(begins=True)
    for ttl, expired in ((None, 0), (timedelta(microseconds=1), 2), (timedelta(microseconds=2), 1)):
        table = make(ttl)
        table.load(saved, log_ns=3000, begins=True)
        assert table.expire(3000) == expired
        assert table.keys == 2 - expired


@both
def test_damaged_clocks_are_refused(make: Make) -> None:
    table = make(timedelta(seconds=1))
    table.expire(1000)
    add(table, [1])
    saved = table.increment(begins=True)
    later, negative = (number.to_bytes(8, "little", signed=True) for number in (1001, -1))
    for last_ns in (saved.last_ns * 2, saved.last_ns[:-1], later, negative):
        with pytest.raises(SnapshotError, match="state of 'fold'"):
            make(timedelta(seconds=1)).load(saved._replace(last_ns=last_ns), log_ns=1000, begins=True)
    make(timedelta(seconds=1)).load(saved, log_ns=1000, begins=True)


def test_a_key_whose_message_could_not_be_made_never_had_a_state_that_ends() -> None:
    table = ObjectTable(node(timedelta(microseconds=8)))
    table.expire(0)
    table.open(batch([1]))
    assert (table.expire(8000), table.keys) == (0, 0)
