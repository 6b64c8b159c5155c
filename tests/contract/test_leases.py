"""The contract of stream leases, tested with Redis and with the model that simulations use."""

import time
from collections.abc import Callable, Iterator

import pytest
from redis import Redis

from bettong.edges.redis_store import Claim, Granted, Held, RedisLeases, RedisStore, Settling
from bettong.identifiers import SequenceNumber
from bettong.local.redis_server import RedisServer
from bettong_sender.ownership import Leases
from tests.simulation.lease_model import MemoryLeases
from tests.waiting import eventually

SHORT_MS = 200
LONG_MS = 60_000
GRANTED = Granted(SequenceNumber(0))

Make = Callable[[int], Leases]
Forget = Callable[[], None]


@pytest.fixture(params=["redis", "memory"])
def keeper(
    request: pytest.FixtureRequest, unique_name: Callable[..., str]
) -> Iterator[tuple[Make, Forget, Forget]]:
    """Makes leases of a length, once a test, that have been kept for long; has all forgotten; starts it anew."""
    if request.param == "memory":
        made: list[MemoryLeases] = []

        def make(lease_ms: int) -> MemoryLeases:
            made.append(MemoryLeases(lease_ms=lease_ms, clock_ms=lambda: time.time() * 1000))
            made[0].grow_old()
            return made[0]

        def forget_all() -> None:
            made[0].forget()

        def start_model_anew() -> None:
            made[0].start_anew()

        yield make, forget_all, start_model_anew
        return
    server: RedisServer = request.getfixturevalue("redis_server")
    with RedisStore(server.url, unique_name()) as store, Redis.from_url(server.url) as client:

        def age(lease_ms: int) -> RedisLeases:
            leases = RedisLeases(store, lease_ms=lease_ms)
            leases.notice_restart()
            client.hset(store.key("epoch"), "since", "0")
            return leases

        def forget() -> None:
            client.delete(*client.scan_iter(store.key("*")))

        def start_anew() -> None:
            client.hset(store.key("epoch"), "run", "another")

        yield age, forget, start_anew


@pytest.fixture
def make(keeper: tuple[Make, Forget, Forget]) -> Make:
    return keeper[0]


@pytest.fixture
def forget(keeper: tuple[Make, Forget, Forget]) -> Forget:
    return keeper[1]


@pytest.fixture
def start_anew(keeper: tuple[Make, Forget, Forget]) -> Forget:
    return keeper[2]


def claim(token: str, client: str = "", *, stream: str = "orders/feed", log: str = "log-1") -> Claim:
    return Claim(
        stream=stream, token=token, client=client, instance="sender-1", peer=f"peer of {token}", log=log
    )


def test_a_held_stream_is_refused_to_other_clients_which_learn_the_holder(make: Make) -> None:
    leases = make(LONG_MS)
    before_s = time.time()
    assert leases.acquire(claim("one", "a")) == GRANTED
    for other in (claim("two", "b"), claim("two"), claim("two", "")):
        held = leases.acquire(other)
        assert isinstance(held, Held)
        assert (held.instance, held.peer) == ("sender-1", "peer of one")
        assert before_s - 1 <= held.since_s <= time.time() + 1
        assert 55 < held.left_s <= 60
    assert leases.acquire(claim("two", "b", stream="orders/other")) == GRANTED


def test_repeating_a_command_changes_nothing(make: Make) -> None:
    leases = make(LONG_MS)
    one = claim("one")
    assert [leases.acquire(one), leases.acquire(one)] == [GRANTED, GRANTED]
    assert [leases.renew([(one, SequenceNumber(5))]), leases.renew([(one, SequenceNumber(5))])] == [
        [True],
        [True],
    ]
    for _ in range(2):
        leases.release(one, SequenceNumber(7))
    assert leases.acquire(claim("two")) == Granted(SequenceNumber(7))
    leases.release(one, SequenceNumber(9))
    assert isinstance(leases.acquire(claim("three")), Held)


def test_a_claim_without_a_client_is_from_a_client_of_its_own(make: Make) -> None:
    leases = make(LONG_MS)
    assert leases.acquire(claim("one")) == GRANTED
    assert isinstance(leases.acquire(claim("two")), Held)


def test_the_same_client_takes_its_stream_over_and_its_older_session_has_lost_it(make: Make) -> None:
    leases = make(LONG_MS)
    older, newer = claim("older", "a"), claim("newer", "a")
    assert [leases.acquire(older), leases.acquire(newer)] == [GRANTED, GRANTED]
    assert leases.renew([(older, SequenceNumber(3)), (newer, SequenceNumber(0))]) == [False, True]
    leases.release(older, SequenceNumber(3))
    assert isinstance(leases.acquire(claim("other", "b")), Held)
    leases.release(newer, SequenceNumber(2))
    assert leases.acquire(claim("other", "b")) == Granted(SequenceNumber(3)), (
        "what the older one acknowledged stays true"
    )


def test_a_session_that_has_lost_its_stream_still_notes_what_it_acknowledged(make: Make) -> None:
    leases = make(LONG_MS)
    older, newer = claim("older", "a"), claim("newer", "a")
    assert [leases.acquire(older), leases.acquire(newer)] == [GRANTED, GRANTED]
    leases.release(older, SequenceNumber(7))
    leases.release(claim("another", log="log-2"), SequenceNumber(99))
    leases.release(newer, SequenceNumber(5), exact=False)
    leases.release(older, SequenceNumber(8))
    assert leases.acquire(claim("next", "a")) == Granted(SequenceNumber(8))


def test_what_is_known_of_a_stream_is_exact_when_the_last_session_said_so_and_only_for_the_next(
    make: Make,
) -> None:
    leases = make(LONG_MS)
    one, two, three = (claim(token, "a") for token in ("one", "two", "three"))
    assert leases.acquire(one) == GRANTED
    leases.release(one, SequenceNumber(7), exact=True)
    leases.release(one, SequenceNumber(7), exact=True)
    assert leases.acquire(two) == Granted(SequenceNumber(7), exact=True)
    assert leases.acquire(three) == Granted(SequenceNumber(7)), (
        "the second one was taken over, and may have acknowledged more"
    )
    leases.release(two, SequenceNumber(9), exact=True)
    assert leases.acquire(one) == Granted(SequenceNumber(9))
    leases.release(one, SequenceNumber(9), exact=True)
    assert leases.acquire(claim("new", "a", log="log-2")) == Granted(SequenceNumber(0))


def test_what_one_client_may_know_more_of_another_does_not_make_exact(make: Make) -> None:
    leases = make(1)
    assert leases.acquire(claim("dies", "a")) == GRANTED
    eventually(lambda: leases.acquire(claim("stranger", "b")) == GRANTED)
    leases.release(claim("stranger", "b"), SequenceNumber(7), exact=True)
    assert leases.acquire(claim("next", "b")) == Granted(SequenceNumber(7))
    leases.release(claim("next", "b"), SequenceNumber(7), exact=True)
    assert leases.acquire(claim("heir", "a")) == Granted(SequenceNumber(7))


def test_what_was_in_doubt_for_one_client_alone_it_makes_exact_again(make: Make) -> None:
    leases = make(1)
    assert leases.acquire(claim("dies", "a")) == GRANTED
    eventually(lambda: leases.acquire(claim("heir", "a")) == GRANTED)
    leases.release(claim("heir", "a"), SequenceNumber(7), exact=True)
    assert leases.acquire(claim("next", "c")) == Granted(SequenceNumber(7), exact=True)


def test_what_was_exact_is_not_when_it_started_anew_and_may_have_come_back_older(
    make: Make, start_anew: Forget
) -> None:
    leases = make(SHORT_MS)
    one = claim("one", "a")
    assert leases.acquire(one) == GRANTED
    leases.release(one, SequenceNumber(7), exact=True)
    start_anew()
    eventually(lambda: leases.acquire(claim("two", "a")) == Granted(SequenceNumber(7)))
    leases.release(claim("two", "a"), SequenceNumber(7), exact=True)
    assert leases.acquire(one) == Granted(SequenceNumber(7))


def test_what_has_ended_is_known_for_a_while_and_then_forgotten_and_nothing_else_is(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    leases = make(LONG_MS)
    ended, other = claim("one", "a", stream="orders/ended"), claim("two", "a", stream="orders/other")
    for each in (ended, other):
        assert leases.acquire(each) == GRANTED
    leases.release(ended, SequenceNumber(7), exact=True, ended=True)
    assert leases.acquire(ended) == Granted(SequenceNumber(7), exact=True), "its last receipt was lost"
    for module in ("bettong.edges.redis_store.leases", "tests.simulation.lease_model"):
        monkeypatch.setattr(f"{module}.ENDED_KEPT_MS", 1)

    def forgotten() -> bool:
        found = leases.acquire(ended)
        leases.release(ended, SequenceNumber(7), ended=True)
        return found == GRANTED

    eventually(forgotten)
    leases.release(other, SequenceNumber(7), exact=True)
    assert leases.acquire(other) == Granted(SequenceNumber(7), exact=True)


def test_after_the_death_of_a_holder_nothing_is_exact(make: Make, forget: Forget) -> None:
    leases = make(1)
    one = claim("one")
    eventually(lambda: leases.acquire(one) == GRANTED)
    leases.release(one, SequenceNumber(7), exact=True)
    assert leases.acquire(claim("dies")) == Granted(SequenceNumber(7), exact=True)
    eventually(lambda: leases.acquire(claim("heir")) == Granted(SequenceNumber(7)))
    forget()
    eventually(lambda: leases.acquire(claim("later")) == GRANTED)


def test_a_lease_that_is_not_renewed_runs_out_and_one_that_is_does_not(make: Make) -> None:
    leases = make(SHORT_MS)
    dies, lives = claim("dies"), claim("lives", stream="orders/lives")
    assert [leases.acquire(dies), leases.acquire(lives)] == [GRANTED, GRANTED]

    def taken() -> bool:
        assert leases.renew([(lives, SequenceNumber(0))]) == [True]
        assert isinstance(leases.acquire(claim("heir", stream="orders/lives")), Held)
        return leases.acquire(claim("heir")) == GRANTED

    eventually(taken)
    assert leases.renew([(dies, SequenceNumber(4))]) == [False]


def test_a_late_renewal_succeeds_if_no_other_session_came_in_between(make: Make) -> None:
    leases = make(1)
    late = claim("late")
    assert leases.acquire(late) == GRANTED
    eventually(lambda: leases.renew([(late, SequenceNumber(0))]) == [True])
    assert leases.acquire(claim("guest", "g", stream="orders/feed")) is not None
    eventually(lambda: leases.acquire(claim("guest", "g")) == GRANTED)
    leases.release(claim("guest", "g"), SequenceNumber(0))
    assert leases.renew([(late, SequenceNumber(0))]) == [False], (
        "a guest had it in between, and may have numbered frames"
    )


def test_what_is_acknowledged_only_grows_is_exact_to_the_last_bit_and_belongs_to_one_log(
    make: Make,
) -> None:
    leases = make(LONG_MS)
    large = 2**64 - 2
    for acknowledged, known in [(9, 9), (10, 10), (3, 10), (large, large), (large - 1, large), (0, large)]:
        one = claim(f"t{acknowledged}", "a")
        assert isinstance(leases.acquire(one), Granted)
        assert leases.renew([(one, SequenceNumber(acknowledged))]) == [True]
        leases.release(one, SequenceNumber(acknowledged))
        assert leases.acquire(claim("look", "a")) == Granted(SequenceNumber(known))
        leases.release(claim("look", "a"), SequenceNumber(0))
    assert leases.acquire(claim("new", "a", log="log-2")) == Granted(SequenceNumber(0))
    leases.release(claim("new", "a", log="log-2"), SequenceNumber(5))
    assert leases.acquire(claim("new", "a", log="log-2")) == Granted(SequenceNumber(5))


def test_many_streams_are_renewed_together_and_each_gets_its_own_answer(make: Make) -> None:
    leases = make(LONG_MS)
    claims = [claim(f"t{number}", stream=f"orders/{number}") for number in range(1100)]
    assert all(leases.acquire(each) == GRANTED for each in claims)
    lost = {3, 700, 1099}
    changed = [claim("x", stream=each.stream) if n in lost else each for n, each in enumerate(claims)]
    assert leases.renew([(each, SequenceNumber(1)) for each in changed]) == [
        n not in lost for n in range(1100)
    ]
    assert leases.renew([]) == []


def test_a_store_that_lost_its_data_lets_holders_renew_before_it_serves_others(
    make: Make, forget: Forget
) -> None:
    leases = make(1500)
    holder, stranger = claim("holder", "a"), claim("stranger", "b")
    assert leases.acquire(holder) == GRANTED
    forget()
    settling = leases.acquire(stranger)
    assert isinstance(settling, Settling)
    assert 0 < settling.left_s <= 1.5
    assert leases.renew([(holder, SequenceNumber(8))]) == [True]
    assert isinstance(leases.acquire(stranger), Held)
    leases.release(holder, SequenceNumber(8))
    assert isinstance(leases.acquire(stranger), Settling), "another one's lease may still be unknown"
    eventually(lambda: leases.acquire(stranger) == Granted(SequenceNumber(8)))


def test_skipping_the_settling_time_does_not_skip_that_of_a_later_restart(make: Make, forget: Forget) -> None:
    leases = make(LONG_MS)
    forget()
    first = leases.acquire(claim("one"))
    assert isinstance(first, Settling)
    forget()
    leases.skip_settling(first.epoch)
    second = leases.acquire(claim("one"))
    assert isinstance(second, Settling), "it has started anew since"
    leases.skip_settling(second.epoch)
    assert leases.acquire(claim("one")) == GRANTED


def test_the_settling_time_runs_from_the_first_command(make: Make, forget: Forget) -> None:
    leases = make(LONG_MS)
    forget()
    leases.notice_restart()

    def left_s() -> float:
        answer = leases.acquire(claim("one"))
        assert isinstance(answer, Settling)
        return answer.left_s

    eventually(lambda: left_s() < LONG_MS / 1000 - 0.2)
    forget()
    assert left_s() > LONG_MS / 1000 - 0.2
