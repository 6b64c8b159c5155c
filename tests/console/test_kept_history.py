"""The history beyond a console: the next one goes on with it, one of several writes it, and it stays small in Redis."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import CapturingLogger

from bettong.config.connection_settings import RedisConnection
from bettong.edges.redis_store import RedisStore
from bettong.local.redis_server import RedisServer
from bettong_console.history import SERIES_MAX, SPANS, History
from bettong_console.kept_history import KeptHistory
from bettong_console.packed_history import NAMES_MAX, PackedHistory, unpacked

NOW_S = 1_800_000_000


def stored(packed: PackedHistory, into: dict[str, dict[bytes, bytes]]) -> None:
    """As Redis takes it."""
    for name, change in packed.changes().items():
        ring = into.setdefault(name, {})
        ring.update({field.encode(): value for field, value in change.fields.items()})
        for each in change.gone:
            ring.pop(each.encode(), None)
    packed.note_written()


def restored(rings: dict[str, dict[bytes, bytes]], now_s: float) -> History:
    found = History()
    packed = PackedHistory(found)
    for name, fields in rings.items():
        packed.restore(SPANS[name], now_s, fields)
    return found


def values(of: History, now_s: float) -> dict[str, dict[str, list[float | None]]]:
    return {name: dict(of.stretch(span, now_s).values) for name, span in SPANS.items()}


@given(
    st.lists(
        st.tuples(st.integers(1, 15), st.dictionaries(st.sampled_from("abc"), st.floats(0, 1e6), max_size=3)),
        max_size=40,
    )
)
def test_whatever_was_added_is_there_again(looks: list[tuple[int, dict[str, float]]]) -> None:
    history, rings, now_s = History(), dict[str, dict[bytes, bytes]](), float(NOW_S)
    packed = PackedHistory(history)
    for seconds, found in looks:
        now_s += seconds
        history.add(now_s, {f"{name}_ms": value for name, value in found.items()}, every_s=seconds)
        stored(packed, rings)
    again = restored(rings, now_s)
    for name, series in values(history, now_s).items():
        known = values(again, now_s)[name]
        assert {
            each: found for each, found in series.items() if any(value is not None for value in found)
        } == known


def test_a_day_and_a_mean_go_on_where_they_ended() -> None:
    history, rings = History(), dict[str, dict[bytes, bytes]]()
    packed = PackedHistory(history)
    for second in range(0, 86_400, 10):
        history.add(NOW_S + second, {"in_per_s": float(second), "p99_ms": float(second % 7000)}, every_s=10)
        stored(packed, rings)
    now_s = NOW_S + 86_400
    again = restored(rings, now_s)
    for of in (history, again):
        of.add(now_s, {"in_per_s": 5.0, "p99_ms": 9.0}, every_s=10)
    assert values(again, now_s)["1d"] == values(history, now_s)["1d"]
    assert values(again, now_s)["1h"] == values(history, now_s)["1h"]
    assert sum(value is not None for value in values(again, now_s)["1d"]["p99_ms"]) == 1440


def test_time_without_a_console_is_a_hole() -> None:
    history, rings = History(), dict[str, dict[bytes, bytes]]()
    packed = PackedHistory(history)
    history.add(NOW_S, {"lag": 3.0})
    stored(packed, rings)
    again = History()
    again.add(NOW_S + 60, {"lag": 4.0})
    PackedHistory(again).restore(SPANS["5m"], NOW_S + 60, rings["5m"])
    (lag,) = again.stretch(SPANS["5m"], NOW_S + 60).values.values()
    assert (lag[-61], lag[-60:-1], lag[-1]) == (3.0, [None] * 59, 4.0)


def test_what_it_has_itself_stays_and_what_is_of_the_future_or_of_long_ago_is_not_taken() -> None:
    history = History()
    history.add(NOW_S, {"lag": 1.0})
    span = SPANS["5m"]
    history.restore(
        span,
        NOW_S,
        {NOW_S: {"lag": 9.0}, NOW_S + 1: {"lag": 9.0}, NOW_S - 300: {"lag": 9.0}, NOW_S - 299: {"lag": 2.0}},
    )
    history.add(NOW_S + 1, {"lag": 3.0})
    (lag,) = history.stretch(span, NOW_S + 1).values.values()
    assert [value for value in lag if value is not None] == [1.0, 3.0], "the first one left the span"
    history.restore(span, NOW_S + 1, {NOW_S: {"lag": math.nan, "x": math.inf}})
    assert history.stretch(span, NOW_S + 1).values == {"lag": lag}


@given(
    st.dictionaries(
        st.binary(max_size=20) | st.just(b"names:0") | st.just(b"7"), st.binary(max_size=40), max_size=5
    )
)
def test_garbage_in_redis_is_no_history_and_no_harm(fields: dict[bytes, bytes]) -> None:
    found = unpacked(fields)
    assert all(isinstance(name, str) for each in found.values() for name in each)
    assert restored({"5m": fields}, NOW_S).names(SPANS["5m"]) is not None


def test_lists_of_names_are_bounded_however_often_series_change() -> None:
    history, rings = History(), dict[str, dict[bytes, bytes]]()
    packed = PackedHistory(history)
    for number in range(4 * NAMES_MAX):
        history.add(NOW_S + number, {f"sink/{number}/p99_ms": 1.0})
        stored(packed, rings)
    for fields in rings.values():
        assert sum(name.startswith(b"names:") for name in fields) <= NAMES_MAX


@pytest.fixture
def kept(
    redis_server: RedisServer, unique_name: Callable[..., str]
) -> Iterator[Callable[[str], tuple[History, KeptHistory]]]:
    """Makes consoles of one application, as far as its history goes."""
    application, made = unique_name("kept"), list[KeptHistory]()

    def make(writer: str) -> tuple[History, KeptHistory]:
        history = History()
        redis, silent = RedisConnection(redis_server.url), CapturingLogger()
        found = KeptHistory(history, redis, application, writer, silent)  # type: ignore[arg-type]
        made.append(found)
        return history, found

    yield make
    for each in made:
        each.close()


def look(history: History, of: KeptHistory, time_s: float, **found: float) -> bool:
    """As a console looks once. Whether it has written."""
    history.add(time_s, dict(found))
    of.restore(of.read(), time_s)
    of.take_lease()
    is_written = of.write(of.changes())
    if is_written:
        of.note_written()
    return is_written


def test_a_console_that_starts_anew_goes_on_with_the_history(
    kept: Callable[[str], tuple[History, KeptHistory]],
) -> None:
    history, first = kept("one")
    for second in range(5):
        assert look(history, first, NOW_S + second, lag=float(second))
    again, second_ = kept("one")
    assert look(again, second_, NOW_S + 5, lag=5.0)
    (lag,) = again.stretch(SPANS["5m"], NOW_S + 5).values.values()
    assert lag[-6:] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_of_two_consoles_one_writes(kept: Callable[[str], tuple[History, KeptHistory]]) -> None:
    history, first = kept("one")
    other_history, other = kept("other")
    assert look(history, first, NOW_S, lag=1.0)
    assert not look(other_history, other, NOW_S + 1, lag=2.0)
    assert look(history, first, NOW_S + 2, lag=3.0)
    (lag,) = other_history.stretch(SPANS["5m"], NOW_S + 2).values.values()
    assert (lag[-3], lag[-2]) == (1.0, 2.0), "it reads what the other one wrote, and shows what it sees"


def test_a_console_that_does_not_write_packs_nothing(
    kept: Callable[[str], tuple[History, KeptHistory]],
) -> None:
    history, first = kept("one")
    other_history, other = kept("other")
    assert look(history, first, NOW_S, lag=1.0)
    assert not look(other_history, other, NOW_S + 1, lag=2.0)
    other.take_lease()
    assert not other.changes(), "hundreds of kilobytes a second"
    first.close()
    other.take_lease()
    assert other.changes()


def test_a_redis_that_refuses_the_history_is_logged_once(
    redis_server: RedisServer, unique_name: Callable[..., str]
) -> None:
    """A user that may only read, as somebody gives it to what only shows."""
    history, log, user = History(), CapturingLogger(), unique_name("viewer")
    address = redis_server.url.removeprefix("redis://")
    with RedisStore(redis_server.url, "any") as store:
        rights = ("on", ">word", "~*", "+@read", "+@connection")
        store.ask("making a user", lambda client: client.execute_command("ACL", "SETUSER", user, *rights))
        kept = KeptHistory(
            history,
            RedisConnection(f"redis://{user}:word@{address}"),
            unique_name("kept"),
            "one",
            log,  # type: ignore[arg-type]
        )
        for second in range(3):
            assert not look(history, kept, NOW_S + second, lag=1.0)
        assert not kept.changes()
        (line,) = log.calls
        assert line.method_name == "warning"
        assert "refuses this user" in line.kwargs["fault"]
        store.ask("giving rights", lambda client: client.execute_command("ACL", "SETUSER", user, "+@all"))
        assert look(history, kept, NOW_S + 3, lag=1.0)
        kept.close()
        store.ask("removing a user", lambda client: client.execute_command("ACL", "DELUSER", user))
    assert len(log.calls) == 1


def test_rings_that_are_full_stay_small_in_redis(
    kept: Callable[[str], tuple[History, KeptHistory]], redis_server: RedisServer
) -> None:
    history, of = kept("one")
    chance = random.Random(7)
    names = [f"stage/a-stage-of-a-usual-name-{number}/p99_ms" for number in range(SERIES_MAX)]
    assert look(history, of, NOW_S, lag=0.0)
    for name, span in SPANS.items():
        first = NOW_S // span.step_s
        for step in range(first + 1, first + span.values):
            history.restore(span, step * span.step_s, {step: dict.fromkeys(names, chance.random())})
            if (step - first) % 15 == 0 or step == first + span.values - 1:
                assert of.write({name: of.changes()[name]})
                of.note_written()
    with RedisStore(redis_server.url, of._store._application) as store:
        keys = [store.key("history", name) for name in SPANS]
        used = store.ask("measuring", lambda client: [client.memory_usage(key, samples=0) for key in keys])
    assert 4_000_000 < sum(used) < 6_000_000, used


def test_the_next_console_writes_when_the_one_before_has_ended(
    kept: Callable[[str], tuple[History, KeptHistory]],
) -> None:
    history, first = kept("one")
    assert look(history, first, NOW_S, lag=1.0)
    other_history, other = kept("other")
    assert not look(other_history, other, NOW_S + 1, lag=2.0)
    first.close()
    assert look(other_history, other, NOW_S + 2, lag=3.0)
    third_history, third = kept("third")
    third.restore(third.read(), NOW_S + 2)
    (lag,) = third_history.stretch(SPANS["5m"], NOW_S + 2).values.values()
    assert lag[-3:] == [1.0, 2.0, 3.0], "what it could not write meanwhile, too"
