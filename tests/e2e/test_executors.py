"""Spark with 1, 2 and 3 executors, some of them killed in the middle, under both schedules: the same results.

Under the resident schedule functions run as plain Python, else compiled where they can be: that gives the same too.
"""

import json
import random
import re
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from bettong.application.nodes.source import Source
from bettong.application.plan import plan
from bettong.class_archives import EXECUTOR, archive
from bettong.client.sender import Sender
from bettong.config.processor import Schedule
from bettong.edges.application_file import load
from bettong.frames.columns import Columns
from bettong.v1.ingest_pb2 import IngestFrame
from examples.market_spread_oracle import by_symbol, rejected
from tests.e2e.conftest import ROOT, RunningSuite, StartSuite
from tests.samples.example_feeds import Feed, lines, market, market_rounds, trades
from tests.waiting import eventually

# Memory of a worker, MiB: that of the one executor which it has.
MEMORY = 1024

# Runs: which schedule, how many executors, and how many of them are killed.
TWO = ((Schedule.MICRO_BATCH, 2, 1), (Schedule.RESIDENT, 2, 1))
ANY = ((Schedule.MICRO_BATCH, 1, 0), *TWO, (Schedule.MICRO_BATCH, 3, 2))


@dataclass(frozen=True)
class Example:
    """An application, its input, and its results in a form that is the same for each run."""

    application: str
    feed: Callable[[dict[str, Source]], Feed]
    results: Callable[[RunningSuite], object]


def rejected_files(running: RunningSuite) -> object:
    """The files to the byte, and they say what the oracle says."""
    files = running.bytes_of("rejected")
    assert by_symbol(b"".join(files.values())) == rejected(market_rounds())
    return files


def by(key: str, sink: str) -> Callable[[RunningSuite], object]:
    """The results of each key, in order: between keys of a second stage there is none."""

    def results(running: RunningSuite) -> object:
        found: dict[str, list[bytes]] = defaultdict(list)
        for line in running.all_bytes_of(sink).splitlines():
            found[json.loads(line)[key]].append(line)
        assert len(found) > 1
        return dict(found)

    return results


MARKET = Example("examples/market_spread/risk_check.py", market, rejected_files)
WORDS = Example("examples/word_count.py", lines, by("word", "counts"))
TURNOVER = Example("examples/turnover.py", trades, by("symbol", "turnover"))


@pytest.mark.parametrize(
    ("example", "runs"),
    [
        pytest.param(MARKET, TWO, id="market spread, two"),
        *(
            pytest.param(each, ANY, id=f"{Path(each.application).stem}, any", marks=pytest.mark.long)
            for each in (MARKET, WORDS, TURNOVER)
        ),
    ],
)
@pytest.mark.timeout(900)
def test_any_number_of_executors_gives_the_same_results(
    start_suite: StartSuite, example: Example, runs: tuple[tuple[Schedule, int, int], ...]
) -> None:
    found = [
        fed(start_suite, example, schedule, executors=executors, kills=kills)
        for schedule, executors, kills in runs
    ]
    for index, each in enumerate(found):
        assert each == found[0], f"run {index}"


def fed(
    start_suite: StartSuite, example: Example, schedule: Schedule, *, executors: int, kills: int
) -> object:
    """The results of one run, in which executors die at seeded places."""
    sources = {source.name: source for source in plan(load(str(ROOT / example.application))).sources}
    feed = example.feed(sources)
    running = start_suite(
        example.application,
        schedule=schedule,
        compiled=schedule is not Schedule.RESIDENT,
        settings={"spark_master": f"local-cluster[{executors},1,{MEMORY}]"},
    )
    chance = random.Random(executors)
    killing = set(chance.sample(range(2, len(feed) - 1), kills))
    first = executors_of(running)
    assert len(first) == executors
    for each in first:
        assert str(archive(EXECUTOR)) in {part.path for part in each.memory_maps()}, "without its archive"
    with ExitStack() as stack:
        senders = {name: stack.enter_context(Sender(running.sender, name, "feed")) for name in sources}
        for index, (name, frame) in enumerate(feed):
            if index in killing:
                victim = chance.choice(executors_of(running))
                victim.kill()
                eventually(lambda: len(executors_of(running)) == executors, seconds=60)
            if schedule is Schedule.RESIDENT and index == len(feed) - 1:
                # Again among all: whether among those that were left before depends on how soon the others are back.
                eventually(
                    lambda: len(found := assignments(running)) > kills and found[-1] == executors,
                    seconds=60,
                    what="partitions are assigned among all",
                )
            send(senders[name], sources[name], frame)
    running.settle()
    found = example.results(running)
    running.suite.stop()
    return found


def send(sender: Sender, source: Source, frame: IngestFrame) -> None:
    """One frame, durable when this returns."""
    if frame.HasField("rows"):
        sender.send_rows(list(frame.rows.messages))
    else:
        sender.send_columns(Columns.of_payload(source.schema, frame.columns).batch())
    sender.flush(60)


def assignments(running: RunningSuite) -> list[int]:
    """Among how many members partitions were assigned, each time, by the processor's log."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", said(running))
    return [int(found) for found in re.findall(r"partitions are assigned.*? members=(\d+)", plain)]


def said(running: RunningSuite) -> str:
    """The processor's log."""
    return running.suite.record.services["processor"].log.read_text()


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
