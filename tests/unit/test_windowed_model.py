"""The model of `tests/faults/windowed.py` says what the application gives while nothing dies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from bettong.application.plan import plan
from bettong.frames.columns import Columns
from bettong.frames.frame import tick_record
from bettong.identifiers import NO_SEQUENCE
from bettong.routing import partition_of
from bettong.topics import stage_topic
from tests.faults import windowed_model as model
from tests.faults.windowed import Payment, app
from tests.samples.example_feeds import of_columns, session
from tests.samples.worker import FRAME_BYTES_MAX
from tests.simulation.running_stages import RunningStages

PARTITIONS = 4
SECONDS = 8
PLAN = plan(app)
ROUND_NS = 10**9 // model.ROUNDS_PER_S


def rounds() -> Iterator[tuple[int, list[Payment]]]:
    """Stream and payments, in turns; the last round has the payment that ends the stream."""
    count = SECONDS * model.ROUNDS_PER_S
    streams = [list(model.paid(stream, rounds=count)) for stream in range(1, model.STREAMS + 1)]
    for number in range(count + 1):
        for stream, payments in enumerate(streams):
            yield stream, payments[number * model.ROUND_PAYMENTS :][: model.ROUND_PAYMENTS]


@pytest.fixture(scope="module")
def delivered() -> dict[str, list[Any]]:
    """What comes out of real sessions and workers."""
    (source,) = PLAN.sources
    sessions = [
        session(
            PLAN, source, partitions=PARTITIONS, frame_bytes_max=FRAME_BYTES_MAX, stream=f"stream-{number}"
        )
        for number in range(model.STREAMS)
    ]
    running, now_ns = RunningStages(PLAN, PARTITIONS), model.BEGIN_NS + 10**15
    sequences = [0] * model.STREAMS
    watermarks = {}
    appends = [append for each in sessions for append in each.open(0, now_ns, NO_SEQUENCE).appends]
    for stream, payments in rounds():
        now_ns += ROUND_NS // model.STREAMS
        frame = of_columns(Columns.of_messages(source.schema, payments))
        sequences[stream] += len(payments)
        frame.sequence = sequences[stream]
        taken = sessions[stream].take(frame, now_ns / 1e9, now_ns)
        watermarks[sessions[stream].origin] = taken.watermark_ns
        appends += taken.appends
    for append in appends:
        running.fold(append.topic, append.partition, append.value)
    tick = tick_record("sender", now_ns, watermarks)
    for partition in range(PARTITIONS):
        running.fold(stage_topic(PLAN.application, source.name), partition, tick)
    running.fold_ticks(now_ns + 10**9)
    assert running.dead_letters == []
    return running.delivered


def sent() -> model.Sent:
    found: model.Sent = defaultdict(list)
    for _, payments in rounds():
        for each in payments:
            if not each.account.startswith(model.LAST):
                found[each.account].append(each)
    return found


@pytest.mark.parametrize("sink", model.CASES)
def test_the_application_gives_what_the_model_says(sink: str, delivered: dict[str, list[Any]]) -> None:
    expected = list(model.CASES[sink](sent()))
    assert len(expected) > 5
    assert by_key(delivered[sink]) == by_key(expected)


def by_key(results: list[Any]) -> dict[Any, list[Any]]:
    found: defaultdict[Any, list[Any]] = defaultdict(list)
    for each in results:
        found[getattr(each, "account", None) or each.key].append(each)
    return found


def test_every_sink_has_a_case() -> None:
    assert {sink.name for sink in PLAN.sinks} == model.CASES.keys()


def test_every_partition_hears_of_every_stream_in_each_round() -> None:
    """So no watermark is further behind than a round, however long a process is away."""
    for stream in range(1, model.STREAMS + 1):
        steady = [f"steady-{stream}-{number}" for number in range(model.STEADY)]
        assert {partition_of(each, PARTITIONS) for each in steady} == set(range(PARTITIONS))
