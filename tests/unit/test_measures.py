"""Rates, lag in seconds and shares, from two looks at a deployment."""

from __future__ import annotations

import pytest

from bettong.identifiers import PartitionId
from tests.samples.deployments import measured, moment, partition, services


def test_rates_are_what_counts_have_grown_by_in_a_second() -> None:
    before = moment(100, services(sender={"messages": 1000}, receiver={"messages": 10}), {})
    now = moment(104, services(sender={"messages": 3000}, receiver={"messages": 50}), {})
    found = measured(before, now)
    assert (found.in_per_s, found.out_per_s) == (500, 10)


def test_without_an_earlier_look_no_rate_is_known() -> None:
    found = measured(
        moment(100, services(sender={"messages": 1000}), partition("s", 0, messages=5, offset=5))
    )
    assert found.in_per_s is None
    assert found.stages[0].trend.messages_per_s is None
    assert found.partitions[0].trend.messages_per_s is None


def test_a_count_that_began_anew_is_no_negative_rate() -> None:
    before = moment(100, services(sender={"messages": 1000}), {})
    assert measured(before, moment(104, services(sender={"messages": 7}), {})).in_per_s is None


def test_lag_in_seconds_is_how_long_the_next_record_has_waited() -> None:
    id_, record = PartitionId("s", 0), partition("s", 0, offset=1000, messages=5)
    live = services(receiver={"lag": 0})
    found = measured(
        moment(0, live, record),
        moment(4, live, record, waiting={id_: 500}),
        moment(9, live, record, waiting={id_: 600}),
    )
    assert found.partitions[0].lag_s == 5
    assert (found.stages[0].row.lag, found.stages[0].lag_s, found.lag, found.lag_s) == (600, 5, 600, 5)


def test_without_lag_nothing_waits() -> None:
    found = measured(moment(0, services(receiver={"lag": 0}), partition("s", 0, offset=5)))
    assert (found.lag, found.lag_s, found.stages[0].lag_s) == (0, 0.0, 0.0)


def test_numbers_that_are_none_are_not_known() -> None:
    live = services(
        sender={"watermark_lag_s/in": "soon"}, receiver={"messages/out": "many", "latency_max_ms": "nan"}
    )
    found = measured(moment(0, live, partition("s", 0, offset=5, cpus="all")))
    assert (found.sources[0].watermark_lag_s, found.sinks[0].messages, found.max_ms) == (None, 0, None)
    assert found.partitions[0].cpus is None


def test_latencies_of_a_partition_that_rests_are_not_shown_as_those_of_now() -> None:
    old = partition("s", 0, offset=5, messages=5, latency_p50_ms=2.0, latency_p99_ms=9.0)
    new = partition("s", 0, offset=6, messages=6, latency_p50_ms=2.0, latency_p99_ms=9.0)
    rests = measured(moment(0, services(), old), moment(4, services(), old)).partitions[0]
    folds = measured(moment(0, services(), old), moment(4, services(), new)).partitions[0]
    assert (rests.p50_ms, rests.p99_ms) == (None, None)
    assert (folds.p50_ms, folds.p99_ms) == (2.0, 9.0)


def test_shares_are_of_the_messages_of_their_stage() -> None:
    before = {
        **partition("s", 0, messages=0),
        **partition("s", 1, messages=0),
        **partition("t", 0, messages=0),
    }
    now = {
        **partition("s", 0, messages=30),
        **partition("s", 1, messages=10),
        **partition("t", 0, messages=7),
    }
    found = measured(moment(0, services(), before), moment(1, services(), now))
    assert [each.share for each in found.partitions] == [0.75, 0.25, 1.0]


def test_the_watermark_of_a_stage_is_that_of_the_partition_that_has_come_least_far() -> None:
    records = {
        **partition("s", 0, watermark_ns=0, watermark_held_by=""),
        **partition("s", 1, watermark_ns=70, watermark_held_by="in/fast"),
        **partition("s", 2, watermark_ns=50, watermark_held_by="in/slow"),
    }
    stage = measured(moment(0, services(), records)).stages[0]
    assert (stage.watermark_ns, stage.watermark_partition, stage.watermark_held_by) == (50, 2, "in/slow")


def test_sinks_and_sources_are_those_that_services_name() -> None:
    live = services(
        sender={"lag/topic": 5, "watermark_lag_s/topic": 1.5},
        receiver={"messages/out": 40, "lag/out": 3, "latency_p99_ms/out": 8.0, "latency_max_ms/out": 20.0},
    )
    found = measured(moment(0, services(receiver={"messages/out": 20}), {}), moment(2, live, {}))
    (source,), (sink,) = found.sources, found.sinks
    assert (source.source, source.lag, source.watermark_lag_s) == ("topic", 5, 1.5)
    assert (sink.sink, sink.messages, sink.messages_per_s, sink.lag) == ("out", 40, 10, 3)
    assert (sink.p50_ms, sink.p99_ms, sink.max_ms) == (None, 8.0, 20.0)


@pytest.mark.parametrize(("offset", "snapshot", "unsaved"), [(50, 20, 30), (50, 50, 0), (10, 20, 0)])
def test_what_was_folded_since_the_newest_snapshot(offset: int, snapshot: int, unsaved: int) -> None:
    record = partition("s", 0, offset=offset, snapshot_offset=snapshot)
    assert measured(moment(0, services(), record)).partitions[0].unsaved_records == unsaved


def test_a_clock_that_was_set_back_makes_no_rate() -> None:
    before = moment(100, services(sender={"messages": 1}), {})
    assert measured(before, moment(90, services(sender={"messages": 5}), {})).in_per_s is None
