"""Who holds which partition of a resident processor: beats, deals, and a Redis that forgets. Against a real Redis."""

import itertools
from collections.abc import Callable, Iterator

import pytest
import structlog

from bettong.edges.redis_store import RedisStore
from bettong.edges.redis_store.membership import Deal, Heard, RedisMembership, Task
from bettong.errors import SupersededError
from bettong.local.addresses import LOOPBACK, free_ports
from bettong.local.redis_server import RedisServer
from bettong_processor.resident.dealer import GATHER_S, Dealer
from tests.waiting import eventually

PLACES = ["check/0", "check/1", "check/2", "check/3"]
TTL_MS = 300


@pytest.fixture
def store(redis_server: RedisServer, unique_name: Callable[..., str]) -> Iterator[RedisStore]:
    with RedisStore(redis_server.url, unique_name("members")) as one:
        yield one


@pytest.fixture
def members(store: RedisStore) -> RedisMembership:
    one = RedisMembership(store, ttl_ms=TTL_MS)
    one.begin("run-1")
    return one


incarnations = itertools.count(1)


def task_of(slot: int) -> Task:
    """A task that begins after all those before."""
    return Task(run="run-1", slot=slot, incarnation=next(incarnations))


def heard(answer: Heard | None) -> Heard:
    assert answer is not None
    return answer


def emptied(store: RedisStore) -> None:
    """What a Redis without persistence is after a restart, for this application."""

    def forget(client: object) -> None:
        keys = client.keys(store.key("resident*"))  # type: ignore[attr-defined]
        client.delete(*keys)  # type: ignore[attr-defined]

    store.ask("forgetting", forget)


def test_a_task_is_told_the_deal_once_and_gets_what_it_wants_under_it(members: RedisMembership) -> None:
    task = task_of(0)
    deal = Deal(1, {"check/0": 0, "check/1": 1})
    assert members.publish("run-1", deal)
    first = heard(members.beat(task, -1, wanted=["check/0"]))
    assert first.deal == deal
    assert not first.granted, "it did not know the deal when it asked"
    second = heard(members.beat(task, 1, wanted=["check/0"]))
    assert second.deal is None
    assert second.granted == {"check/0"}
    assert members.look("run-1", range(3)).holders == {"check/0": 0}


def test_a_place_is_taken_when_its_holder_lets_it_go_and_not_before(members: RedisMembership) -> None:
    old, new = task_of(0), task_of(1)
    members.beat(old, 0, wanted=["check/0"])
    assert not heard(members.beat(new, 0, wanted=["check/0"])).granted
    members.beat(old, 0, let_go=["check/0"])
    assert heard(members.beat(new, 0, wanted=["check/0"])).granted == {"check/0"}
    assert heard(members.beat(old, 0, held=["check/0"])).lost == {"check/0"}


def test_a_place_is_taken_from_a_slot_that_is_silent(members: RedisMembership) -> None:
    old, new = task_of(0), task_of(1)
    members.beat(old, 0, wanted=["check/0"])
    assert members.look("run-1", range(2)).members == {0}
    eventually(lambda: heard(members.beat(new, 0, wanted=["check/0"])).granted == {"check/0"})
    assert members.look("run-1", range(2)).members == {1}


def test_the_next_task_of_a_slot_takes_at_once_what_the_one_before_held(members: RedisMembership) -> None:
    old = task_of(0)
    members.beat(old, 0, wanted=["check/0"])
    new = task_of(0)
    assert heard(members.beat(new, 0, wanted=["check/0"])).granted == {"check/0"}
    assert members.beat(old, 0, held=["check/0"]) is None
    assert members.look("run-1", range(2)).holders == {"check/0": 0}


def test_a_new_run_supersedes_all_tasks_and_the_driver_before(members: RedisMembership) -> None:
    old = task_of(0)
    members.beat(old, 0, wanted=["check/0"])
    members.begin("run-2")
    assert members.beat(old, 0, held=["check/0"]) is None
    assert members.look("run-2", range(2)).holders == {}
    assert not members.publish("run-1", Deal(5, {}))
    assert not members.look("run-1", range(2)).known


def test_slots_claim_again_what_they_hold_when_redis_has_forgotten_it(
    members: RedisMembership, store: RedisStore
) -> None:
    tasks = [task_of(slot) for slot in (0, 1)]
    members.publish("run-1", Deal(1, {"check/0": 0, "check/1": 1}))
    for slot, task in enumerate(tasks):
        members.beat(task, 1, wanted=[f"check/{slot}"])
    emptied(store)
    for slot, task in enumerate(tasks):
        answer = heard(members.beat(task, 1, held=[f"check/{slot}"], wanted=[f"check/{1 - slot}"]))
        assert not answer.lost
        assert not answer.granted, "without a deal nobody gets anything new"
    assert members.look("run-1", range(2)).holders == {"check/0": 0, "check/1": 1}


class Dealt:
    """A dealer, with a clock that stands, over slots that beat when they are told to."""

    def __init__(self, members: RedisMembership, store: RedisStore) -> None:
        self.now_s = 100.0
        self.members, self.store = members, store
        self.vacated: list[Task] = []
        self.dealer = Dealer(
            members,
            "run-1",
            PLACES,
            settle_s=2.0,
            is_vacated=lambda task: task in self.vacated,
            clock=lambda: self.now_s,
            log=structlog.get_logger(),
        )
        self.tasks: dict[int, Task] = {}

    def beat(self, *slots: int) -> None:
        for slot in slots:
            task = self.tasks.setdefault(slot, task_of(slot))
            self.members.beat(task, -1)

    def deal(self) -> dict[str, int]:
        """As slot 9, that nobody asks about, is told."""
        answer = heard(self.members.beat(Task(run="run-1", slot=9, incarnation=1), -1))
        assert answer.deal is not None
        return dict(answer.deal.slots)


@pytest.fixture
def dealt(members: RedisMembership, store: RedisStore) -> Dealt:
    return Dealt(members, store)


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
def patient(store: RedisStore) -> Dealt:
    """Slots are waited for so long that only word of their tasks' end can free what they hold."""
    members = RedisMembership(store, ttl_ms=120_000)
    members.begin("run-1")
    return Dealt(members, store)


def test_partitions_of_a_task_that_has_ended_go_to_others_without_waiting_for_its_time(
    patient: Dealt,
) -> None:
    patient.beat(0, 1)
    patient.dealer.look(2)
    old, new = patient.tasks[0], patient.tasks[1]
    patient.members.beat(old, 1, wanted=PLACES)
    patient.vacated.append(old)

    eventually(lambda: patient.members.silent("run-1", [0]) == [old])
    patient.beat(1)
    patient.dealer.look(2)
    assert set(patient.deal().values()) == {1}, "at the first look that finds it silent"
    assert heard(patient.members.beat(new, 2, wanted=PLACES)).granted == set(PLACES)


def test_a_slot_whose_task_runs_stays_however_silent_it_is(patient: Dealt) -> None:
    patient.beat(0, 1)
    patient.dealer.look(2)
    eventually(lambda: patient.members.silent("run-1", range(2)) == [patient.tasks[0], patient.tasks[1]])
    patient.dealer.look(2)
    assert patient.members.look("run-1", range(2)).members == {0, 1}
    patient.vacated.append(patient.tasks[1])
    patient.dealer.look(2)
    assert patient.members.look("run-1", range(2)).members == {0}


def test_a_task_that_beats_is_not_dismissed_although_it_is_thought_to_have_ended(patient: Dealt) -> None:
    """Spark may give up a task that lives on: dealing its partitions to and fro would be no use."""
    patient.beat(0, 1)
    patient.vacated += patient.tasks.values()
    eventually(lambda: len(patient.members.silent("run-1", range(2))) == 2)
    patient.beat(0)
    assert not patient.members.dismiss(patient.tasks[0]), "it has beaten since it was found silent"
    patient.dealer.look(2)
    assert patient.members.look("run-1", range(2)).members == {0}


def test_word_of_an_old_task_does_not_dismiss_the_next_one_of_its_slot(patient: Dealt) -> None:
    patient.beat(0)
    old = patient.tasks.pop(0)
    eventually(lambda: patient.members.silent("run-1", [0]) == [old])
    patient.beat(0)
    eventually(lambda: patient.members.silent("run-1", [0]) == [patient.tasks[0]])
    assert not patient.members.dismiss(old)
    assert patient.members.look("run-1", range(1)).members == {0}


def test_a_dismissed_task_that_lives_after_all_is_a_member_again_by_its_next_beat(patient: Dealt) -> None:
    patient.beat(0)
    task = patient.tasks[0]
    patient.members.beat(task, 0, wanted=["check/0"])
    eventually(lambda: patient.members.silent("run-1", [0]))
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
