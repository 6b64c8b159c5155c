"""The delivery rule against a model of all that numbers frames: each message exactly once, in order per origin.

The model: clients number frames; sessions carry them to one partition's log, each at its own pace, so that
an old session is a zombie beside a new one; frames are lost on the way; workers replay. A consumer folds the
log with the rule, saves its table with its offset, and crashes back to what it saved.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from bettong.delivery import ORIGIN_TTL_NS, DeliveryTable, Verdict, judge

CLIENTS = ("orders/a", "orders/b")
WORKER = "check/3"
TICK_NS = 1_000_000


@dataclass(frozen=True)
class Record:
    """One record of the log; `opens`: an OPEN, whose `previous` is what was acknowledged."""

    origin: str
    sequence: int
    previous: int
    opens: bool = False


@dataclass
class Session:
    """What one sender carries for one client, or one run of a worker: pending frames, in order.

    Once `broken`, by a lost frame, it acknowledges nothing more.
    """

    pending: deque[Record]
    last: int
    landed: int
    broken: bool = False


@dataclass
class Client:
    """Numbers of all frames, and of those with messages for this partition; sessions, the last one current."""

    numbers: list[int] = field(default_factory=list)
    here: list[int] = field(default_factory=list)
    acknowledged: int = 0
    sessions: list[Session] = field(default_factory=list)

    def connect(self, origin: str) -> None:
        opening = Record(origin, 0, self.acknowledged, opens=True)
        session = Session(deque([opening]), self.acknowledged, self.acknowledged)
        self.sessions.append(session)
        for number in self.numbers:
            if number > self.acknowledged:
                self.send(origin, number)

    def send(self, origin: str, number: int) -> None:
        session = self.sessions[-1]
        if number in self.here:
            session.pending.append(Record(origin, number, session.last))
            session.last = number

    def acknowledge(self) -> None:
        """All that landed without a loss before it, and what lies between that had nothing for this partition."""
        session = self.sessions[-1]
        if session.broken:
            return
        waiting = [record.sequence for record in session.pending if not record.opens]
        if any(record.opens for record in session.pending):
            return
        below = min(waiting, default=None)
        done = [number for number in self.numbers if below is None or number < below]
        self.acknowledged = max([self.acknowledged, *done])


class Delivery(RuleBasedStateMachine):
    """Interleaves retries, losses, zombies, reconnects, replays and crashes."""

    @initialize()
    def start(self) -> None:
        self.log: list[Record] = []
        self.clients = {origin: Client() for origin in CLIENTS}
        for origin, client in self.clients.items():
            client.connect(origin)
        self.outputs: list[Record] = []
        self.runs = [Session(deque(), 0, 0)]
        self.table = DeliveryTable()
        self.offset = 0
        self.taken: dict[str, list[int]] = {origin: [] for origin in (*CLIENTS, WORKER)}
        self.saved = copy.deepcopy((self.table, self.offset, self.taken))

    @rule(origin=st.sampled_from(CLIENTS), step=st.integers(1, 3), here=st.booleans())
    def a_client_sends(self, origin: str, step: int, here: bool) -> None:  # noqa: FBT001 - hypothesis fills it in
        client = self.clients[origin]
        number = (client.numbers[-1] if client.numbers else 0) + step
        client.numbers.append(number)
        if here:
            client.here.append(number)
        client.send(origin, number)

    @rule(origin=st.sampled_from(CLIENTS), which=st.integers(0, 3), count=st.integers(1, 4))
    def a_session_lands_frames(self, origin: str, which: int, count: int) -> None:
        sessions = self.clients[origin].sessions
        session = sessions[-1 - which % len(sessions)]
        for _ in range(min(count, len(session.pending))):
            self.log.append(session.pending.popleft())

    @rule(origin=st.sampled_from(CLIENTS), which=st.integers(0, 1))
    def a_session_loses_a_frame(self, origin: str, which: int) -> None:
        sessions = self.clients[origin].sessions
        session = sessions[-1 - which % len(sessions)]
        if session.pending:
            session.pending.popleft()
            session.broken = True

    @rule(origin=st.sampled_from(CLIENTS))
    def a_client_gets_a_receipt(self, origin: str) -> None:
        self.clients[origin].acknowledge()

    @rule(origin=st.sampled_from(CLIENTS))
    def a_client_reconnects(self, origin: str) -> None:
        self.clients[origin].connect(origin)

    @rule(step=st.integers(1, 5))
    def a_worker_puts_out(self, step: int) -> None:
        previous = self.outputs[-1].sequence if self.outputs else 0
        self.outputs.append(Record(WORKER, previous + step, previous))
        self.runs[-1].pending.append(self.outputs[-1])

    @rule(which=st.integers(0, 2), count=st.integers(1, 4))
    def a_worker_lands_outputs(self, which: int, count: int) -> None:
        run = self.runs[-1 - which % len(self.runs)]
        for _ in range(min(count, len(run.pending))):
            self.log.append(run.pending.popleft())

    @rule(back=st.integers(0, 5))
    def a_worker_replays_from_a_snapshot(self, back: int) -> None:
        """A snapshot lies at or below what is durable; the old run stays as a zombie."""
        durable = {record.sequence for record in self.log if record.origin == WORKER}
        start = max(0, sum(record.sequence in durable for record in self.outputs) - back)
        self.runs.append(Session(deque(self.outputs[start:]), 0, 0))

    @precondition(lambda self: self.offset < len(self.log))
    @rule(count=st.integers(1, 20))
    def the_consumer_reads(self, count: int) -> None:
        self._consume(self.log[self.offset : self.offset + count])

    @rule()
    def the_consumer_saves(self) -> None:
        self.saved = copy.deepcopy((self.table, self.offset, self.taken))

    @rule()
    def the_consumer_crashes(self) -> None:
        self.table, self.offset, self.taken = copy.deepcopy(self.saved)

    @invariant()
    def what_was_taken_is_a_prefix_of_what_was_sent(self) -> None:
        for origin, client in self.clients.items():
            assert self.taken[origin] == client.here[: len(self.taken[origin])]
        worker = [record.sequence for record in self.outputs]
        assert self.taken[WORKER] == worker[: len(self.taken[WORKER])]

    def teardown(self) -> None:
        """Everybody connects once more and everything lands: nothing is missing."""
        if not hasattr(self, "log"):
            return
        for origin, client in self.clients.items():
            client.connect(origin)
            for session in client.sessions:
                self.log.extend(session.pending)
        self.log.extend(record for run in self.runs for record in run.pending)
        self.log.extend(self.outputs)
        self._consume(self.log[self.offset :])
        for origin, client in self.clients.items():
            assert self.taken[origin] == client.here
        assert self.taken[WORKER] == [record.sequence for record in self.outputs]

    def _consume(self, records: Iterable[Record]) -> None:
        for record in records:
            self.offset += 1
            now_ns = self.offset * TICK_NS
            if record.opens:
                self.table.open(record.origin, acknowledged=record.previous, now_ns=now_ns)
            elif (
                self.table.take(
                    record.origin, sequence=record.sequence, previous=record.previous, now_ns=now_ns
                )
                is Verdict.TAKE
            ):
                self.taken[record.origin].append(record.sequence)


TestDelivery = Delivery.TestCase
TestDelivery.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)


@pytest.mark.parametrize(
    ("highest", "sequence", "previous", "verdict"),
    [
        (0, 1, 0, Verdict.TAKE),
        (5, 9, 5, Verdict.TAKE),
        (5, 9, 3, Verdict.TAKE),
        (5, 5, 3, Verdict.DUPLICATE),
        (5, 4, 3, Verdict.DUPLICATE),
        (5, 9, 7, Verdict.GAP),
        (0, 2, 1, Verdict.GAP),
    ],
)
def test_a_frame_is_taken_when_previous_is_seen_and_sequence_is_not(
    highest: int, sequence: int, previous: int, verdict: Verdict
) -> None:
    assert judge(highest, sequence=sequence, previous=previous) is verdict


def test_a_duplicate_and_a_gap_leave_the_table_as_it_was() -> None:
    table = DeliveryTable.of({"orders/a": 5})
    assert table.take("orders/a", sequence=5, previous=4, now_ns=1) is Verdict.DUPLICATE
    assert table.take("orders/a", sequence=9, previous=8, now_ns=2) is Verdict.GAP
    assert table.highest == {"orders/a": 5}


def test_a_gap_of_an_unknown_origin_does_not_enter_the_table() -> None:
    table = DeliveryTable()
    assert table.take("orders/a", sequence=9, previous=8, now_ns=1) is Verdict.GAP
    assert table.highest == {}
    assert table.heard_ns == {}


def test_an_open_never_lowers_what_was_seen() -> None:
    table = DeliveryTable.of({"orders/a": 5})
    table.open("orders/a", acknowledged=3, now_ns=1)
    assert table.highest == {"orders/a": 5}
    table.open("orders/a", acknowledged=8, now_ns=2)
    assert table.highest == {"orders/a": 8}


def test_a_silent_origin_is_forgotten_after_its_time_to_live() -> None:
    table = DeliveryTable(ttl_ns=1600)
    table.take("orders/silent", sequence=1, previous=0, now_ns=1000)
    for now_ns in range(1100, 2600, 100):
        table.take("orders/live", sequence=now_ns, previous=0, now_ns=now_ns)
        assert "orders/silent" in table.highest, now_ns
    for now_ns in range(2600, 2900, 100):
        table.take("orders/live", sequence=now_ns, previous=0, now_ns=now_ns)
    assert set(table.highest) == set(table.heard_ns) == {"orders/live"}


def test_a_duplicate_keeps_its_origin_alive() -> None:
    table = DeliveryTable(ttl_ns=1600)
    for now_ns in range(1000, 9000, 500):
        table.take("orders/a", sequence=1, previous=0, now_ns=now_ns)
        table.take("orders/live", sequence=now_ns, previous=0, now_ns=now_ns)
    assert table.highest["orders/a"] == 1


def test_the_table_is_bounded_by_the_origins_of_one_time_to_live() -> None:
    table = DeliveryTable(ttl_ns=1600)
    largest = 0
    for now_ns in range(1000, 50_000, 10):
        table.take(f"orders/{now_ns}", sequence=1, previous=0, now_ns=now_ns)
        largest = max(largest, len(table.highest))
    assert largest <= 1600 // 10 + 2 * 100 // 10


def test_a_forgotten_origin_goes_on_when_it_opens_again() -> None:
    """Without its OPEN what it sends is a gap: who numbers frames must open again after a long silence."""
    table = DeliveryTable(ttl_ns=1600)
    table.take("orders/a", sequence=7, previous=0, now_ns=1000)
    for now_ns in range(1100, 9000, 100):
        table.take("orders/live", sequence=now_ns, previous=0, now_ns=now_ns)
    assert table.take("orders/a", sequence=8, previous=7, now_ns=9000) is Verdict.GAP
    table.open("orders/a", acknowledged=7, now_ns=9000)
    assert table.take("orders/a", sequence=8, previous=7, now_ns=9000) is Verdict.TAKE


def test_a_table_from_a_position_counts_its_origins_as_just_heard() -> None:
    table = DeliveryTable.of({"orders/a": 5, "orders/b": 9})
    start_ns = 50 * ORIGIN_TTL_NS
    table.take("orders/a", sequence=6, previous=5, now_ns=start_ns)
    table.take("orders/a", sequence=7, previous=6, now_ns=start_ns + ORIGIN_TTL_NS)
    assert table.highest == {"orders/a": 7, "orders/b": 9}
    table.take("orders/a", sequence=8, previous=7, now_ns=start_ns + 2 * ORIGIN_TTL_NS)
    assert table.highest == {"orders/a": 8}


heard = st.tuples(st.sampled_from("abcd"), st.booleans(), st.integers(1, 400))


@given(st.lists(heard, max_size=80), st.data())
def test_a_replay_from_any_saved_point_forgets_alike(
    records: list[tuple[str, bool, int]], data: st.DataObject
) -> None:
    def fold(table: DeliveryTable, start: int, stop: int) -> DeliveryTable:
        for place in range(start, stop):
            origin, opens, _ = records[place]
            now_ns = 1000 + sum(step for _, _, step in records[: place + 1])
            if opens:
                table.open(f"orders/{origin}", acknowledged=place, now_ns=now_ns)
            else:
                table.take(f"orders/{origin}", sequence=place + 1, previous=0, now_ns=now_ns)
        return table

    saved = data.draw(st.integers(0, len(records)))
    through = fold(DeliveryTable(ttl_ns=1600), 0, len(records))
    restored = copy.deepcopy(fold(DeliveryTable(ttl_ns=1600), 0, saved))
    assert fold(restored, saved, len(records)) == through
    assert set(through.highest) == set(through.heard_ns)
