"""How long no result of a partition came: which pauses are known, and which are said to be of a worker."""

from __future__ import annotations

from bettong.lab.measures import Measured, partition_pauses
from bettong.lab.reading import LatencyRecorder, ResultReading
from bettong.lab.target.pauses import (
    COMES,
    LOST,
    AssignmentChange,
    PartitionPauses,
    assignment_changes,
    longest_pauses,
)

LOG = """\
2026-11-27T12:00:01.000000Z [info     ] partitions are assigned        epoch=1 members=2
2026-11-27T12:00:02.000000Z [warning  ] a slot has lost its task       slot=1
2026-11-27T12:00:02.100000Z [info     ] partitions are assigned        epoch=2 members=1
2026-11-27T12:00:09.500000Z [info     ] partitions are assigned        epoch=3 members=2
2026-11-27T12:00:20.000000Z [info     ] partitions are assigned        epoch=1 members=2
"""


class Unread(ResultReading):
    """Nobody reads it: the test says what came."""

    def _run(self) -> None:
        pass


def noted(*results: tuple[int, float]) -> PartitionPauses:
    """Of (partition, time)."""
    pauses = PartitionPauses()
    for partition, at_s in results:
        pauses.record_result(partition, at_s)
    return pauses


def spans(pauses: PartitionPauses, since_s: float) -> list[tuple[float, float]]:
    return [(each.begun_s, each.ended_s) for each in pauses.since(since_s)]


def test_a_pause_is_between_two_results_of_one_partition() -> None:
    pauses = noted((0, 10.0), (1, 10.5), (0, 11.0), (1, 12.0))
    assert spans(pauses, 0.0) == [(10.0, 11.0), (10.5, 12.0)]


def test_one_that_began_in_the_warm_up_is_left_out() -> None:
    pauses = noted((0, 10.0), (0, 14.0), (0, 14.5))
    assert spans(pauses, 10.5) == [(14.0, 14.5)]


def test_of_those_that_end_together_the_longest_is_kept() -> None:
    pauses = noted((0, 10.0), (1, 10.5), (0, 11.01), (1, 11.02), (0, 11.03))
    assert spans(pauses, 0.0) == [(10.0, 11.01)]


def test_the_processors_log_tells_when_workers_were_lost_and_came() -> None:
    found = assignment_changes(LOG)
    assert [(each.why, each.before, each.after) for each in found] == [(LOST, 2, 1), (COMES, 1, 2)]
    assert round(found[1].at_s - found[0].at_s, 6) == 7.4
    assert assignment_changes(LOG.splitlines()[0]) == []


def test_a_log_in_json_tells_of_none() -> None:
    line = '{{"members": {}, "event": "partitions are assigned", "timestamp": "2026-11-27T12:00:01Z"}}'
    assert assignment_changes("\n".join([line.format(2), line.format(1)])) == []


def test_pauses_are_of_the_change_that_they_are_around() -> None:
    pauses = noted(
        (0, 10.0), (0, 10.5), (0, 14.0), (0, 14.2), (1, 18.0), (1, 18.3), (0, 18.4), (0, 30.0), (0, 39.0)
    )
    changes = [AssignmentChange(10.3, 2, 1), AssignmentChange(18.1, 1, 2)]
    found = longest_pauses(pauses.since(0.0), changes)
    assert {why: round(lasting_ms) for why, lasting_ms in found.items()} == {
        "": 11_600,
        LOST: 3_500,
        COMES: 11_600,
    }


def test_one_that_lasts_beyond_the_seconds_after_its_change_is_of_it_all_the_same() -> None:
    found = longest_pauses(noted((0, 10.0), (0, 15.0)).since(0.0), [AssignmentChange(10.2, 2, 1)])
    assert found == {"": 5_000.0, LOST: 5_000.0}


def test_each_sink_has_its_pauses_as_metrics_and_one_without_results_has_none() -> None:
    readings = {name: Unread(name, 0, LatencyRecorder([], warm_up_s=0)) for name in ("sums", "none")}
    for at_s in (10.0, 10.5, 12.0, 12.25):
        readings["sums"].pauses.record_result(0, at_s)
    assert partition_pauses(readings, [AssignmentChange(12.1, 1, 2)], 0.0) == [
        Measured("sums: longest pause of a partition", "ms", 1500.0),
        Measured(f"sums: longest pause of a partition, {COMES}", "ms", 250.0),
    ]
