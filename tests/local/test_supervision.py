"""Whether a process is started again, decided from the times of its deaths."""

import itertools

from bettong.local.supervision import DEATHS_MAX, WINDOW_S, GiveUp, StartAgain, decide


def test_the_wait_doubles_with_each_death_in_the_window_up_to_a_bound() -> None:
    waits = [decide([float(second) for second in range(count)]) for count in range(1, DEATHS_MAX + 1)]
    assert waits == [StartAgain(0.2), StartAgain(0.4), StartAgain(0.8), StartAgain(1.6), StartAgain(3.2)]


def test_one_death_more_than_the_bound_ends_it() -> None:
    assert decide([float(second) for second in range(DEATHS_MAX + 1)]) == GiveUp(DEATHS_MAX + 1)


def test_deaths_long_ago_do_not_count() -> None:
    deaths = list(itertools.accumulate([WINDOW_S + 1] * 20))
    assert all(decide(deaths[:count]) == StartAgain(0.2) for count in range(1, 21))


def test_who_kills_on_purpose_allows_more_deaths_and_waits_less() -> None:
    many = [float(second) / 10 for second in range(500)]
    assert decide(many, deaths_max=500, wait_s_max=0.2) == StartAgain(0.2)
    assert decide(many, deaths_max=499) == GiveUp(500)
    assert decide(many, deaths_max=2000) == StartAgain(5.0)
