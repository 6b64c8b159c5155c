"""Who holds which partition of a resident processor: beats, deals, and a Redis that forgets. Against a real Redis."""

from bettong.edges.redis_store import RedisStore
from bettong.edges.redis_store.membership import Deal, RedisMembership
from tests.integration.membership_parts import emptied, heard, remembered, rewound, task_of
from tests.waiting import eventually


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
    assert members.look("run-1", range(2)).epoch is None


def test_slots_claim_again_what_they_hold_when_redis_has_forgotten_it(
    members: RedisMembership, members_store: RedisStore
) -> None:
    tasks = [task_of(slot) for slot in (0, 1)]
    members.publish("run-1", Deal(1, {"check/0": 0, "check/1": 1}))
    for slot, task in enumerate(tasks):
        members.beat(task, 1, wanted=[f"check/{slot}"])
    emptied(members_store)
    for slot, task in enumerate(tasks):
        answer = heard(members.beat(task, 1, held=[f"check/{slot}"], wanted=[f"check/{1 - slot}"]))
        assert not answer.lost
        assert not answer.granted, "without a deal nobody gets anything new"
    assert members.look("run-1", range(2)).holders == {"check/0": 0, "check/1": 1}


def test_a_place_that_a_slot_does_not_know_it_was_given_goes_to_whom_the_next_deal_names(
    members: RedisMembership,
) -> None:
    unheard, other = task_of(0), task_of(1)
    members.publish("run-1", Deal(1, {"check/0": 0}))
    members.beat(unheard, 1, wanted=["check/0"])  # carried out, and its answer lost
    members.publish("run-1", Deal(2, {"check/0": 1}))
    assert not heard(members.beat(other, 2, wanted=["check/0"])).granted
    members.beat(unheard, 2)
    assert heard(members.beat(other, 2, wanted=["check/0"])).granted == {"check/0"}


def test_many_such_places_go_in_a_few_beats(members: RedisMembership) -> None:
    unheard, other = task_of(0), task_of(1)
    places = [f"check/{number}" for number in range(40)]
    members.beat(unheard, 0, wanted=places)
    members.beat(other, 0, wanted=places)
    for _ in range(3):
        members.beat(unheard, 0)
        members.beat(other, 0, wanted=places)
    assert members.look("run-1", range(2)).holders == dict.fromkeys(places, 1)


def test_a_redis_that_comes_back_older_is_told_again_who_holds_what(
    members: RedisMembership, members_store: RedisStore
) -> None:
    before, after = task_of(0), task_of(1)
    members.publish("run-1", Deal(1, {"check/0": 0}))
    members.beat(before, 1, wanted=["check/0"])
    older = remembered(members_store)
    members.publish("run-1", Deal(2, {"check/0": 1}))
    members.beat(before, 2, let_go=["check/0"])
    assert heard(members.beat(after, 2, wanted=["check/0"])).granted == {"check/0"}
    rewound(members_store, older)
    members.beat(before, 2)
    answer = heard(members.beat(after, 2, held=["check/0"]))
    assert answer.lost == {"check/0"}
    assert answer.deal is None, "the newest deal that a task has heard of stays the newest"
    members.beat(before, 2)
    members.publish("run-1", Deal(3, {"check/0": 1}))
    assert heard(members.beat(after, 3, wanted=["check/0"])).granted == {"check/0"}


def test_a_slot_that_still_holds_what_another_one_is_refused_keeps_it(members: RedisMembership) -> None:
    folding, other = task_of(0), task_of(1)
    members.beat(folding, 0, wanted=["check/0"])
    assert not heard(members.beat(other, 0, wanted=["check/0"])).granted
    assert not heard(members.beat(folding, 0, held=["check/0"])).lost
    assert not heard(members.beat(other, 0, wanted=["check/0"])).granted
    assert heard(members.beat(folding, 0, wanted=["check/0"])).granted == {"check/0"}
    assert members.look("run-1", range(2)).holders == {"check/0": 0}
