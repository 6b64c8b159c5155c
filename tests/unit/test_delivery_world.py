"""Effectively once, simulated: any interleaving of accidents ends with each message once, in order.

A seed decides what happens, `steps` how much of it before everything heals. A failure prints both, and shrinks to few
steps; `World(seed).run(steps)` does it again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from bettong.delivery import DeliveryTable, Verdict, judge
from bettong.edges.redis_store import Claim, Granted
from bettong.identifiers import Origin, SequenceNumber
from bettong.ingest.numbering import Numbering
from bettong.ingest.session import Session, Taken
from bettong.v1.snapshot_pb2 import DeliveryTable as StoredDelivery
from bettong.worker.delivery_stored import delivery_of
from bettong.worker.output.numbering import SentTable
from bettong_sender.ledger import Entry
from tests.simulation.delivery.parts import Worker
from tests.simulation.delivery.world import World
from tests.simulation.lease_model import MemoryLeases

# Others each time. Twice as many as find each of the parts that are broken below; those of `make faults` take a minute.
INTERLEAVINGS = 4_000
INTERLEAVINGS_LONG = 20_000
# Of one example: what Hypothesis does about an example takes as long as a world.
WORLDS = 20
STEPS_MAX = 40
SEEDS_MAX = 3_000

_answered, _begin, _end = Numbering.answered, Session._begin, DeliveryTable.end


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "interleavings", [INTERLEAVINGS, pytest.param(INTERLEAVINGS_LONG, marks=pytest.mark.long)]
)
def test_whatever_crashes_is_lost_repeated_or_late_each_message_counts_once_and_in_order(
    interleavings: int,
) -> None:
    @settings(max_examples=interleavings // WORLDS, suppress_health_check=[HealthCheck.too_slow])
    @given(seeds=st.integers(0, 2**63), steps=st.integers(1, STEPS_MAX))
    def counts_once_and_in_order(seeds: int, steps: int) -> None:
        for seed in range(seeds, seeds + WORLDS):
            world = World(seed)
            try:
                world.run(steps)
            except AssertionError:
                note("\n".join([f"World({seed}).run({steps})", *world.trace]))
                raise

    counts_once_and_in_order()


def test_the_simulation_does_what_it_is_about() -> None:
    seen: Counter[str] = Counter()
    for seed in range(500):
        world = World(seed)
        world.run(STEPS_MAX)
        seen += world.seen
        for worker in world.workers:
            seen["duplicates"] += worker.counters.duplicates
            seen["gaps"] += worker.counters.gaps
        for receiver in world.receivers:
            seen["duplicate results"] += receiver.counts.duplicates
    rare = {what: count for what, count in seen.items() if count < 5}
    assert not rare
    assert set(seen) >= {
        "appended twice", "came", "client crashed", "clock jumped", "clock ran away", "days passed",
        "duplicate results", "duplicates", "ended", "forgotten", "gaps", "killed", "killed while it ended",
        "known to be durable", "lost", "receiver crashed", "Redis came back older", "Redis lost its data",
        "refused", "results lost", "sender crashed", "session aborted", "session closed", "session finished",
        "session left behind", "session taken over", "settling", "snapshot",
        "stranger came and went", "stranger found out", "waits", "worker crashed",
    }  # fmt: skip


def _takes_gaps(highest: int, *, sequence: int, previous: int) -> Verdict:
    return judge(
        SequenceNumber(highest),
        sequence=SequenceNumber(sequence),
        previous=SequenceNumber(min(previous, highest)),
    )


def _takes_duplicates(highest: int, *, sequence: int, previous: int) -> Verdict:
    return judge(
        SequenceNumber(min(highest, sequence - 1)),
        sequence=SequenceNumber(sequence),
        previous=SequenceNumber(previous),
    )


def _opens_nothing(table: DeliveryTable, origin: Origin, *, acknowledged: int, now_ns: int) -> None:
    del acknowledged
    table.highest.setdefault(origin, SequenceNumber(0))
    table._hear(origin, now_ns)


def _follows_the_clock(table: DeliveryTable, now_ns: int) -> None:
    table.age_ns = table.clock_ns = max(table.clock_ns, now_ns)


def _never_ends(table: DeliveryTable, origin: Origin, *, acknowledged: int, now_ns: int, kept: bool) -> None:
    del kept
    table.open(origin, acknowledged=SequenceNumber(acknowledged), now_ns=now_ns)


def _forgets_at_once_who_has_ended(
    table: DeliveryTable, origin: Origin, *, acknowledged: int, now_ns: int, kept: bool
) -> None:
    _end(table, origin, acknowledged=SequenceNumber(acknowledged), now_ns=now_ns, kept=kept)
    if not kept and table.ended_ns.pop(origin, None) is not None:
        del table.highest[origin]


def _forgets_whose_frames_may_come_again(
    table: DeliveryTable, origin: Origin, *, acknowledged: int, now_ns: int, kept: bool
) -> None:
    _end(table, origin, acknowledged=SequenceNumber(acknowledged), now_ns=now_ns, kept=kept)
    if kept and table.ended_ns.pop(origin, None) is not None:
        del table.highest[origin]


def _keeps_in_a_snapshot_who_has_ended(stored: StoredDelivery) -> DeliveryTable:
    table = delivery_of(stored)
    table.heard_ns |= table.ended_ns
    table.ended_ns.clear()
    return table


def _ends_no_partition(session: Session, now_s: float, now_ns: int, *, kept: bool) -> Taken:
    del session, now_s, now_ns, kept
    return Taken([])


def _forgets_what_was_sent(table: SentTable, origin: Origin, partition: int, offset: int) -> tuple[int, int]:
    del table, origin, partition
    return (offset + 1) << 20, 0


def _never_far(numbering: Numbering, partition: int, offset: int, *, opens: bool) -> bool:
    _answered(numbering, partition, offset, opens=opens)
    return True


def _opens_over_what_is_on_its_way(numbering: Numbering, partition: int, now_s: float) -> bool:
    del numbering, partition, now_s
    return True


def _believes_the_client(session: Session, durable: int) -> None:
    _begin(session, SequenceNumber(max(durable, session.claimed)))


def _grants_to_anybody(leases: MemoryLeases, claim: Claim) -> Granted:
    del leases, claim
    return Granted(SequenceNumber(0))


@pytest.mark.parametrize(
    ("owner", "name", "wrong"),
    [
        ("bettong.delivery", "judge", _takes_gaps),
        ("bettong.delivery", "judge", _takes_duplicates),
        (DeliveryTable, "open", _opens_nothing),
        (DeliveryTable, "end", _never_ends),
        (DeliveryTable, "end", _forgets_at_once_who_has_ended),
        (DeliveryTable, "end", _forgets_whose_frames_may_come_again),
        ("bettong.worker.partition", "delivery_of", _keeps_in_a_snapshot_who_has_ended),
        (Session, "end", _ends_no_partition),
        (SentTable, "number", _forgets_what_was_sent),
        (DeliveryTable, "_grow_older", _follows_the_clock),
        (Numbering, "answered", _never_far),
        (Numbering, "must_open", _opens_over_what_is_on_its_way),
        (Session, "_begin", _believes_the_client),
        (Entry, "is_durable", Entry.is_answered),
        (MemoryLeases, "notice_restart", MemoryLeases.grow_old),
        (MemoryLeases, "acquire", _grants_to_anybody),
        (Worker, "_is_durable", lambda _worker, _run: True),
    ],
)
def test_each_part_of_the_rule_is_needed(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, wrong: Callable[..., Any]
) -> None:
    """With that part broken the simulation fails; so the simulation would find it."""
    monkeypatch.setattr(*((f"{owner}.{name}", wrong) if isinstance(owner, str) else (owner, name, wrong)))
    for seed in range(SEEDS_MAX):
        try:
            World(seed).run(STEPS_MAX)
        except AssertionError:
            return
    raise AssertionError(f"{SEEDS_MAX} interleavings, and none of them fails")
