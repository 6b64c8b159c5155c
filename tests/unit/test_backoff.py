"""Pauses between attempts that fail."""

import gc
import threading

import pytest

from bettong.backoff import Backoff, attempts, pause_s


def test_a_pause_doubles_with_each_failure_up_to_its_maximum_however_many_there_are() -> None:
    assert [pause_s(failures, first_s=0.4, max_s=5.0) for failures in range(7)] == [
        0,
        0.4,
        0.8,
        1.6,
        3.2,
        5,
        5,
    ]
    assert pause_s(10_000, first_s=0.4, max_s=5.0) == 5.0
    assert pause_s(1, first_s=0.4, max_s=0.1) == 0.1


def test_a_loop_pauses_longer_each_time_until_an_attempt_goes_well() -> None:
    backoff = Backoff(0.5, 30.0)
    assert [backoff.next_s() for _ in range(8)] == [0.5, 1, 2, 4, 8, 16, 30, 30]
    backoff.reset()
    assert backoff.next_s() == 0.5


def test_a_pause_ends_when_the_loop_is_to_stop() -> None:
    stopping = threading.Event()
    stopping.set()
    Backoff(3600.0, 3600.0).wait(stopping)


def test_a_call_is_tried_again_until_it_returns_with_pauses_of_at_most_what_the_rule_says() -> None:
    slept_s: list[float] = []
    reported: list[int] = []
    left = iter(range(8))

    def call() -> str:
        if next(left) < 7:
            raise OSError("away")
        return "there"

    again = attempts(
        60.0,
        lambda error: isinstance(error, OSError),
        first_s=0.1,
        max_s=1.0,
        on_pause=reported.append,
        sleep=slept_s.append,
    )
    assert again(call) == "there"
    assert reported == [1, 2, 3, 4, 5, 6, 7]
    for failures, each_s in enumerate(slept_s, 1):
        assert 0 <= each_s <= pause_s(failures, first_s=0.1, max_s=1.0)
    assert len({*slept_s}) > 1, "the pauses are by chance"


def test_an_error_that_cannot_pass_and_the_last_one_are_raised_as_they_are() -> None:
    calls: list[int] = []

    def call() -> None:
        calls.append(len(calls))
        raise KeyError("no such table")

    with pytest.raises(KeyError, match="no such table"):
        attempts(60.0, lambda error: isinstance(error, OSError))(call)
    assert len(calls) == 1
    with pytest.raises(KeyError, match="no such table"):
        attempts(0.0, lambda error: isinstance(error, KeyError))(call)
    assert len(calls) == 2


def test_calls_leave_nothing_to_the_collector() -> None:
    while gc.collect():  # what ends there may leave more
        pass
    gc.disable()
    try:
        for _ in range(100):
            assert attempts(60.0, lambda error: isinstance(error, OSError))(lambda: 7) == 7
        assert gc.collect() < 100
    finally:
        gc.enable()
