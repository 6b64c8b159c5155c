"""When the driver of a resident processor deals anew, and what it says meanwhile. Against a real Redis."""

import itertools
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import structlog

from bettong.edges.redis_store import RedisStore
from bettong.edges.redis_store.membership import Deal, RedisMembership, Task
from bettong.errors import StoreUnavailableError, SupersededError
from bettong.local.addresses import LOOPBACK, free_ports
from bettong.local.redis_server import RedisServer
from bettong_processor.resident.dealer import GATHER_S, Dealer
from tests.integration.membership_parts import TTL_MS, emptied, heard, remembered, rewound, task_of
from tests.waiting import eventually

PLACES = ["check/0", "check/1", "check/2", "check/3"]


class Unanswered(RedisMembership):
    """Of which publishing is carried out, and the answer lost, once."""

    answers = False

    def publish(self, run: str, deal: Deal) -> bool:
        """See RedisMembership."""
        done = super().publish(run, deal)
        if not self.answers:
            self.answers = True
            raise StoreUnavailableError("the answer was lost")
        return done


class Dealt:
    """A dealer, with a clock that stands unless another is given, over slots that beat when they are told to."""

    def __init__(
        self, members: RedisMembership, store: RedisStore, clock: Callable[[], float] | None = None
    ) -> None:
        self.now_s = 100.0
        self.members, self.store = members, store
        self.vacated: list[Task] = []
        self.dealer = Dealer(
            members,
            "run-1",
            PLACES,
            settle_s=2.0,
            is_vacated=lambda task: task in self.vacated,
            clock=clock or (lambda: self.now_s),
            log=structlog.get_logger(),
        )
        self.tasks: dict[int, Task] = {}

    def beat(self, *slots: int) -> None:
        for slot in slots:
            task = self.tasks.setdefault(slot, task_of(slot))
            self.members.beat(task, -1)

    def hold(self, slot: int, *places: str) -> None:
        """A beat of a slot that holds these, and lets go all others."""
        task = self.tasks.setdefault(slot, task_of(slot))
        self.members.beat(task, -1, held=places, let_go=set(PLACES) - set(places))

    def newest(self, known: int = -1) -> Deal | None:
        """As slot 9, that nobody asks about, is told when it knows the deal of this epoch."""
        return heard(self.members.beat(Task(run="run-1", slot=9, incarnation=1), known)).deal

    def deal(self) -> dict[str, int]:
        """As it is now."""
        deal = self.newest()
        assert deal is not None
        return dict(deal.slots)


@pytest.fixture
def dealt(members: RedisMembership, members_store: RedisStore) -> Dealt:
    return Dealt(members, members_store)


def test_the_first_deal_waits_for_all_slots_but_not_for_long(dealt: Dealt) -> None:
    dealt.dealer.look(2)
    assert dealt.dealer.waits_for().startswith("no slot lives")
    dealt.beat(0)
    dealt.dealer.look(2)
    assert dealt.deal() == {}
    dealt.now_s += GATHER_S
    dealt.beat(0)
    dealt.dealer.look(2)
    assert set(dealt.deal().values()) == {0}
    dealt.beat(0, 1)
    dealt.dealer.look(2)
    assert set(dealt.deal().values()) == {0, 1}


def test_partitions_of_a_slot_that_is_silent_go_to_the_others_and_come_back(dealt: Dealt) -> None:
    dealt.beat(0, 1)
    dealt.dealer.look(2)
    before = dealt.deal()

    def gone() -> bool:
        dealt.beat(1)
        dealt.dealer.look(2)
        return set(dealt.deal().values()) == {1}

    eventually(gone)
    dealt.beat(0, 1)
    dealt.dealer.look(2)
    after = dealt.deal()
    assert sorted(after.values()) == sorted(before.values())


@pytest.fixture
def patient(members_store: RedisStore) -> Dealt:
    """Slots are waited for so long that only word of their tasks' end can free what they hold."""
    members = RedisMembership(members_store, ttl_ms=120_000)
    members.begin("run-1")
    return Dealt(members, members_store)


def test_partitions_of_a_task_that_has_ended_go_to_others_without_waiting_for_its_time(
    patient: Dealt,
) -> None:
    patient.beat(0, 1)
    patient.dealer.look(2)
    old, new = patient.tasks[0], patient.tasks[1]
    patient.members.beat(old, 1, wanted=PLACES)
    patient.vacated.append(old)

    eventually(lambda: patient.members.look("run-1", [0]).silent == [old])
    patient.beat(1)
    patient.dealer.look(2)
    assert set(patient.deal().values()) == {1}, "at the first look that finds it silent"
    assert heard(patient.members.beat(new, 2, wanted=PLACES)).granted == set(PLACES)


def test_a_look_that_took_long_dismisses_nobody_for_all_may_look_silent_then(
    patient: Dealt, members_store: RedisStore
) -> None:
    clock = itertools.count(step=0.3)
    slow = Dealt(patient.members, members_store, lambda: next(clock))
    slow.beat(0, 1)
    slow.vacated.append(slow.tasks[0])
    eventually(lambda: slow.tasks[0] in slow.members.look("run-1", range(2)).silent)
    slow.dealer.look(2)
    assert slow.members.look("run-1", range(2)).members == {0, 1}


def test_a_slot_whose_task_runs_stays_however_silent_it_is(patient: Dealt) -> None:
    patient.beat(0, 1)
    patient.dealer.look(2)
    eventually(lambda: patient.members.look("run-1", range(2)).silent == [patient.tasks[0], patient.tasks[1]])
    patient.dealer.look(2)
    assert patient.members.look("run-1", range(2)).members == {0, 1}
    patient.vacated.append(patient.tasks[1])
    patient.dealer.look(2)
    assert patient.members.look("run-1", range(2)).members == {0}


def test_a_task_that_beats_is_not_dismissed_although_it_is_thought_to_have_ended(patient: Dealt) -> None:
    """Spark may give up a task that lives on: dealing its partitions to and fro would be no use."""
    patient.beat(0, 1)
    patient.vacated += patient.tasks.values()
    eventually(lambda: len(patient.members.look("run-1", range(2)).silent) == 2)
    patient.beat(0)
    assert not patient.members.dismiss(patient.tasks[0]), "it has beaten since it was found silent"
    patient.dealer.look(2)
    assert patient.members.look("run-1", range(2)).members == {0}


def test_word_of_an_old_task_does_not_dismiss_the_next_one_of_its_slot(patient: Dealt) -> None:
    patient.beat(0)
    old = patient.tasks.pop(0)
    eventually(lambda: patient.members.look("run-1", [0]).silent == [old])
    patient.beat(0)
    eventually(lambda: patient.members.look("run-1", [0]).silent == [patient.tasks[0]])
    assert not patient.members.dismiss(old)
    assert patient.members.look("run-1", range(1)).members == {0}


def test_a_dismissed_task_that_lives_after_all_is_a_member_again_by_its_next_beat(patient: Dealt) -> None:
    patient.beat(0)
    task = patient.tasks[0]
    patient.members.beat(task, 0, wanted=["check/0"])
    eventually(lambda: patient.members.look("run-1", [0]).silent)
    assert patient.members.dismiss(task)
    assert patient.members.look("run-1", range(1)).holders == {}
    assert not heard(patient.members.beat(task, 0, held=["check/0"])).lost, "nobody else has taken it"
    assert patient.members.look("run-1", range(1)).holders == {"check/0": 0}


def test_after_redis_has_forgotten_all_no_slot_is_taken_for_dead_too_soon(dealt: Dealt) -> None:
    dealt.beat(0, 1)
    dealt.dealer.look(2)
    before = dealt.deal()
    emptied(dealt.store)
    dealt.dealer.look(2)
    assert dealt.deal() == before
    dealt.now_s += 1.0
    dealt.beat(1)
    dealt.dealer.look(2)
    assert dealt.deal() == before
    dealt.now_s += 2.0
    dealt.beat(1)
    dealt.dealer.look(2)
    assert set(dealt.deal().values()) == {1}


def test_a_redis_that_comes_back_older_has_the_newest_deal_again_at_the_next_look(dealt: Dealt) -> None:
    dealt.beat(0, 1)
    dealt.dealer.look(2)
    older = remembered(dealt.store)

    def gone() -> bool:
        dealt.beat(1)
        dealt.dealer.look(2)
        return set(dealt.deal().values()) == {1}

    eventually(gone)
    known = dealt.newest()
    assert known is not None
    rewound(dealt.store, older)
    dealt.beat(1)
    dealt.dealer.look(2)
    assert set(dealt.deal().values()) == {1}
    anew = dealt.newest(known.epoch)
    assert anew is not None, "a task takes it whatever it has heard of"
    assert anew.slots == known.slots


def test_a_deal_whose_writing_was_not_answered_is_not_taken_for_the_next_one(
    members: RedisMembership, members_store: RedisStore
) -> None:
    unanswered = Unanswered(members_store, ttl_ms=TTL_MS)
    dealt = Dealt(unanswered, members_store)
    dealt.beat(0)
    dealt.dealer.look(1)
    first = dealt.newest()
    assert first is not None
    assert set(first.slots.values()) == {0}
    dealt.beat(0, 1)
    dealt.dealer.look(2)
    after = dealt.newest(first.epoch)
    assert after is not None, "who knows the first is told the second"
    assert set(after.slots.values()) == {0, 1}


def test_a_redis_that_stands_still_for_longer_than_slots_live_moves_nothing(
    tmp_path: Path, unique_name: Callable[..., str]
) -> None:
    with RedisServer(tmp_path / "redis") as server, RedisStore(server.url, unique_name("still")) as store:
        members = RedisMembership(store, ttl_ms=TTL_MS)
        members.begin("run-1")
        dealt = Dealt(members, store, time.monotonic)
        dealt.beat(0, 1)
        dealt.dealer.look(2)
        before = dealt.deal()
        assert set(before.values()) == {0, 1}
        store.ask("standing still", lambda client: client.client_pause(3 * TTL_MS))
        dealt.dealer.look(2)
        dealt.beat(1)  # the beat of slot 0 comes a moment later
        dealt.dealer.look(2)
        assert dealt.deal() == before


def test_a_place_that_nobody_holds_is_named_when_it_lasts(dealt: Dealt) -> None:
    dealt.hold(0, *PLACES)
    dealt.dealer.look(1)
    assert dealt.dealer.waits_for() == ""
    dealt.hold(0, *PLACES[1:])
    dealt.dealer.look(1)
    assert dealt.dealer.waits_for() == "", "it moves"
    dealt.now_s += 5.0
    dealt.hold(0, "check/2", "check/3")
    dealt.dealer.look(1)
    assert dealt.dealer.waits_for() == "no slot holds check/0"
    dealt.hold(0, *PLACES)
    dealt.dealer.look(1)
    assert dealt.dealer.waits_for() == ""


def test_at_the_start_what_has_no_holder_yet_is_named_at_once_and_not_all_of_it(dealt: Dealt) -> None:
    dealt.beat(0)
    dealt.dealer.look(1)
    assert dealt.dealer.waits_for() == "no slot holds check/0, check/1, check/2 and 1 more"
    dealt.hold(0, *PLACES)
    dealt.dealer.look(1)
    assert dealt.dealer.waits_for() == ""


def test_a_redis_that_is_away_changes_nothing(unique_name: Callable[..., str]) -> None:
    with RedisStore(f"redis://{LOOPBACK}:{free_ports(1)[0]}", unique_name("away")) as store:
        dealt = Dealt(RedisMembership(store, ttl_ms=TTL_MS), store)
        dealt.dealer.look(2)
        assert not dealt.dealer.stop()


def test_slots_are_told_to_stop(dealt: Dealt) -> None:
    dealt.beat(0)
    assert dealt.dealer.stop()
    answer = heard(dealt.members.beat(dealt.tasks[0], -1))
    assert answer.deal is not None
    assert answer.deal.stop


def test_a_processor_that_another_one_has_followed_says_so(dealt: Dealt) -> None:
    dealt.beat(0)
    dealt.members.begin("run-2")
    with pytest.raises(SupersededError, match="another processor of this application has begun"):
        dealt.dealer.look(1)
