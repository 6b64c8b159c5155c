"""When the driver of a resident processor assigns partitions anew, and what it says meanwhile. Against a real Redis."""

import itertools
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import structlog

from bettong.edges.redis_store import RedisStore
from bettong.edges.redis_store.membership import RedisMembership, SlotAssignment, Task
from bettong.errors import StoreUnavailableError, SupersededError
from bettong.identifiers import PartitionId
from bettong.local.addresses import LOOPBACK, free_ports
from bettong.local.redis_server import RedisServer
from bettong_processor.resident.assignor import GATHER_S, Assignor
from tests.integration.membership_parts import CHECK, TTL_MS, answered, emptied, remembered, rewound, task_of
from tests.waiting import eventually


class Unanswered(RedisMembership):
    """Of which publishing is carried out, and the answer lost, once."""

    answers = False

    def publish_assignment(self, run: str, assignment: SlotAssignment) -> bool:
        """See RedisMembership."""
        done = super().publish_assignment(run, assignment)
        if not self.answers:
            self.answers = True
            raise StoreUnavailableError("the answer was lost")
        return done


class Assigned:
    """An assignor, with a clock that stands unless another is given, and slots that send heartbeats when asked to."""

    def __init__(
        self, members: RedisMembership, store: RedisStore, clock: Callable[[], float] | None = None
    ) -> None:
        self.now_s = 100.0
        self.members, self.store = members, store
        self.ended: list[Task] = []
        self.assignor = Assignor(
            members,
            "run-1",
            CHECK,
            grace_s=2.0,
            has_ended=lambda task, silent_ms: silent_ms > 0 and task in self.ended,
            clock=clock or (lambda: self.now_s),
            log=structlog.get_logger(),
        )
        self.tasks: dict[int, Task] = {}

    def send_heartbeats(self, *slots: int) -> None:
        for slot in slots:
            task = self.tasks.setdefault(slot, task_of(slot))
            self.members.send_heartbeat(task, -1)

    def hold(self, slot: int, *partitions: PartitionId) -> None:
        """A heartbeat of a slot that holds these, and has revoked all others."""
        task = self.tasks.setdefault(slot, task_of(slot))
        self.members.send_heartbeat(task, -1, held=partitions, revoked=set(CHECK) - set(partitions))

    def newest(self, known: int = -1) -> SlotAssignment | None:
        """What slot 9, that nobody asks about, gets when it knows the assignment of this epoch."""
        task = Task(run="run-1", slot=9, incarnation=1)
        return answered(self.members.send_heartbeat(task, known)).assignment

    def slots(self) -> dict[PartitionId, int]:
        """As it is now."""
        assignment = self.newest()
        assert assignment is not None
        return dict(assignment.slots)


@pytest.fixture
def assigned(members: RedisMembership, members_store: RedisStore) -> Assigned:
    return Assigned(members, members_store)


def test_the_first_assignment_waits_for_all_slots_but_not_for_long(assigned: Assigned) -> None:
    assigned.assignor.update_assignment(2)
    assert assigned.assignor.waits_for().startswith("no slot lives")
    assigned.send_heartbeats(0)
    assigned.assignor.update_assignment(2)
    assert assigned.slots() == {}
    assigned.now_s += GATHER_S
    assigned.send_heartbeats(0)
    assigned.assignor.update_assignment(2)
    assert set(assigned.slots().values()) == {0}
    assigned.send_heartbeats(0, 1)
    assigned.assignor.update_assignment(2)
    assert set(assigned.slots().values()) == {0, 1}


def test_partitions_of_a_slot_that_is_silent_go_to_the_others_and_come_back(assigned: Assigned) -> None:
    assigned.send_heartbeats(0, 1)
    assigned.assignor.update_assignment(2)
    before = assigned.slots()

    def gone() -> bool:
        assigned.send_heartbeats(1)
        assigned.assignor.update_assignment(2)
        return set(assigned.slots().values()) == {1}

    eventually(gone)
    assigned.send_heartbeats(0, 1)
    assigned.assignor.update_assignment(2)
    after = assigned.slots()
    assert sorted(after.values()) == sorted(before.values())


@pytest.fixture
def patient(members_store: RedisStore) -> Assigned:
    """Slots are waited for so long that only word of their tasks' end can free what they hold."""
    members = RedisMembership(members_store, ttl_ms=120_000, silent_ms=400)
    members.begin_run("run-1")
    return Assigned(members, members_store)


def test_partitions_of_a_task_that_has_ended_go_to_others_without_waiting_for_its_time(
    patient: Assigned,
) -> None:
    patient.send_heartbeats(0, 1)
    patient.assignor.update_assignment(2)
    old, new = patient.tasks[0], patient.tasks[1]
    patient.members.send_heartbeat(old, 1, wanted=CHECK)
    patient.ended.append(old)

    eventually(lambda: patient.members.read_members("run-1", [0]).silent.keys() == {old})
    patient.send_heartbeats(1)
    patient.assignor.update_assignment(2)
    assert set(patient.slots().values()) == {1}, "at the first check that finds it silent"
    assert answered(patient.members.send_heartbeat(new, 2, wanted=CHECK)).acquired == set(CHECK)


def test_a_check_that_took_long_dismisses_nobody_for_all_may_look_silent_then(
    patient: Assigned, members_store: RedisStore
) -> None:
    clock = itertools.count(step=0.3)
    slow = Assigned(patient.members, members_store, lambda: next(clock))
    slow.send_heartbeats(0, 1)
    slow.ended.append(slow.tasks[0])
    eventually(lambda: slow.tasks[0] in slow.members.read_members("run-1", range(2)).silent)
    slow.assignor.update_assignment(2)
    assert slow.members.read_members("run-1", range(2)).members == {0, 1}


def test_a_slot_whose_task_runs_stays_however_silent_it_is(patient: Assigned) -> None:
    patient.send_heartbeats(0, 1)
    patient.assignor.update_assignment(2)
    eventually(
        lambda: patient.members.read_members("run-1", range(2)).silent.keys() == set(patient.tasks.values())
    )
    patient.assignor.update_assignment(2)
    assert patient.members.read_members("run-1", range(2)).members == {0, 1}
    patient.ended.append(patient.tasks[1])
    patient.assignor.update_assignment(2)
    assert patient.members.read_members("run-1", range(2)).members == {0}


def test_a_task_that_sends_heartbeats_is_not_dismissed_although_it_is_thought_to_have_ended(
    patient: Assigned,
) -> None:
    """Spark may give up a task that lives on: moving its partitions to and fro would be no use."""
    patient.send_heartbeats(0, 1)
    patient.ended += patient.tasks.values()
    eventually(lambda: len(patient.members.read_members("run-1", range(2)).silent) == 2)
    patient.send_heartbeats(0)
    assert not patient.members.dismiss_task(patient.tasks[0]), "it sent a heartbeat since it was found silent"
    patient.assignor.update_assignment(2)
    assert patient.members.read_members("run-1", range(2)).members == {0}


def test_word_of_an_old_task_does_not_dismiss_the_next_one_of_its_slot(patient: Assigned) -> None:
    patient.send_heartbeats(0)
    old = patient.tasks.pop(0)
    eventually(lambda: patient.members.read_members("run-1", [0]).silent.keys() == {old})
    patient.send_heartbeats(0)
    eventually(lambda: patient.members.read_members("run-1", [0]).silent.keys() == {patient.tasks[0]})
    assert not patient.members.dismiss_task(old)
    assert patient.members.read_members("run-1", range(1)).members == {0}


def test_a_dismissed_task_that_lives_after_all_is_a_member_again_with_its_next_heartbeat(
    patient: Assigned,
) -> None:
    patient.send_heartbeats(0)
    task = patient.tasks[0]
    patient.members.send_heartbeat(task, 0, wanted=[CHECK[0]])
    eventually(lambda: patient.members.read_members("run-1", [0]).silent)
    assert patient.members.dismiss_task(task)
    assert patient.members.read_members("run-1", range(1)).holders == {}
    assert not answered(patient.members.send_heartbeat(task, 0, held=[CHECK[0]])).lost, (
        "nobody else has acquired it"
    )
    assert patient.members.read_members("run-1", range(1)).holders == {CHECK[0]: 0}


def test_after_redis_has_forgotten_all_no_slot_is_taken_for_dead_too_soon(assigned: Assigned) -> None:
    assigned.send_heartbeats(0, 1)
    assigned.assignor.update_assignment(2)
    before = assigned.slots()
    emptied(assigned.store)
    assigned.assignor.update_assignment(2)
    assert assigned.slots() == before
    assigned.now_s += 1.0
    assigned.send_heartbeats(1)
    assigned.assignor.update_assignment(2)
    assert assigned.slots() == before
    assigned.now_s += 2.0
    assigned.send_heartbeats(1)
    assigned.assignor.update_assignment(2)
    assert set(assigned.slots().values()) == {1}


def test_a_redis_that_comes_back_older_has_the_newest_assignment_again_at_the_next_check(
    assigned: Assigned,
) -> None:
    assigned.send_heartbeats(0, 1)
    assigned.assignor.update_assignment(2)
    older = remembered(assigned.store)

    def gone() -> bool:
        assigned.send_heartbeats(1)
        assigned.assignor.update_assignment(2)
        return set(assigned.slots().values()) == {1}

    eventually(gone)
    known = assigned.newest()
    assert known is not None
    rewound(assigned.store, older)
    assigned.send_heartbeats(1)
    assigned.assignor.update_assignment(2)
    assert set(assigned.slots().values()) == {1}
    anew = assigned.newest(known.epoch)
    assert anew is not None, "a task takes it whatever it got before"
    assert anew.slots == known.slots


def test_an_assignment_whose_writing_was_not_answered_is_not_taken_for_the_next_one(
    members: RedisMembership, members_store: RedisStore
) -> None:
    unanswered = Unanswered(members_store, ttl_ms=TTL_MS)
    assigned = Assigned(unanswered, members_store)
    assigned.send_heartbeats(0)
    assigned.assignor.update_assignment(1)
    first = assigned.newest()
    assert first is not None
    assert set(first.slots.values()) == {0}
    assigned.send_heartbeats(0, 1)
    assigned.assignor.update_assignment(2)
    after = assigned.newest(first.epoch)
    assert after is not None, "who knows the first gets the second"
    assert set(after.slots.values()) == {0, 1}


def without_heartbeats_of_slot_0(assigned: Assigned) -> set[int]:
    """The slots that partitions are assigned to, once the TTL of slot 0 has ended and slot 1 lives."""

    def ended() -> bool:
        assigned.send_heartbeats(1)
        return assigned.members.read_members("run-1", range(2)).members == {1}

    eventually(ended)
    assigned.assignor.update_assignment(2)
    return set(assigned.slots().values())


def with_all_heartbeats(assigned: Assigned) -> set[int]:
    assigned.send_heartbeats(0, 1)
    assigned.assignor.update_assignment(2)
    return set(assigned.slots().values())


def test_after_a_slot_was_given_up_that_was_only_slow_slots_are_waited_for_longer(assigned: Assigned) -> None:
    """Else a message that takes longer than the TTL moves its partition to and fro, and no slot gets beyond it."""
    assert with_all_heartbeats(assigned) == {0, 1}
    assert without_heartbeats_of_slot_0(assigned) == {1}
    assert with_all_heartbeats(assigned) == {0, 1}, "its own task is back"
    assigned.now_s += 3.0
    assert with_all_heartbeats(assigned) == {0, 1}
    assigned.now_s += 3.0
    assert without_heartbeats_of_slot_0(assigned) == {0, 1}
    assigned.now_s += 1.0
    assert without_heartbeats_of_slot_0(assigned) == {1}
    assert with_all_heartbeats(assigned) == {0, 1}
    assigned.now_s += 7.0
    assert without_heartbeats_of_slot_0(assigned) == {0, 1}, "twice as long"
    assert with_all_heartbeats(assigned) == {0, 1}
    assigned.now_s += 600.0
    assert with_all_heartbeats(assigned) == {0, 1}
    assert without_heartbeats_of_slot_0(assigned) == {1}, "that was long ago"


def test_a_slot_that_gets_another_task_was_not_slow(assigned: Assigned) -> None:
    assert with_all_heartbeats(assigned) == {0, 1}
    assert without_heartbeats_of_slot_0(assigned) == {1}
    assigned.tasks.pop(0)
    assert with_all_heartbeats(assigned) == {0, 1}
    assert without_heartbeats_of_slot_0(assigned) == {1}


def test_a_redis_that_stands_still_for_longer_than_slots_live_moves_nothing(
    tmp_path: Path, unique_name: Callable[..., str]
) -> None:
    with RedisServer(tmp_path / "redis") as server, RedisStore(server.url, unique_name("still")) as store:
        members = RedisMembership(store, ttl_ms=TTL_MS)
        members.begin_run("run-1")
        assigned = Assigned(members, store, time.monotonic)
        assigned.send_heartbeats(0, 1)
        assigned.assignor.update_assignment(2)
        before = assigned.slots()
        assert set(before.values()) == {0, 1}
        store.ask("standing still", lambda client: client.client_pause(3 * TTL_MS))
        assigned.assignor.update_assignment(2)
        assigned.send_heartbeats(1)  # the heartbeat of slot 0 comes a moment later
        assigned.assignor.update_assignment(2)
        assert assigned.slots() == before


def test_a_partition_that_nobody_holds_is_named_when_it_lasts(assigned: Assigned) -> None:
    assigned.hold(0, *CHECK)
    assigned.assignor.update_assignment(1)
    assert assigned.assignor.waits_for() == ""
    assigned.hold(0, *CHECK[1:])
    assigned.assignor.update_assignment(1)
    assert assigned.assignor.waits_for() == "", "it moves"
    assigned.now_s += 5.0
    assigned.hold(0, CHECK[2], CHECK[3])
    assigned.assignor.update_assignment(1)
    assert assigned.assignor.waits_for() == "no slot holds check/0"
    assigned.hold(0, *CHECK)
    assigned.assignor.update_assignment(1)
    assert assigned.assignor.waits_for() == ""


def test_at_the_start_what_has_no_holder_yet_is_named_at_once_and_not_all_of_it(assigned: Assigned) -> None:
    assigned.send_heartbeats(0)
    assigned.assignor.update_assignment(1)
    assert assigned.assignor.waits_for() == "no slot holds check/0, check/1, check/2 and 1 more"
    assigned.hold(0, *CHECK)
    assigned.assignor.update_assignment(1)
    assert assigned.assignor.waits_for() == ""


def test_a_redis_that_is_away_changes_nothing(unique_name: Callable[..., str]) -> None:
    with RedisStore(f"redis://{LOOPBACK}:{free_ports(1)[0]}", unique_name("away")) as store:
        assigned = Assigned(RedisMembership(store, ttl_ms=TTL_MS), store)
        assigned.assignor.update_assignment(2)
        assert not assigned.assignor.stop_slots()


def test_slots_get_the_order_to_stop(assigned: Assigned) -> None:
    assigned.send_heartbeats(0)
    assert assigned.assignor.stop_slots()
    response = answered(assigned.members.send_heartbeat(assigned.tasks[0], -1))
    assert response.assignment is not None
    assert response.assignment.stop


def test_a_processor_that_another_one_has_followed_says_so(assigned: Assigned) -> None:
    assigned.send_heartbeats(0)
    assigned.members.begin_run("run-2")
    with pytest.raises(SupersededError, match="another processor of this application has begun"):
        assigned.assignor.update_assignment(1)
