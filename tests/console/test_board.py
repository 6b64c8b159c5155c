"""The console's board: rates are of the last seconds however rarely it polled, and missing services are named."""

from __future__ import annotations

import pytest

from bettong.inspection.deployment import DeploymentAnswers
from bettong_console.board import Board
from bettong_console.errors import ConsoleRequestError
from bettong_console.listeners import Listeners
from tests.samples.watched_deployment import BEGUN_S, answers


def polled(*seconds: int) -> Board:
    """A board that polled at the sample in these seconds, and found it as it was in the first 40."""
    board = Board("market-spread")
    for second in seconds:
        board.add(BEGUN_S + second, float(second), answers(min(second, 40)))
    return board


def test_rates_after_idle_looks_are_those_of_the_last_seconds() -> None:
    busy, idle = polled(*range(0, 41, 10)), polled(*range(0, 91, 10))
    assert busy.known is not None
    assert idle.known is not None
    assert all(each.results_per_s for each in busy.known.measured.stages)
    assert [each.results_per_s for each in idle.known.measured.stages] == [0.0, 0.0]


def test_a_console_that_finds_redis_away_says_so_to_whoever_asks() -> None:
    board = Board("market-spread")
    listeners = Listeners(board, 5)
    board.add(BEGUN_S, 0.0, DeploymentAnswers(silent={"redis": "Redis at redis-1:6379 does not answer"}))
    for ask in (listeners.view, listeners.admit):
        with pytest.raises(ConsoleRequestError, match="Redis at redis-1:6379 does not answer") as refused:
            ask("summary")
        assert refused.value.status == 503
    assert listeners.wanted.is_set()
    board.add(BEGUN_S + 1, 1.0, answers(1))
    assert "market-spread" in listeners.view("summary")
