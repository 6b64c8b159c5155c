"""A p99 above its objective needs a person once that has lasted; a burst, silence and no objective do not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bettong.inspection.objective import ABOVE_S_MIN, AboveObjective, above_objective
from bettong_console.board import Board
from bettong_console.views import summary
from tests.console.recordings import Look, recorded

FIRST, LAST = recorded("visits")[0], recorded("visits")[-1]


def slow(at_s: float, p99_ms: float) -> Look:
    """The last look of the recording, so many seconds later, had its receiver that p99."""
    live = {**LAST.answers.live, "receiver": {**LAST.answers.live["receiver"], "latency_p99_ms": str(p99_ms)}}
    return replace(LAST, time_s=FIRST.time_s + at_s, answers=replace(LAST.answers, live=live))


def needed_and_said(objective_ms: float | None, *looks: Look) -> tuple[list[str], list[str]]:
    """What needs a person for its latency after these looks, and what was reported of it."""
    board = Board("visits", objective_ms)
    for look in looks:
        board.add(look.time_s, look.time_s, look.answers)
    assert board.known is not None
    needed = [each["what"] for each in summary(board, board.known, looks[-1].time_s)["needs"]]
    said = [f"{each.what}: {each.text}" for each in board.changes]
    return [each for each in needed if "p99" in each], [each for each in said if "p99" in each]


@pytest.mark.parametrize(("p99_ms", "objective_ms"), [(None, 10.0), (10.0, 10.0), (99.0, None)])
def test_within_it_without_results_and_without_an_objective_nothing_is_above(
    p99_ms: float | None, objective_ms: float | None
) -> None:
    before = AboveObjective(10.0, 99.0, 5.0)
    assert above_objective(before, objective_ms, p99_ms, 7.0) is None


def test_above_counts_from_the_first_look_that_found_it() -> None:
    first = above_objective(None, 10.0, 12.0, 5.0)
    assert above_objective(first, 10.0, 30.0, 9.0) == AboveObjective(10.0, 30.0, 5.0)


def test_what_lasts_needs_a_person_and_is_an_alert_that_ends() -> None:
    above = [slow(second, 25.0) for second in (0, 60, ABOVE_S_MIN, ABOVE_S_MIN + 2)]
    what = "the p99 from client to delivery is 25.0 ms, above the objective of 10.0 ms for 2 min"
    needed, said = needed_and_said(10.0, *above)
    assert needed == [what]
    assert len(said) == 1
    assert said[0].startswith(f"alert: {what}; see the application: its slowest part")
    needed, said = needed_and_said(10.0, *above, slow(ABOVE_S_MIN + 20, 9.0))
    assert needed == []
    assert said[1].startswith(f"alert over: {what}")


def test_a_burst_needs_nobody_and_the_time_before_it_does_not_count() -> None:
    looks = [slow(0, 25.0), slow(60, 25.0), slow(90, 9.0), slow(100, 25.0), slow(ABOVE_S_MIN + 30, 25.0)]
    assert needed_and_said(10.0, *looks) == ([], [])
    assert needed_and_said(None, slow(0, 25.0), slow(ABOVE_S_MIN, 25.0), slow(ABOVE_S_MIN + 9, 25.0)) == (
        [],
        [],
    )


def test_a_time_in_which_nobody_looked_does_not_count() -> None:
    away = replace(slow(ABOVE_S_MIN, 25.0), answers=replace(LAST.answers, silent={"redis": "Redis is away"}))
    looks = [slow(0, 25.0), away, slow(ABOVE_S_MIN + 60, 25.0)]
    assert needed_and_said(10.0, *looks) == ([], [])
