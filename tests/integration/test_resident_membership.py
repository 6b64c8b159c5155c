"""Which slot holds which partition: heartbeats, assignments, and a Redis that forgets. Against a real Redis."""

import time

from bettong.edges.redis_store import RedisStore
from bettong.edges.redis_store.membership import RedisMembership, SlotAssignment, read_holders
from bettong.identifiers import PartitionId
from tests.integration.membership_parts import CHECK, answered, emptied, remembered, rewound, task_of
from tests.waiting import eventually

SECOND_NS = 1_000_000_000


def test_a_task_gets_the_assignment_once_and_acquires_what_it_wants_under_it(
    members: RedisMembership,
) -> None:
    task = task_of(0)
    assignment = SlotAssignment(1, {CHECK[0]: 0, CHECK[1]: 1})
    assert members.publish_assignment("run-1", assignment)
    first = answered(members.send_heartbeat(task, -1, wanted=[CHECK[0]]))
    assert first.assignment == assignment
    assert not first.acquired, "it did not know the assignment when it asked"
    second = answered(members.send_heartbeat(task, 1, wanted=[CHECK[0]]))
    assert second.assignment is None
    assert second.acquired == {CHECK[0]}
    assert members.read_members("run-1", range(3)).holders == {CHECK[0]: 0}


def test_each_heartbeat_brings_the_time_by_redis_clock(members: RedisMembership) -> None:
    """Redis runs on this machine."""
    before_ns = time.time_ns()
    redis_ns = answered(members.send_heartbeat(task_of(0), 0)).redis_ns
    assert before_ns - SECOND_NS < redis_ns < time.time_ns() + SECOND_NS


def test_a_partition_is_acquired_when_its_holder_revokes_it_and_not_before(members: RedisMembership) -> None:
    old, new = task_of(0), task_of(1)
    members.send_heartbeat(old, 0, wanted=[CHECK[0]])
    assert not answered(members.send_heartbeat(new, 0, wanted=[CHECK[0]])).acquired
    members.send_heartbeat(old, 0, revoked=[CHECK[0]])
    assert answered(members.send_heartbeat(new, 0, wanted=[CHECK[0]])).acquired == {CHECK[0]}
    assert answered(members.send_heartbeat(old, 0, held=[CHECK[0]])).lost == {CHECK[0]}


def test_a_partition_is_acquired_from_a_slot_that_is_silent(members: RedisMembership) -> None:
    old, new = task_of(0), task_of(1)
    members.send_heartbeat(old, 0, wanted=[CHECK[0]])
    assert members.read_members("run-1", range(2)).members == {0}
    eventually(lambda: answered(members.send_heartbeat(new, 0, wanted=[CHECK[0]])).acquired == {CHECK[0]})
    assert members.read_members("run-1", range(2)).members == {1}


def test_the_next_task_of_a_slot_acquires_at_once_what_the_one_before_held(members: RedisMembership) -> None:
    old = task_of(0)
    members.send_heartbeat(old, 0, wanted=[CHECK[0]])
    new = task_of(0)
    assert answered(members.send_heartbeat(new, 0, wanted=[CHECK[0]])).acquired == {CHECK[0]}
    assert members.send_heartbeat(old, 0, held=[CHECK[0]]) is None
    assert members.read_members("run-1", range(2)).holders == {CHECK[0]: 0}


def test_a_new_run_supersedes_all_tasks_and_the_driver_before(members: RedisMembership) -> None:
    old = task_of(0)
    members.send_heartbeat(old, 0, wanted=[CHECK[0]])
    members.begin_run("run-2")
    assert members.send_heartbeat(old, 0, held=[CHECK[0]]) is None
    assert members.read_members("run-2", range(2)).holders == {}
    assert not members.publish_assignment("run-1", SlotAssignment(5, {}))
    assert members.read_members("run-1", range(2)).epoch is None


def test_slots_claim_again_what_they_hold_when_redis_has_forgotten_it(
    members: RedisMembership, members_store: RedisStore
) -> None:
    tasks = [task_of(slot) for slot in (0, 1)]
    members.publish_assignment("run-1", SlotAssignment(1, {CHECK[0]: 0, CHECK[1]: 1}))
    for slot, task in enumerate(tasks):
        members.send_heartbeat(task, 1, wanted=[CHECK[slot]])
    emptied(members_store)
    for slot, task in enumerate(tasks):
        response = answered(members.send_heartbeat(task, 1, held=[CHECK[slot]], wanted=[CHECK[1 - slot]]))
        assert not response.lost
        assert not response.acquired, "without an assignment nobody acquires anything new"
    assert members.read_members("run-1", range(2)).holders == {CHECK[0]: 0, CHECK[1]: 1}


def test_a_partition_that_a_slot_does_not_know_it_acquired_goes_to_whom_the_next_assignment_names(
    members: RedisMembership,
) -> None:
    unheard, other = task_of(0), task_of(1)
    members.publish_assignment("run-1", SlotAssignment(1, {CHECK[0]: 0}))
    members.send_heartbeat(unheard, 1, wanted=[CHECK[0]])  # carried out, and its response lost
    members.publish_assignment("run-1", SlotAssignment(2, {CHECK[0]: 1}))
    assert not answered(members.send_heartbeat(other, 2, wanted=[CHECK[0]])).acquired
    members.send_heartbeat(unheard, 2)
    assert answered(members.send_heartbeat(other, 2, wanted=[CHECK[0]])).acquired == {CHECK[0]}


def test_many_such_partitions_go_in_a_few_heartbeats(members: RedisMembership) -> None:
    unheard, other = task_of(0), task_of(1)
    partitions = [PartitionId("check", number) for number in range(40)]
    members.send_heartbeat(unheard, 0, wanted=partitions)
    members.send_heartbeat(other, 0, wanted=partitions)
    for _ in range(3):
        members.send_heartbeat(unheard, 0)
        members.send_heartbeat(other, 0, wanted=partitions)
    assert members.read_members("run-1", range(2)).holders == dict.fromkeys(partitions, 1)


def test_to_a_redis_that_comes_back_older_it_is_written_again_who_holds_what(
    members: RedisMembership, members_store: RedisStore
) -> None:
    before, after = task_of(0), task_of(1)
    members.publish_assignment("run-1", SlotAssignment(1, {CHECK[0]: 0}))
    members.send_heartbeat(before, 1, wanted=[CHECK[0]])
    older = remembered(members_store)
    members.publish_assignment("run-1", SlotAssignment(2, {CHECK[0]: 1}))
    members.send_heartbeat(before, 2, revoked=[CHECK[0]])
    assert answered(members.send_heartbeat(after, 2, wanted=[CHECK[0]])).acquired == {CHECK[0]}
    rewound(members_store, older)
    members.send_heartbeat(before, 2)
    response = answered(members.send_heartbeat(after, 2, held=[CHECK[0]]))
    assert response.lost == {CHECK[0]}
    assert response.assignment is None, "the newest assignment that a task got stays the newest"
    members.send_heartbeat(before, 2)
    members.publish_assignment("run-1", SlotAssignment(3, {CHECK[0]: 1}))
    assert answered(members.send_heartbeat(after, 3, wanted=[CHECK[0]])).acquired == {CHECK[0]}


def test_a_slot_that_still_holds_what_another_one_is_refused_keeps_it(members: RedisMembership) -> None:
    folding, other = task_of(0), task_of(1)
    members.send_heartbeat(folding, 0, wanted=[CHECK[0]])
    assert not answered(members.send_heartbeat(other, 0, wanted=[CHECK[0]])).acquired
    assert not answered(members.send_heartbeat(folding, 0, held=[CHECK[0]])).lost
    assert not answered(members.send_heartbeat(other, 0, wanted=[CHECK[0]])).acquired
    assert answered(members.send_heartbeat(folding, 0, wanted=[CHECK[0]])).acquired == {CHECK[0]}
    assert members.read_members("run-1", range(2)).holders == {CHECK[0]: 0}


def test_who_looks_on_sees_which_slots_hold_what_and_live(
    members: RedisMembership, members_store: RedisStore
) -> None:
    assert read_holders(members_store).slots == {}
    members.send_heartbeat(task_of(0), 0, wanted=[CHECK[0]])
    members.send_heartbeat(task_of(7), 0, wanted=[CHECK[1]])
    holders = members_store.key("resident", "holders")
    garbage = {b"check": b"0:1", b"check/2": b"x:\xff", b"\xff/3": b"0:1", b"check/3": b"12"}
    members_store.ask("writing garbage", lambda client: client.hset(holders, mapping=garbage))
    found = read_holders(members_store)
    assert found.slots == {CHECK[0]: 0, CHECK[1]: 7}
    assert found.incarnations.keys() == {0, 7}
    assert found.incarnations[7] > found.incarnations[0]

    def left() -> bool:
        members.send_heartbeat(task_of(7), 0, wanted=[CHECK[1]])
        return read_holders(members_store).slots == {CHECK[1]: 7}

    eventually(left, what="slot 0 is silent and holds nothing any more")
