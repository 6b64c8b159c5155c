"""Reference tables over a real log and a real store: switched in the middle, under both schedules, through a crash."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import structlog

from bettong.application.nodes.source import Source
from bettong.application.plan import Plan, plan
from bettong.clocks import CheckedClock
from bettong.config.connection_settings import KafkaConnection, RedisConnection
from bettong.edges.kafka_log import LogAdmin, LogWriter
from bettong.errors import LogUnavailableError, ReferenceLostError
from bettong.frames.columns import Columns
from bettong.frames.frame import FrameKind, decode
from bettong.identifiers import ReferenceVersion, SequenceNumber
from bettong.inspection.live.key_history import PartitionLog, Stretch, folded, history_of
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from bettong.routing import partition_of
from bettong.schema.schema import schema_of
from bettong.topics import sink_topic, stage_topic
from bettong_processor.references.kept import KeptTable
from bettong_processor.references.loading import loaded_bytes
from bettong_processor.references.naming import ANSWER_MS_MAX, BUFFER_BYTES_MAX, Naming
from tests.integration.both_schedules import (
    Record,
    append,
    await_rest,
    by_origin,
    is_output,
    read,
    run_micro_batch,
)
from tests.integration.log_parts import FRAME_BYTES_MAX, delete_below
from tests.integration.resident_slots import PARTITIONS, World, programs_of
from tests.samples.example_feeds import of_columns, session
from tests.samples.reference_join import Order, Price, Priced, app_of
from tests.servers.locations import locations_of
from tests.waiting import eventually

SKUS = ("a", "b", "c")
ORDERS = 60


def never() -> bool:
    return False


@pytest.fixture
def world(kafka: KafkaBroker, redis_server: RedisServer, unique_name: Callable[..., str]) -> Iterator[World]:
    planned = replace(plan(app_of("left")), application=unique_name("priced"))
    one = World(planned.application, kafka.bootstrap, redis_server.url, programs_of(planned, compiled=False))
    yield one
    one.close()


def table_of(world: World, cents: int) -> KeptTable:
    """The driver's, of prices that are `cents` and more."""
    source = world.stage.references["priced"]
    naming = Naming(
        world.name,
        PARTITIONS,
        connect=lambda: LogWriter(
            world.kafka,
            frame_bytes_max=FRAME_BYTES_MAX,
            buffer_bytes_max=BUFFER_BYTES_MAX,
            delivery_timeout_ms=ANSWER_MS_MAX,
        ),
        clock=CheckedClock(time.time_ns, structlog.get_logger()),
        redis=world.redis,
    )

    def begins(stage: str) -> Mapping[int, int]:
        with LogAdmin(world.kafka) as admin:
            topic = stage_topic(world.name, stage)
            return {each.partition: begin for each, begin in admin.beginnings([topic]).items()}

    prices = replace(source, load=lambda: [Price(sku, cents + at) for at, sku in enumerate(SKUS)])
    log = structlog.get_logger()
    load = partial(loaded_bytes, "priced", prices, list)
    return KeptTable("priced", world.stage.name, source, load, world.kept_tables, naming.name, begins, log)


def orders(planned: Plan, first: int, until: int) -> Iterator[Record]:
    """What a sender appends for a client that sends these, one a frame."""
    (source,) = planned.sources
    assert isinstance(source, Source)
    sent = session(
        planned, source, partitions=PARTITIONS, frame_bytes_max=FRAME_BYTES_MAX, stream=f"s{first}"
    )
    appends = sent.open(0, time.time_ns(), SequenceNumber(0)).appends
    for number in range(first, until):
        message = Order(SKUS[number % 3] if number % 7 else "gone", f"account {number % 11}", number)
        frame = of_columns(Columns.of_messages(source.schema, [message]))
        frame.sequence = number - first + 1
        appends += sent.take(frame, 0, time.time_ns()).appends
    return ((each.topic, each.partition, each.value) for each in appends)


def interpreted(log: list[Record], cents: Mapping[int, int]) -> dict[int, int]:
    """By number of the order, the price of the version that its log has come to. `cents`: of each version's number."""
    found: dict[int, int] = {}
    current = dict.fromkeys(range(PARTITIONS), 1)
    for _, partition, value in log:
        frame = decode(value)
        if frame.kind is FrameKind.REFERENCE:
            assert frame.reference is not None
            current[partition] = max(current[partition], frame.reference.number)
        elif frame.kind is FrameKind.DATA:
            assert frame.columns is not None
            for order in Columns.of_payload(schema_of(Order), frame.columns):
                base = cents[current[partition]]
                found[order.number] = -1 if order.sku == "gone" else base + SKUS.index(order.sku)
    return found


def test_versions_are_seen_alike_under_both_schedules_and_through_a_crash(
    world: World, kafka: KafkaBroker, tmp_path: Path
) -> None:
    planned = world.programs.plan
    append(world, list(orders(planned, 0, 10)))  # before any driver has run
    table_of(world, 100).store_first(never)
    slot = world.start(0)
    world.start(1)
    world.group.assign({0: [0, 1, 2, 3]})
    append(world, list(orders(planned, 10, 20)))
    await_rest(world)
    table_of(world, 200).refresh(never)
    append(world, list(orders(planned, 20, 30)))
    await_rest(world)
    world.group.assign({0: [0, 1], 1: [2, 3]})
    world.group.await_holders({0: 0, 1: 0, 2: 1, 3: 1})
    world.kill(slot)
    append(world, list(orders(planned, 30, 40)))
    table = table_of(world, 300)
    table.refresh(never)
    table.refresh(never)  # an equal table names nothing
    append(world, list(orders(planned, 40, ORDERS)))
    world.start(0)
    await_rest(world)
    world.group.assign({}, stop=True)
    assert [each.ended() for each in world.slots[1:]] == [None, None]

    log = read(kafka, planned.topics)
    inputs = [each for each in log if each[0] == world.source]
    named = [decode(value).reference for _, _, value in inputs if decode(value).kind is FrameKind.REFERENCE]
    assert [each.number for each in named if each is not None].count(2) == PARTITIONS
    assert len(named) == 2 * PARTITIONS
    expected = interpreted(inputs, {1: 100, 2: 200, 3: 300})
    assert {value // 100 for value in expected.values() if value > 0} == {1, 2, 3}
    origins = {decode(value).origin for _, _, value in inputs}
    resident = by_origin(each for each in log if is_output(decode(each[2]), origins))
    micro_batch = by_origin(run_micro_batch(world.programs, kafka, inputs, tmp_path, world.references))
    assert resident == micro_batch
    found = {
        each.number: each.cents
        for (topic, _, _), values in resident.items()
        if topic == sink_topic(world.name, "out")
        for value in values
        for each in Columns.of_payload(schema_of(Priced), decode(value).columns or b"")
    }
    assert found == expected
    assert set(found) == set(range(ORDERS))
    replayed(world, expected)


def replayed(world: World, expected: Mapping[int, int]) -> None:
    """`bettong replay` finds the same."""
    where = locations_of(
        KafkaConnection.of(world.kafka),
        RedisConnection.of(world.redis_url),
        state_dir=Path("/nowhere"),
        frame_bytes_max=FRAME_BYTES_MAX,
    )
    key = "account 3"
    partition = partition_of(key, PARTITIONS)
    with LogAdmin(world.kafka) as admin:
        ends = {each.partition: end for each, end in admin.ends([world.source]).items()}
    log = PartitionLog(world.stage, world.source, partition, PARTITIONS, 0, ends[partition])
    stretch = Stretch(log, 0, ends[partition], None)
    history = history_of(world.programs.plan, key, where, stretch)
    events = [each for found in folded(history, stretch, where) for each in found]
    outputs = [text for event in events for _, text in event.outputs]
    assert outputs == [f'{{"number":{number},"cents":{expected[number]}}}' for number in range(3, ORDERS, 11)]


def test_a_version_that_is_gone_ends_the_slot_with_its_name(world: World) -> None:
    table_of(world, 100).store_first(never)
    (first,) = world.kept_tables.versions(world.stage.references["priced"].series("priced"))
    world.kept_tables.remove(first)
    world.kept_tables.save(first._replace(number=2), b"forged")
    slot = world.start(0)
    world.group.assign({0: [0, 1, 2, 3]})
    append(world, list(orders(world.programs.plan, 0, 10)))
    eventually(lambda: slot.error is not None, what="the slot ends")
    assert isinstance(slot.error, ReferenceLostError)
    assert "has other bytes than those that were stored" in str(slot.error)


def test_versions_that_no_log_holds_are_removed(world: World, kafka: KafkaBroker) -> None:
    table = table_of(world, 100)
    table.store_first(never)
    table_of(world, 200).refresh(never)
    (newer := table_of(world, 300)).refresh(never)
    assert [each.number for each in world.kept_tables.versions(table.series)] == [1, 2, 3]
    newest = world.kept_tables.versions(table.series)[-1]
    offsets = world.kept_tables.offsets(newest, world.stage.name)
    assert offsets is not None
    with LogAdmin(world.kafka) as admin:
        ends = {each.partition: end for each, end in admin.ends([world.source]).items()}
    assert offsets == {partition: end - 1 for partition, end in ends.items()}
    for partition, end in ends.items():
        delete_below(kafka, world.source, partition, end)
    newer.refresh(never)
    assert world.kept_tables.versions(table.series) == [newest]


def test_a_version_whose_records_were_not_all_answered_is_named_again(world: World) -> None:
    table_of(world, 100).store_first(never)
    table = table_of(world, 200)
    name = table.name

    def half(stage: str, version: ReferenceVersion) -> Mapping[int, int]:
        name(stage, version)
        raise LogUnavailableError("the answers were lost")

    table.name = half
    with pytest.raises(LogUnavailableError):
        table.refresh(never)
    again = table_of(world, 200)
    again.refresh(never)
    with LogAdmin(world.kafka) as admin:
        assert set(admin.ends([world.source]).values()) == {2}
    (_, two) = world.kept_tables.versions(again.series)
    assert world.kept_tables.offsets(two, world.stage.name) == dict.fromkeys(range(PARTITIONS), 1)
