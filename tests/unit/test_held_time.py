"""For how long something holds up who waits for it."""

import contextlib

from bettong.held_time import HeldTime


class Clock:
    """Moves when it is told to."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_it_counts_from_each_beginning_to_the_next_end_and_what_is_under_way() -> None:
    held = HeldTime(clock := Clock())
    assert (held.is_held, held.now_s, held.total_s) == (False, 0.0, 0.0)
    held.end()
    held.begin()
    clock.now_s += 2
    held.begin()  # it does already
    assert (held.is_held, held.now_s, held.total_s) == (True, 2.0, 2.0)
    held.end()
    clock.now_s += 5
    held.begin()
    clock.now_s += 1
    assert (held.is_held, held.now_s, held.total_s) == (True, 1.0, 3.0)


def test_what_fails_holds_on() -> None:
    held = HeldTime(clock := Clock())
    with held:
        clock.now_s += 2
    assert (held.is_held, held.total_s) == (False, 2.0)
    with contextlib.suppress(OSError), held:
        raise OSError
    clock.now_s += 3
    assert (held.is_held, held.total_s) == (True, 5.0)
    with held:
        clock.now_s += 1
    assert (held.is_held, held.total_s) == (False, 6.0)
