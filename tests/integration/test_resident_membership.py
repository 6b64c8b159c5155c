"""Who holds which partition of a resident processor: beats, deals, and a Redis that forgets. Against a real Redis."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import structlog

from bettong.edges.redis_store import RedisStore
from bettong.edges.redis_store.connection import Client
from bettong.edges.redis_store.membership import Deal, Heard, RedisMembership, Task
from bettong.errors import StoreUnavailableError, SupersededError
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


def heard(answer: Heard | None) -> Heard:
    assert answer is not None
    return answer


def emptied(store: RedisStore) -> None:
    """What a Redis without persistence is after a restart, for this application."""
    rewound(store, {})


def remembered(store: RedisStore) -> dict[bytes, bytes]:
    """The deal and the holders as they are now: what the replica has that takes over later."""

    def remember(client: Client) -> dict[bytes, bytes]:
        return {key: client.dump(key) for key in client.keys(store.key("resident*")) if client.pttl(key) < 0}

    return store.ask("remembering", remember)


def rewound(store: RedisStore, to: dict[bytes, bytes]) -> None:
    """A Redis that comes back as it was: after a failover, or without the last second of its file."""

    def rewind(client: Client) -> None:
        with client.pipeline(transaction=True) as together:
            together.delete(*client.keys(store.key("resident*")))
            for key, value in to.items():
                together.restore(key, 0, value)
            together.execute()

    store.ask("rewinding", rewind)


def test_a_task_is_told_the_deal_once_and_gets_what_it_wants_under_it(members: RedisMembership) -> None:
    task = members.join("run-1", 0)
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
    old, new = members.join("run-1", 0), members.join("run-1", 1)
    members.beat(old, 0, wanted=["check/0"])
    assert not heard(members.beat(new, 0, wanted=["check/0"])).granted
    members.beat(old, 0, let_go=["check/0"])
    assert heard(members.beat(new, 0, wanted=["check/0"])).granted == {"check/0"}
    assert heard(members.beat(old, 0, held=["check/0"])).lost == {"check/0"}


def test_a_place_is_taken_from_a_slot_that_is_silent(members: RedisMembership) -> None:
    old, new = members.join("run-1", 0), members.join("run-1", 1)
    members.beat(old, 0, wanted=["check/0"])
    assert members.look("run-1", range(2)).members == {0}
    eventually(lambda: heard(members.beat(new, 0, wanted=["check/0"])).granted == {"check/0"})
    assert members.look("run-1", range(2)).members == {1}


def test_the_next_task_of_a_slot_takes_at_once_what_the_one_before_held(members: RedisMembership) -> None:
    old = members.join("run-1", 0)
    members.beat(old, 0, wanted=["check/0"])
    new = members.join("run-1", 0)
    assert heard(members.beat(new, 0, wanted=["check/0"])).granted == {"check/0"}
    assert members.beat(old, 0, held=["check/0"]) is None
    assert members.look("run-1", range(2)).holders == {"check/0": 0}


def test_a_new_run_supersedes_all_tasks_and_the_driver_before(members: RedisMembership) -> None:
    old = members.join("run-1", 0)
    members.beat(old, 0, wanted=["check/0"])
    members.begin("run-2")
    assert members.beat(old, 0, held=["check/0"]) is None
    assert members.look("run-2", range(2)).holders == {}
    assert not members.publish("run-1", Deal(5, {}))
    assert members.look("run-1", range(2)).epoch is None


def test_slots_claim_again_what_they_hold_when_redis_has_forgotten_it(
    members: RedisMembership, store: RedisStore
) -> None:
    tasks = [members.join("run-1", slot) for slot in (0, 1)]
    members.publish("run-1", Deal(1, {"check/0": 0, "check/1": 1}))
    for slot, task in enumerate(tasks):
        members.beat(task, 1, wanted=[f"check/{slot}"])
    emptied(store)
    for slot, task in enumerate(tasks):
        answer = heard(members.beat(task, 1, held=[f"check/{slot}"], wanted=[f"check/{1 - slot}"]))
        assert not answer.lost
        assert not answer.granted, "without a deal nobody gets anything new"
    assert members.look("run-1", range(2)).holders == {"check/0": 0, "check/1": 1}


def test_a_place_that_a_slot_does_not_know_it_was_given_goes_to_whom_the_next_deal_names(
    members: RedisMembership,
) -> None:
    unheard, other = members.join("run-1", 0), members.join("run-1", 1)
    members.publish("run-1", Deal(1, {"check/0": 0}))
    members.beat(unheard, 1, wanted=["check/0"])  # carried out, and its answer lost
    members.publish("run-1", Deal(2, {"check/0": 1}))
    assert not heard(members.beat(other, 2, wanted=["check/0"])).granted
    members.beat(unheard, 2)
    assert heard(members.beat(other, 2, wanted=["check/0"])).granted == {"check/0"}


def test_many_such_places_go_in_a_few_beats(members: RedisMembership) -> None:
    unheard, other = members.join("run-1", 0), members.join("run-1", 1)
    places = [f"check/{number}" for number in range(40)]
    members.beat(unheard, 0, wanted=places)
    members.beat(other, 0, wanted=places)
    for _ in range(3):
        members.beat(unheard, 0)
        members.beat(other, 0, wanted=places)
    assert members.look("run-1", range(2)).holders == dict.fromkeys(places, 1)


def test_a_redis_that_comes_back_older_is_told_again_who_holds_what(
    members: RedisMembership, store: RedisStore
) -> None:
    before, after = members.join("run-1", 0), members.join("run-1", 1)
    members.publish("run-1", Deal(1, {"check/0": 0}))
    members.beat(before, 1, wanted=["check/0"])
    older = remembered(store)
    members.publish("run-1", Deal(2, {"check/0": 1}))
    members.beat(before, 2, let_go=["check/0"])
    assert heard(members.beat(after, 2, wanted=["check/0"])).granted == {"check/0"}
    rewound(store, older)
    members.beat(before, 2)
    answer = heard(members.beat(after, 2, held=["check/0"]))
    assert answer.lost == {"check/0"}
    assert answer.deal is None, "the newest deal that a task has heard of stays the newest"
    members.beat(before, 2)
    members.publish("run-1", Deal(3, {"check/0": 1}))
    assert heard(members.beat(after, 3, wanted=["check/0"])).granted == {"check/0"}


def test_a_slot_that_still_holds_what_another_one_is_refused_keeps_it(members: RedisMembership) -> None:
    folding, other = members.join("run-1", 0), members.join("run-1", 1)
    members.beat(folding, 0, wanted=["check/0"])
    assert not heard(members.beat(other, 0, wanted=["check/0"])).granted
    assert not heard(members.beat(folding, 0, held=["check/0"])).lost
    assert not heard(members.beat(other, 0, wanted=["check/0"])).granted
    assert heard(members.beat(folding, 0, wanted=["check/0"])).granted == {"check/0"}
    assert members.look("run-1", range(2)).holders == {"check/0": 0}


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
        self.dealer = Dealer(
            members,
            "run-1",
            PLACES,
            settle_s=2.0,
            clock=clock or (lambda: self.now_s),
            log=structlog.get_logger(),
        )
        self.tasks: dict[int, Task] = {}

    def beat(self, *slots: int) -> None:
        for slot in slots:
            self.hold(slot)

    def hold(self, slot: int, *places: str) -> None:
        """A beat of a slot that holds these, and lets go all others."""
        task = self.tasks.setdefault(slot, self.members.join("run-1", slot))
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
    members: RedisMembership, store: RedisStore
) -> None:
    unanswered = Unanswered(store, ttl_ms=TTL_MS)
    dealt = Dealt(unanswered, store)
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
