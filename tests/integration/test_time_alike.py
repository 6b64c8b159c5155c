"""All that goes by time, under both schedules, over 1, 3 and 16 partitions, with a crash at every step: the results are
those that are written out, and the records of output the same, byte for byte.

The resident half is the real loop of a slot, which is killed after each turn and whose next task takes over; the
micro-batch half folds the same logs by a new process for each record. The clock that both go by is the cases' own.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from bettong.application.plan import Plan, plan
from bettong.frames.columns import Columns
from bettong.frames.frame import FrameKind, decode, reference_record
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from bettong.snapshots.references import next_version
from bettong.testing import Reference
from bettong.testing.inputs import ClientFrame
from bettong.testing.memory_clients import MemoryClients
from bettong.topics import sink_topic, stage_topic
from bettong.worker.references.loaded import loaded_table
from bettong.worker.references.table import fingerprint_of
from tests.integration.both_schedules import (
    Output,
    Record,
    append,
    await_rest,
    by_origin,
    is_output,
    read,
    run_micro_batch,
)
from tests.integration.resident_slots import World, programs_of
from tests.samples.time_case import TURN_NS, TimeCase, application
from tests.samples.time_cases import CASES
from tests.samples.time_pipelines import START_NS, Event, Line

SEED = 20_261_126
TURNS = max(len(case.turns) for case in CASES)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("partitions", "compiled", "cases"),
    [
        pytest.param(1, False, CASES[::2], id="one partition, half of the cases"),
        pytest.param(3, True, CASES, id="three, compiled"),
        pytest.param(16, False, CASES[1::5], id="sixteen, some cases"),
        pytest.param(1, False, CASES, id="one partition", marks=pytest.mark.long),
        # In parts: all at once would be more partitions than a test's broker has memory for.
        *(
            pytest.param(16, False, CASES[part::5], id=f"sixteen, part {part}", marks=pytest.mark.long)
            for part in (0, 2, 3, 4)
        ),
    ],
)
def test_what_goes_by_time_is_the_same_under_both_schedules_with_a_crash_at_every_step(
    *,
    partitions: int,
    compiled: bool,
    cases: Sequence[TimeCase],
    kafka: KafkaBroker,
    redis_server: RedisServer,
    unique_name: Callable[..., str],
    tmp_path: Path,
) -> None:
    planned = plan(application(cases, unique_name("time")))
    programs = programs_of(planned, compiled=compiled)
    chance = random.Random(SEED + partitions)
    world = World(planned.application, kafka.bootstrap, redis_server.url, programs, partitions=partitions)
    try:
        run_resident(world, cases, chance)
    finally:
        world.close()
    stages = [stage_topic(planned.application, stage.name) for stage in planned.stages]
    log = read(kafka, planned.topics, partitions=partitions)
    sources = {source.name for source in planned.sources}
    clients = {origin for _, _, value in log if (origin := decode(value).origin).split("/")[0] in sources}
    resident = by_origin(each for each in log if is_output(decode(each[2]), clients))
    assert lines_of(planned, resident) == {f"{case.name}-out": sorted(case.lines) for case in cases}
    inputs = [each for each in log if each[0] in stages]
    assert resident == by_origin(
        run_micro_batch(
            programs, kafka, inputs, tmp_path, world.references, partitions=partitions, crashes=True
        )
    )


def run_resident(world: World, cases: Sequence[TimeCase], chance: random.Random) -> None:
    """A turn of all cases, then a crash; every second task has saved nothing of it."""
    now_ns = START_NS
    world.machine_ns = lambda: now_ns
    for stage in world.programs.plan.stages:
        for join, source in stage.references.items():
            assert list(switched(world, Reference(join, source.load()), now_ns))
    clients = MemoryClients(world.programs.plan, world.partitions)
    everything = [ClientFrame(f"{case.name}-in", ()) for case in cases]
    append(world, ((each.topic, each.partition, each.value) for each in clients.connect(everything, now_ns)))
    for number in range(TURNS + 1):
        is_saved = number % 2 == 0
        slot = world.start(0, snapshot_s=0.05 if is_saved else 3600)
        world.group.assign({0: list(range(world.partitions))})
        # What was due in between comes first.
        await_rest(world, soon_ns=now_ns + 1, is_saved=False)
        for step in turn(cases, number, chance):
            if isinstance(step, Reference):
                append(world, switched(world, step, now_ns))
            else:
                sent = clients.send(step, now_ns)
                append(world, ((each.topic, each.partition, each.value) for each in sent))
        await_rest(world, soon_ns=now_ns + 1, is_saved=is_saved)
        world.kill(slot)
        now_ns += TURN_NS if number + 1 < TURNS else TURN_NS // 10


def switched(world: World, to: Reference, now_ns: int) -> Iterator[Record]:
    """Stores a version of a reference table, if it is another one than before; the records that name it."""
    (stage,) = (each for each in world.programs.plan.stages if to.join in each.references)
    source = stage.references[to.join]
    series, data = source.series(to.join), loaded_table(source, to.table).encode()
    version = next_version(series, world.kept_tables.versions(series), fingerprint_of(data))
    if version is not None:
        world.kept_tables.save(version, data)
        for partition in range(world.partitions):
            topic = stage_topic(world.programs.plan.application, stage.name)
            yield topic, partition, reference_record(stage.name, now_ns, version)


def turn(cases: Sequence[TimeCase], number: int, chance: random.Random) -> Iterator[ClientFrame | Reference]:
    """Of all cases, cut into frames at random."""
    for case in cases:
        source, events = f"{case.name}-in", list[Event]()
        for each in case.turns[number] if number < len(case.turns) else ():
            if events and (isinstance(each, Reference) or chance.random() < 0.5):
                yield ClientFrame(source, tuple(events))
                events = []
            if isinstance(each, Reference):
                yield each
            else:
                events.append(each)
        if events:
            yield ClientFrame(source, tuple(events))


def lines_of(planned: Plan, output: Output) -> dict[str, list[str]]:
    """By sink, what its records say, sorted."""
    sinks = {sink_topic(planned.application, sink.name): sink.name for sink in planned.sinks}
    schemas = {each.schema.fingerprint: each.schema for stage in planned.stages for each in stage.outputs}
    found: defaultdict[str, list[str]] = defaultdict(list)
    for (topic, _, _), values in output.items():
        for frame in map(decode, values):
            if topic in sinks and frame.kind is FrameKind.DATA and frame.columns is not None:
                messages: list[Line] = Columns.of_payload(schemas[frame.schema], frame.columns).messages()
                found[sinks[topic]] += [each.text for each in messages]
    return {sink: sorted(lines) for sink, lines in found.items()}
