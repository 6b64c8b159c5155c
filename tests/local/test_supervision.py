"""Whether a process is started again, decided from the times of its deaths."""

import itertools

from bettong.errors import BettongError, LogError, StoreError
from bettong.local.supervision import (
    DEATHS_MAX,
    EXPLAINED_MAX,
    FINAL_STATUSES,
    FORGET_S,
    GiveUp,
    StartAgain,
    decide,
)


def test_the_wait_doubles_with_each_death_in_a_row_up_to_a_bound() -> None:
    waits = [decide([float(second) for second in range(count)]) for count in range(1, DEATHS_MAX + 1)]
    assert waits == [StartAgain(0.0), StartAgain(0.4), StartAgain(0.8), StartAgain(1.6), StartAgain(3.2)]


def test_one_death_more_than_the_bound_ends_it() -> None:
    assert decide([float(second) for second in range(DEATHS_MAX + 1)]) == GiveUp(DEATHS_MAX + 1)


def test_a_rest_without_a_death_makes_the_next_wait_short_again() -> None:
    row = [0.0, 1.0, 2.0, 3.0, 4.0]
    assert decide([*row, 4.0 + FORGET_S + 0.1]) == StartAgain(0.0)
    assert decide([*row, 40.0, 41.0]) == StartAgain(0.4)


def test_deaths_that_keep_coming_are_one_row_however_long_it_takes() -> None:
    deaths = list(itertools.accumulate([FORGET_S] * (DEATHS_MAX + 1)))
    assert decide(deaths) == GiveUp(DEATHS_MAX + 1)


def test_deaths_that_are_explained_do_not_count_but_for_a_bound() -> None:
    deaths = [float(second) for second in range(EXPLAINED_MAX + DEATHS_MAX + 1)]
    assert decide(deaths[:7], explained=6) == StartAgain(0.0)
    assert decide(deaths[:7], explained=5) == StartAgain(0.4)
    assert decide(deaths[: DEATHS_MAX + 3], explained=2) == GiveUp(DEATHS_MAX + 3)
    assert decide(deaths[:-1], explained=len(deaths) - 2) == StartAgain(0.0)
    assert decide(deaths, explained=len(deaths) - 1) == GiveUp(len(deaths))


def test_deaths_long_ago_do_not_count() -> None:
    deaths = list(itertools.accumulate([FORGET_S + 1] * 20))
    assert all(decide(deaths[:count]) == StartAgain(0.0) for count in range(1, 21))


def test_who_kills_on_purpose_allows_more_deaths_and_waits_less() -> None:
    many = [float(second) / 10 for second in range(500)]
    assert decide(many, deaths_max=500, wait_s_max=0.2) == StartAgain(0.2)
    assert decide(many, deaths_max=499) == GiveUp(500)
    assert decide(many, deaths_max=2000) == StartAgain(5.0)


def test_what_a_store_or_the_log_fails_at_for_now_is_no_final_end() -> None:
    assert not {StoreError.exit_code, LogError.exit_code, BettongError.exit_code} & FINAL_STATUSES
