"""Delivery tables and event clocks of new partitions: each rule by itself."""

from __future__ import annotations

import pytest

from bettong.delivery import DeliveryTable, Verdict
from bettong.errors import NotAtRestError
from bettong.identifiers import Origin, SequenceNumber
from bettong.inspection.repartition import check_complete
from bettong.v1 import snapshot_pb2
from bettong.v1.snapshot_pb2 import Snapshot
from bettong.worker.delivery_stored import delivery_of, stored_delivery
from bettong.worker.repartitioning import delivery, event_clocks

CLIENT = Origin("orders/feed")
STAGE = Origin("regions/orders/2")
S_NS = 1_000_000_000


def table(
    highest: dict[Origin, int], *, age_s: int = 100, heard_s: int = 90, ended: tuple[Origin, ...] = ()
) -> snapshot_pb2.DeliveryTable:
    """A table of origins that were heard from, or have ended, at one age."""
    numbers = {origin: SequenceNumber(each) for origin, each in highest.items()}
    return stored_delivery(
        DeliveryTable(
            highest=numbers,
            heard_ns={origin: heard_s * S_NS for origin in numbers if origin not in ended},
            ended_ns=dict.fromkeys(ended, heard_s * S_NS),
            age_ns=age_s * S_NS,
            clock_ns=age_s * S_NS,
        )
    )


def names(found: list[delivery.Unsettled]) -> list[Origin]:
    return [each.origin for each in found]


def test_a_client_is_known_by_its_receipts_or_by_what_all_partitions_took() -> None:
    part = [table({CLIENT: 7}), table({CLIENT: 5})]
    # Frame 5 is complete, for each partition takes frames in order.
    assert delivery.unsettled(part, {}) == [delivery.Unsettled(CLIENT, SequenceNumber(5), SequenceNumber(7))]
    known = {CLIENT: SequenceNumber(6)}
    assert delivery.unsettled(part, known) == [
        delivery.Unsettled(CLIENT, SequenceNumber(6), SequenceNumber(7))
    ]
    assert names(delivery.unsettled(part, {CLIENT: SequenceNumber(6)})) == [CLIENT]
    assert names(delivery.unsettled(part, {CLIENT: SequenceNumber(7)})) == []
    assert names(delivery.unsettled([table({CLIENT: 7}), table({CLIENT: 7})], {})) == []
    # A partition that never heard from it may lack a part of frame 7.
    assert names(delivery.unsettled([table({CLIENT: 7}), table({})], {})) == [CLIENT]
    assert names(delivery.unsettled([table({CLIENT: 7})], {})) == []


def test_a_client_that_has_ended_or_sends_one_message_is_known() -> None:
    ended = [table({CLIENT: 7}, ended=(CLIENT,)), table({CLIENT: 5})]
    assert names(delivery.unsettled(ended, {})) == []
    # It began again since, and has sent more.
    begun = [table({CLIENT: 7}, ended=(CLIENT,)), table({CLIENT: 9})]
    assert names(delivery.unsettled(begun, {})) == [CLIENT]
    letter = Origin("orders/dead-letter.0.12.3")
    assert names(delivery.unsettled([table({letter: 1}), table({})], {})) == []


def test_stages_are_drained_and_not_asked_for_receipts() -> None:
    assert names(delivery.unsettled([table({STAGE: 7}), table({})], {})) == []


def test_a_lost_frame_of_a_stage_is_named_and_one_of_a_client_is_not() -> None:
    tables = [table({}), table({})]
    for origin in (STAGE, CLIENT):
        tables[0].missed.add(origin=origin, sequence=9, previous=8)
    assert delivery.lost_frames(tables) == [STAGE]


def test_every_new_partition_knows_the_highest_sequence_and_is_as_young_as_the_youngest() -> None:
    old = [table({CLIENT: 7, STAGE: 3}, age_s=100, heard_s=90), table({CLIENT: 5}, age_s=500, heard_s=300)]
    found = delivery_of(delivery.merged(old))
    assert found.highest == {CLIENT: 7, STAGE: 3}
    assert found.age_ns == 500 * S_NS
    assert found.heard_ns == {CLIENT: 490 * S_NS, STAGE: 490 * S_NS}
    assert found.clock_ns == 500 * S_NS
    again = found.take(CLIENT, sequence=SequenceNumber(7), previous=SequenceNumber(5), now_ns=0)
    assert again is Verdict.DUPLICATE
    new = found.take(CLIENT, sequence=SequenceNumber(8), previous=SequenceNumber(7), now_ns=0)
    assert new is Verdict.TAKE


def test_an_origin_that_has_ended_is_forgotten_as_soon_as_before() -> None:
    found = delivery_of(
        delivery.merged([table({CLIENT: 7}, ended=(CLIENT,), heard_s=95), table({CLIENT: 3}, heard_s=20)])
    )
    assert found.ended_ns == {CLIENT: 95 * S_NS}
    assert found.heard_ns == {}


IDLE_NS = {"orders": None, "regions/orders": None}


def clock(
    watermark_ns: int, origins: dict[str, int], *, awaited: tuple[str, ...] = (), now_ns: int = 1000
) -> Snapshot:
    found = Snapshot(now_ns=now_ns)
    found.event_clock.watermark_ns = found.event_clock.reached_ns = watermark_ns
    for origin, own_ns in origins.items():
        found.event_clock.origins.add(origin=origin, watermark_ns=own_ns, heard_ns=now_ns - 10)
    found.event_clock.awaited.extend(awaited)
    return found


def test_event_time_is_where_the_slowest_partition_was() -> None:
    old = [clock(50, {"orders/a": 50}), clock(40, {"orders/a": 40, "orders/b": 60}), clock(0, {}, now_ns=0)]
    found = event_clocks.merged(old, [], 4, log_ns=1000, idle_ns=IDLE_NS)
    assert (found.watermark_ns, found.reached_ns) == (40, 40)
    assert {each.origin: each.watermark_ns for each in found.origins} == {"orders/a": 40, "orders/b": 60}
    assert not found.awaited


def test_a_client_whose_time_is_unknown_somewhere_still_holds_it() -> None:
    old = [clock(50, {"orders/a": 50}), clock(50, {"orders/a": 0})]
    found = event_clocks.merged(old, [], 1, log_ns=1000, idle_ns=IDLE_NS)
    assert {each.origin: each.watermark_ns for each in found.origins} == {"orders/a": 0}


def test_a_partition_whose_log_ends_earlier_is_as_far_as_the_time_since_takes_it() -> None:
    # Nobody is live there: its watermark has advanced by the 900 since its last record.
    old = [clock(950, {}, now_ns=1000), clock(70, {}, now_ns=100)]
    found = event_clocks.merged(old, [], 2, log_ns=1000, idle_ns=IDLE_NS)
    assert (found.watermark_ns, found.reached_ns) == (950, 70)
    # A client holds the watermark until it falls idle, at 90 + 200; the other partition has heard from it since.
    old = [clock(950, {"orders/a": 960}, now_ns=1000), clock(70, {"orders/a": 70}, now_ns=100)]
    found = event_clocks.merged(old, [], 2, log_ns=1000, idle_ns={"orders": 200})
    assert (found.watermark_ns, found.reached_ns) == (70 + 1000 - 290, 70)
    assert [(each.origin, each.watermark_ns, each.heard_ns) for each in found.origins] == [
        ("orders/a", 960, 990)
    ]


def test_the_partitions_of_the_stage_before_are_live_until_they_say_how_far_they_are() -> None:
    old = [
        clock(50, {"regions/orders/0": 70}, awaited=("regions/orders/1",)),
        clock(60, {"regions/orders/7": 60}),
    ]
    found = event_clocks.merged(old, ["regions/orders"], 3, log_ns=1000, idle_ns=IDLE_NS)
    assert [(each.origin, each.watermark_ns, each.heard_ns) for each in found.origins] == [
        (f"regions/orders/{number}", 50, 1000) for number in range(3)
    ]
    assert not found.awaited


@pytest.mark.parametrize("now_ns", [0, 1000])
def test_a_stage_before_that_was_never_heard_of_is_awaited_in_all_its_partitions(now_ns: int) -> None:
    old = [clock(0, {}, awaited=("regions/orders/0", "regions/orders/1"), now_ns=now_ns)]
    found = event_clocks.merged(old, ["regions/orders"], 3, log_ns=now_ns, idle_ns=IDLE_NS)
    assert list(found.awaited) == [f"regions/orders/{number}" for number in range(3)]
    assert not found.origins


def test_every_client_that_is_waited_for_is_named_and_a_source_can_be_given_up() -> None:
    clients = {Origin(f"orders/till-{number}"): 7 for number in range(60)}
    heads = {"orders": [Snapshot(delivery=table(clients)), Snapshot(delivery=table({}))]}
    with pytest.raises(NotAtRestError, match="of 60 clients have arrived completely") as refused:
        check_complete(heads, {}, [])
    assert all(f"{client} (frames 1 to 7)" in str(refused.value) for client in clients)
    check_complete(heads, {}, ["orders/*"])
    check_complete(heads, {}, list(clients))
    # It has sent one more since, or its last one again, and has a receipt.
    check_complete(heads, dict.fromkeys(clients, SequenceNumber(7)), [])
