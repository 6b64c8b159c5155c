"""`bettong repartition` on the whole suite: states, windows and clients go on over other partitions as before."""

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from bettong.cli.ending import end_well
from bettong.cli.main import app as command_line
from bettong.config.processor import Schedule
from bettong.edges.application_file import load
from bettong.edges.kafka_log import LogAdmin
from bettong.edges.partitioning_log import kept_partitioning, prepare_topics
from bettong.edges.redis_store import RedisStore
from bettong.errors import LogError
from bettong.inspection.locations import Locations
from bettong.local import rest
from bettong.local.locations import locations
from bettong.routing import partition_of
from bettong.testing import clock, run
from tests.e2e.bare_client import feed
from tests.e2e.conftest import ROOT, RunningSuite, StartSuite
from tests.waiting import eventually

APPLICATION = """
import json
from dataclasses import dataclass
from datetime import timedelta
import bettong

@dataclass
class Order:
    number: int
    sku: str
    at: int
    cents: int

@dataclass
class Total:
    number: int
    sku: str
    region: int
    cents: int

@dataclass
class Seen:
    region: int
    count: int

@dataclass
class Sum:
    key: str
    start: int
    orders: int
    cents: int

@dataclass
class Kept:
    cents: int = 0

@dataclass
class Count:
    count: int = 0

def decode(row: bytes) -> Order:
    return Order(**json.loads(row))

def total(order: Order, kept: Kept) -> Total:
    kept.cents += order.cents
    return Total(order.number, order.sku, order.number % 5, kept.cents)

def seen(total: Total, kept: Count) -> Seen:
    kept.count += 1
    return Seen(total.region, kept.count)

app = bettong.Application("shop")
orders = app.source(
    "orders",
    schema=Order,
    key="sku",
    event_time="at",
    # Longer than a suite takes to stop and start again: the client is waited for.
    idle_timeout=timedelta(hours=1),
    decoder=bettong.each(decode),
)
totals = orders.stateful(total, state=Kept, name="total")
totals.sink("totals")
sums = bettong.aggregate(Sum, orders=bettong.Count(), cents=bettong.Sum("cents"))
orders.window(bettong.tumbling(timedelta(seconds=10)), sums, name="windows").sink("sums")
totals.key_by("region", name="regions").stateful(seen, state=Count, name="counting").sink("seen")
"""
S_NS = 1_000_000_000
# Orders of a part; each of a second of event time.
ORDERS = 60
FRAME_ORDERS = 7


# Both schedules begin anew over more partitions; over fewer the resident one here, micro-batches with the timers below.
PARTS = (
    (Schedule.MICRO_BATCH, 3),
    (Schedule.MICRO_BATCH, 8),
    (Schedule.RESIDENT, 2),
    (Schedule.RESIDENT, 4),
)
# Where the command that comes before a part is killed; the last one is not.
KILLED_AT = {1: "topics get", 2: "dividing the states of stage regions"}


@pytest.mark.timeout(1200)
def test_results_are_those_of_an_application_that_was_never_repartitioned(
    start_suite: StartSuite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    application, kept = tmp_path / "shop.py", tmp_path / "kept"
    application.write_text(APPLICATION)
    frames = list(frames_of(len(PARTS)))
    found: dict[str, Counter[str]] = {}
    for part, (schedule, partitions) in enumerate(PARTS):
        before = PARTS[part - 1][1]
        if part:
            repartition(capsys, application, kept, (before, partitions), killed_at=KILLED_AT.get(part))
        running = start_suite(
            str(application),
            schedule=schedule,
            partitions=partitions,
            keep=kept,
            settings={"compiled": "false"},
        )
        if part:
            refuses_as_many_as_before(application, kept, before, partitions)
        if part in {1, 3}:
            forget_streams(running)
        # The client begins again from its first frame: by then, others are where its keys were.
        upto = len(frames) * (part + 1) // len(PARTS)
        assert feed(running.sender, "orders", "till", frames[:upto])[1].acknowledged == upto
        running.settle()
        running.suite.stop()
        found = {
            sink: Counter(map(as_text, map(json.loads, running.all_bytes_of(sink).splitlines())))
            for sink in ("totals", "sums", "seen")
        }
    expected = run(load(str(application)), [clock(at=time.time_ns()), *(("orders", rows) for rows in frames)])
    assert found == {
        sink: Counter(as_text(vars(each)) for each in results) for sink, results in expected.outputs.items()
    }
    assert found["totals"].total() == len(PARTS) * ORDERS


LOANS = """
import json
from dataclasses import dataclass
import bettong

@dataclass
class Loan:
    book: str
    due_ns: int  # 0: given back

@dataclass
class Overdue:
    book: str

@dataclass
class Shelf:
    due_at: bettong.LogTimer = bettong.NEVER

def on_loan(loan: Loan, shelf: Shelf) -> None:
    shelf.due_at = loan.due_ns or bettong.NEVER

def on_due(fired: bettong.Fired[str], shelf: Shelf) -> Overdue:
    return Overdue(fired.key)

app = bettong.Application("library")
loans = app.source("loans", schema=Loan, key="book", decoder=bettong.each(lambda row: Loan(**json.loads(row))))
loans.stateful(on_loan, state=Shelf, timers={"due_at": on_due}, name="shelf").sink("overdue")
"""
# Longer than it takes to fold, save and stop; most of it goes by while nothing runs, for micro-batches that wait take a
# third of a core.
LOAN_NS = 45 * S_NS
# About what a start takes.
START_NS = 8 * S_NS


@pytest.mark.timeout(600)
def test_timers_fire_in_partitions_that_had_none_when_no_message_comes_any_more(
    start_suite: StartSuite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    application, kept = tmp_path / "library.py", tmp_path / "kept"
    application.write_text(LOANS)
    books = [f"book {number}" for number in range(40)]
    lent = [book for book in books if partition_of(book, 3) == 2]
    assert {partition_of(book, 2) for book in lent} == {0, 1}

    def start(partitions: int) -> RunningSuite:
        return start_suite(
            str(application),
            schedule=Schedule.MICRO_BATCH,
            partitions=partitions,
            keep=kept,
            settings={"compiled": "false"},
        )

    running = start(3)
    due_ns = time.time_ns() + LOAN_NS
    rows = [json.dumps({"book": book, "due_ns": due_ns * (book in lent)}).encode() for book in books]
    feed(running.sender, "loans", "desk", [rows])
    running.settle()
    assert not running.all_bytes_of("overdue")
    running.suite.stop()
    assert "library has 2 partitions, it had 3" in command(capsys, application, kept, "--partitions", "2")
    eventually(lambda: time.time_ns() > due_ns - START_NS, seconds=60, what="books are soon due")
    running = start(2)
    eventually(lambda: len(running.all_bytes_of("overdue").splitlines()) >= len(lent), seconds=180)
    found = [json.loads(line)["book"] for line in running.all_bytes_of("overdue").splitlines()]
    assert sorted(found) == sorted(lent)


def frames_of(parts: int) -> Iterator[list[bytes]]:
    """Of one client. The last order is of so much later that all windows before it are over."""
    now_ns = int(time.time()) // 10 * 10 * S_NS - 3600 * S_NS
    count = parts * ORDERS
    orders = [
        {"number": number, "sku": f"s{number * 7 % 11}", "at": now_ns + number * S_NS, "cents": number}
        for number in range(count - 1)
    ]
    orders.append({"number": count - 1, "sku": "s0", "at": now_ns + 3000 * S_NS, "cents": 1})
    for start in range(0, count, FRAME_ORDERS):
        yield [json.dumps(order).encode() for order in orders[start : start + FRAME_ORDERS]]


def repartition(
    capsys: pytest.CaptureFixture[str],
    application: Path,
    kept: Path,
    changed: tuple[int, int],
    *,
    killed_at: str | None,
) -> None:
    """Run once; or is killed at a step, Kafka and Redis with it, and goes on when run again.

    What follows the kill shares one Kafka: each start of it takes seconds of CPU.
    """
    before, partitions = changed
    said, to = f"shop has {partitions} partitions, it had {before}", ("--partitions", str(partitions))
    if killed_at is None:
        assert said in command(capsys, application, kept, *to)
        return
    kill(application, kept, partitions, killed_at)
    with rest.at_rest(str(application), "shop", kept) as where, pytest.MonkeyPatch.context() as patch:
        patch.setattr(rest, "at_rest", lambda *_args, **_more: nullcontext(where))
        with LogAdmin(where.kafka) as admin:
            for number in (before, partitions):
                with pytest.raises(
                    LogError, match=f"from {before} to {partitions} partitions: finish that with"
                ):
                    prepare(admin, where, number)
            record = kept_partitioning(admin, where.kafka, "shop")
        assert record is not None
        assert record.change is not None
        if not record.change.switched:
            back = command(capsys, application, kept, "--back")
            assert f"shop has {before} partitions, as before; the change to {partitions} is undone" in back
            would = command(capsys, application, kept, *to, "--dry-run")
            assert f"would give shop {partitions} partitions instead of {before}; states: " in would
        assert said in command(capsys, application, kept, *to)


def refuses_as_many_as_before(application: Path, kept: Path, before: int, partitions: int) -> None:
    """What a service does that is told the old number, while those run that were told the new one."""
    where = locations(str(application), "shop", kept)
    with LogAdmin(where.kafka) as admin:
        prepare(admin, where, partitions)
        with pytest.raises(LogError, match=f"set BETTONG_PARTITIONS to {partitions}"):
            prepare(admin, where, before)


def prepare(admin: LogAdmin, where: Locations, partitions: int) -> None:
    """What a service does that is told so many partitions."""
    prepare_topics(
        admin,
        where.kafka,
        "shop",
        ("shop.stage.orders", "shop.sink.seen"),
        partitions=partitions,
        replication=1,
        frame_bytes_max=where.frame_bytes_max,
    )


def kill(application: Path, kept: Path, partitions: int, step: str) -> None:
    """Runs the command, and kills it when it says that it begins a step."""
    with subprocess.Popen(
        [sys.executable, "-m", "bettong", *arguments(application, kept, "--partitions", str(partitions))],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        said = next((line for line in running.stdout if line.startswith(step)), None)
        running.kill()
    assert said is not None


def arguments(application: Path, kept: Path, *more: str) -> list[str]:
    return ["repartition", str(application), "--dir", str(kept), *more]


def command(capsys: pytest.CaptureFixture[str], application: Path, kept: Path, *more: str) -> str:
    """What it says, run in this process: each start of Python takes a second of CPU."""
    capsys.readouterr()
    code = end_well(command_line, arguments(application, kept, *more), name="bettong")
    captured = capsys.readouterr()
    assert code == 0, captured.out + captured.err
    return " ".join(captured.out.split())


def forget_streams(running: RunningSuite) -> None:
    """Redis has lost what senders had said of streams: only the delivery tables know the frames that have come."""
    record = running.suite.record
    with RedisStore(record.redis_connection, record.name) as store:
        found = store.ask("looking for streams", lambda client: client.keys(store.key("stream", "*")))
        assert found
        store.ask("forgetting streams", lambda client: client.delete(*found))


def as_text(row: dict[str, Any]) -> str:
    return json.dumps(row, sort_keys=True)
