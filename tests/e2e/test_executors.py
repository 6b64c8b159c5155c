"""Spark with 1, 2 and 3 executors, some of them killed in the middle, under both schedules: the same result files."""

import random
from pathlib import Path

import psutil
import pytest

from bettong.settings import Schedule
from examples.market_spread_client import MarketSpreadClient
from examples.market_spread_load import INITIAL_QUOTES, rounds
from examples.market_spread_oracle import by_symbol, rejected
from tests.e2e.conftest import RunningSuite, StartSuite
from tests.waiting import eventually

LOAD = list(rounds(60_000, seed=20261121, round_messages=6_000))
# Memory of a worker, MiB: that of the one executor which it has.
MEMORY = 1024


# Runs: which schedule, how many executors, and how many of them are killed.
TWO = ((Schedule.MICRO_BATCH, 2, 1), (Schedule.RESIDENT, 2, 1))
ANY = ((Schedule.MICRO_BATCH, 1, 0), *TWO, (Schedule.MICRO_BATCH, 3, 2))


@pytest.mark.parametrize("runs", [TWO, pytest.param(ANY, marks=pytest.mark.long)], ids=["two", "any"])
@pytest.mark.timeout(900)
def test_any_number_of_executors_gives_the_same_files(
    start_suite: StartSuite, runs: tuple[tuple[Schedule, int, int], ...]
) -> None:
    files = [
        fed(start_suite, schedule, executors=executors, kills=kills) for schedule, executors, kills in runs
    ]
    assert by_symbol(b"".join(files[0].values())) == rejected(LOAD)
    for place, each in enumerate(files):
        assert each == files[0], f"run {place}"


def fed(start_suite: StartSuite, schedule: Schedule, *, executors: int, kills: int) -> dict[str, bytes]:
    """The result files of one run, in which executors die at seeded places."""
    running = start_suite(
        "examples/market_spread.py",
        schedule=schedule,
        settings={"spark_master": f"local-cluster[{executors},1,{MEMORY}]"},
    )
    chance = random.Random(executors)
    places = set(chance.sample(range(2, len(LOAD) - 1), kills))
    with MarketSpreadClient(running.sender) as client:
        client.initial_quotes(INITIAL_QUOTES)
        assert len(executors_of(running)) == executors
        for place, each in enumerate(LOAD):
            if place in places:
                victim = chance.choice(executors_of(running))
                victim.kill()
                eventually(lambda: len(executors_of(running)) == executors, seconds=60)
            if schedule is Schedule.RESIDENT and place == len(LOAD) - 1:
                # At the start, among those that were left, and again among all.
                eventually(lambda: deals(running) > 2 * kills, seconds=60, what="partitions are dealt anew")
            client.rounds([each])
    running.settle()
    found = running.bytes_of("rejected")
    running.suite.stop()
    return found


def deals(running: RunningSuite) -> int:
    """How often partitions were dealt, by the processor's log."""
    log = running.suite.record.services["processor"].log
    return log.read_text().count("partitions are dealt")


def executors_of(running: RunningSuite) -> list[psutil.Process]:
    """Spark's executors, which are processes of their own here, oldest first."""
    processor = psutil.Process(running.suite.record.services["processor"].pid)
    found = [each for each in processor.children(recursive=True) if is_executor(each)]
    return sorted(found, key=lambda each: each.create_time())


def is_executor(process: psutil.Process) -> bool:
    try:
        line = process.cmdline()
    except psutil.Error:
        return False
    return bool(line) and Path(line[0]).name == "java" and any("ExecutorBackend" in part for part in line)
