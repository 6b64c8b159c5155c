"""Each process killed in the middle: the result files are those of an undisturbed run, byte for byte."""

import os
import random
import signal

import pytest

from examples.market_spread_client import MarketSpreadClient
from examples.market_spread_load import INITIAL_QUOTES, Round, rounds
from examples.market_spread_oracle import Oracle, by_symbol
from tests.e2e.conftest import RunningSuite, StartSuite
from tests.waiting import eventually

MESSAGES = 120_000
SEED = 20260921


@pytest.fixture(scope="module")
def load() -> list[Round]:
    return list(rounds(MESSAGES, seed=SEED, round_messages=12_000))


@pytest.fixture(scope="module")
def straight(start_suite: StartSuite, load: list[Round]) -> dict[str, bytes]:
    running = start_suite("examples/market_spread.py")
    files = _fed(running, load, victims=[])
    running.suite.stop()
    return files


@pytest.mark.timeout(600)
@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "python"])
def test_killing_each_process_leaves_the_result_files_identical(
    start_suite: StartSuite, load: list[Round], straight: dict[str, bytes], *, compiled: bool
) -> None:
    oracle = Oracle()
    oracle.initial_quotes(INITIAL_QUOTES)
    oracle.rounds(load)
    assert by_symbol(b"".join(straight.values())) == oracle.rejected

    victims = ["processor", "receiver", "sender", "kafka"] if compiled else ["processor", "processor"]
    killed = _fed(start_suite("examples/market_spread.py", compiled=compiled), load, victims=victims)
    assert killed == straight


def _fed(running: RunningSuite, load: list[Round], *, victims: list[str]) -> dict[str, bytes]:
    """Feeds the load; between two rounds, at seeded places, a process is killed while its results are due."""
    places = random.Random(SEED).sample(range(1, len(load)), len(victims))
    kills = dict(zip(sorted(places), victims, strict=True))
    with MarketSpreadClient(running.sender) as client:
        client.initial_quotes(INITIAL_QUOTES)
        for place, each in enumerate(load):
            if place in kills:
                _kill(running, kills[place])
            client.rounds([each])
    running.settle()
    return running.bytes_of("rejected")


def _kill(running: RunningSuite, service: str) -> None:
    """SIGKILL, and wait until the suite has noticed."""
    restarts = running.suite.record.services[service].restarts
    os.kill(running.suite.record.services[service].pid, signal.SIGKILL)
    eventually(lambda: running.suite.record.services[service].restarts > restarts, seconds=30)
