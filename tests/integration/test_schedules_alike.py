"""Every example under both schedules, over one log: the same records of output, byte for byte.

The log is made by the real sender's sessions and lies in a real Kafka. The resident half is the real loop in two slots,
between which partitions move in the middle; the micro-batch half is what a Spark task calls for each batch, by two
processes in turns. Spark itself, which only carries records, is in `tests/e2e/test_executors.py`.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bettong.application.nodes.source import Source
from bettong.application.plan import Plan, plan
from bettong.edges.application_file import load
from bettong.frames.frame import decode
from bettong.identifiers import ReferenceVersion, SequenceNumber
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from bettong.topics import sink_topic, stage_topic
from bettong.worker.references.table import fingerprint_of
from bettong_processor.references.loading import loaded_bytes
from tests.integration.both_schedules import (
    Record,
    append,
    await_rest,
    by_origin,
    is_output,
    read,
    run_micro_batch,
)
from tests.integration.log_parts import FRAME_BYTES_MAX
from tests.integration.resident_slots import PARTITIONS, World, programs_of
from tests.samples.example_feeds import (
    Feed,
    card_events,
    clicks,
    lines,
    market,
    orders,
    payments,
    quoted_trades,
    readings,
    session,
    steps,
    temperatures,
    trades,
    transactions,
    votes,
)
from tests.samples.example_files import EXAMPLES, applications

FEEDS: dict[str, Callable[[dict[str, Source]], Feed]] = {
    "alerts": transactions,
    "card_fraud": card_events,
    "celsius": temperatures,
    "classifier": readings,
    "market_spread/risk_check": market,
    "orders_with_prices": orders,
    "overdue_orders": steps,
    "running_totals": votes,
    "sqlite_ledger/payments": payments,
    "trades_and_quotes": quoted_trades,
    "turnover": trades,
    "visits": clicks,
    "word_count": lines,
}


def test_no_example_is_left_out() -> None:
    assert applications() == FEEDS.keys()


@pytest.mark.parametrize(
    ("example", "compiled"),
    [(name, False) for name in FEEDS]
    + [
        (name, True) for name in ("celsius", "market_spread/risk_check", "overdue_orders", "running_totals")
    ],  # compiled
)
def test_both_schedules_put_out_the_same_records(
    *,
    example: str,
    compiled: bool,
    kafka: KafkaBroker,
    redis_server: RedisServer,
    unique_name: Callable[..., str],
    tmp_path: Path,
) -> None:
    planned = replace(plan(load(str(EXAMPLES / f"{example}.py"))), application=unique_name("alike"))
    programs = programs_of(planned, compiled=compiled)
    assert any(stage.kernels for stage in programs.stages.values()) == compiled
    fed = list(records_of(planned, FEEDS[example]))
    origins = {decode(value).origin for _, _, value in fed}
    world = World(planned.application, kafka.bootstrap, redis_server.url, programs)
    store_first_tables(world)
    try:
        run_resident(world, fed)
    finally:
        world.close()
    stages = [stage_topic(planned.application, stage.name) for stage in planned.stages]
    log = read(kafka, planned.topics)
    resident = by_origin(each for each in log if is_output(decode(each[2]), origins))
    inputs = [each for each in log if each[0] in stages]
    micro_batch = by_origin(run_micro_batch(programs, kafka, inputs, tmp_path, world.references))
    for sink in planned.sinks:
        topic = sink_topic(planned.application, sink.name)
        assert sum(len(values) for (of, _, _), values in micro_batch.items() if of == topic) > 10
    assert resident == micro_batch


def store_first_tables(world: World) -> None:
    """As the driver does before anything is folded."""
    for stage in world.programs.plan.stages:
        for join, source in stage.references.items():
            data = loaded_bytes(join, source, list)
            first = ReferenceVersion(source.series(join), 1, fingerprint_of(data))
            world.kept_tables.save(first, data)


def records_of(planned: Plan, feed: Callable[[dict[str, Source]], Feed]) -> Iterator[Record]:
    """What a sender appends for a client that sends the feed, and ends its streams."""
    sources = {source.name: source for source in planned.sources}
    sessions = {
        name: session(planned, source, partitions=PARTITIONS, frame_bytes_max=FRAME_BYTES_MAX)
        for name, source in sources.items()
    }
    begun_ns = time.time_ns()  # an origin that was heard of long ago would be idle
    appends = [each for one in sessions.values() for each in one.open(0, begun_ns, SequenceNumber(0)).appends]
    for sequence, (name, frame) in enumerate(feed(sources), 1):
        frame.sequence = sequence
        appends += sessions[name].take(frame, 0, begun_ns + sequence).appends
    appends += [each for one in sessions.values() for each in one.end(0, time.time_ns()).appends]
    return ((each.topic, each.partition, each.value) for each in appends)


def run_resident(world: World, fed: list[Record]) -> None:
    """Two slots fold it all; half of it comes when they hold other partitions than before."""
    world.start(0)
    world.start(1)
    world.group.assign({0: [0, 1, 2, 3]})
    append(world, fed[: len(fed) // 2])
    await_rest(world)
    world.group.assign({0: [0, 1], 1: [2, 3]})
    world.group.await_holders({0: 0, 1: 0, 2: 1, 3: 1})
    append(world, fed[len(fed) // 2 :])
    await_rest(world)
    world.group.assign({}, stop=True)
    assert [slot.ended() for slot in world.slots] == [None, None]
