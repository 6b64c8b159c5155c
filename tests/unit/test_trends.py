"""What several inspections in a row show: rates, lag in seconds, since when something stands."""

from dataclasses import replace

import pytest

from bettong.inspection.deployment import Inspection
from bettong.inspection.trends import (
    MARKS_MAX,
    PartitionTrend,
    Since,
    StageTrend,
    Trends,
    rate,
    stage_trend,
    trends,
)
from tests.samples.watched_deployment import answers, inspected

EMPTY = inspected(answers(0))
ROW = next(row for row in EMPTY.partitions if str(row.id) == "orders/0")


def with_row(**changes: object) -> Inspection:
    if "lag" in changes:
        changes = {"unfolded": changes["lag"], **changes}
    return replace(EMPTY, partitions=[replace(ROW, **changes)])  # type: ignore[arg-type]


def seen(*rows: tuple[float, dict[str, object]]) -> PartitionTrend:
    found = Trends()
    for at_s, changes in rows:
        found = trends(found, with_row(**changes), at_s)
    return found.of(ROW.id)


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([], None),
        ([(0.0, 5)], None),
        ([(0.0, 5), (0.0, 9)], None),
        ([(0.0, 100), (2.0, 300)], 100.0),
        ([(0.0, 100), (1.0, 200), (2.0, 0), (4.0, 50)], 25.0),
        ([(0.0, 100), (1.0, 200), (2.0, 3)], None),
    ],
)
def test_a_rate_is_the_growth_since_the_counter_last_began_anew(
    points: list[tuple[float, int]], expected: float | None
) -> None:
    assert rate(points) == expected


def test_rates_are_those_of_the_last_ten_seconds() -> None:
    found = Trends()
    for second in range(30):
        messages = 1000 * second if second < 20 else 19_000
        found = trends(found, with_row(messages=messages), float(second))
    assert found.of(ROW.id).messages_per_s == 0.0
    assert len(found.samples) <= 12, "bounded"
    found = Trends()
    for second in range(5):
        found = trends(found, with_row(messages=1000 * second), float(second))
    assert found.of(ROW.id).messages_per_s == 1000.0
    assert found.messages_per_s == 0.0, "of senders, which say the same number each time"


def test_a_rate_reaches_back_to_the_last_inspection_before_these_seconds() -> None:
    assert seen((0.0, {"messages": 0}), (25.0, {"messages": 50})).messages_per_s == 2.0


def test_lag_in_seconds_is_since_the_log_was_first_seen_to_end_behind_the_next_record() -> None:
    came: list[tuple[float, dict[str, object]]] = [
        (0.0, {"offset": 10, "lag": 0}),
        (1.0, {"offset": 10, "lag": 5}),
        (4.0, {"offset": 10, "lag": 9}),
    ]
    assert seen(*came).lag == Since(3.0)
    assert seen(*came, (6.0, {"offset": 14, "lag": 6})).lag == Since(5.0), "one of the first five is left"
    assert seen(*came, (6.0, {"offset": 15, "lag": 5})).lag == Since(2.0), "these came later"
    assert seen(*came, (6.0, {"offset": 19, "lag": 0})).lag == Since(0.0)


def test_lag_in_seconds_includes_the_time_before_a_worker_had_to_report_that_it_is_folded() -> None:
    came: list[tuple[float, dict[str, object]]] = [
        (0.0, {"lag": 0}),
        (1.0, {"lag": 0, "unfolded": 5}),
        (2.0, {"lag": 5, "unfolded": 9}),
    ]
    assert [seen(*came[:count]).lag for count in (1, 2, 3)] == [Since(0.0), Since(0.0), Since(1.0)]


def test_lag_that_was_there_at_first_is_at_least_so_old() -> None:
    assert seen((0.0, {"lag": 5}), (3.0, {"lag": 5})).lag == Since(3.0, at_least=True)
    later = seen(
        (0.0, {"offset": 1, "lag": 5}), (3.0, {"offset": 6, "lag": 2}), (4.0, {"offset": 6, "lag": 2})
    )
    assert later.lag == Since(1.0), "what is left came while somebody watched"


def test_unknown_lag_is_unknown_in_seconds_too_and_forgets_nothing() -> None:
    rows: list[tuple[float, dict[str, object]]] = [(0.0, {"lag": 0}), (1.0, {"lag": 5}), (2.0, {"lag": None})]
    assert seen(*rows).lag is None
    assert seen(*rows, (3.0, {"lag": 5})).lag == Since(2.0)


def test_a_lag_that_grows_for_long_is_remembered_by_few_marks() -> None:
    found = Trends()
    for second in range(1000):
        found = trends(found, with_row(offset=10, lag=second), float(second))
    assert len(found.seen[ROW.id].marks) <= MARKS_MAX
    assert found.of(ROW.id).lag == Since(998.0)


def test_a_watermark_its_holder_and_a_snapshot_have_stood_since_they_last_changed() -> None:
    first = {"watermark_ns": 5, "watermark_held_by": "a/1", "snapshot_offset": 7}
    still = seen((0.0, first), (4.0, first))
    assert (still.watermark, still.held, still.snapshot) == (Since(4.0, at_least=True),) * 3
    moved = seen((0.0, first), (4.0, {**first, "watermark_ns": 6}), (5.0, {**first, "watermark_ns": 6}))
    assert (moved.watermark, moved.held) == (Since(1.0), Since(5.0, at_least=True))
    other = seen((0.0, first), (4.0, {**first, "watermark_held_by": "a/2", "snapshot_offset": 9}))
    assert (other.held, other.snapshot) == (Since(0.0), Since(0.0))
    none = seen((0.0, {"watermark_ns": 0, "watermark_held_by": "", "snapshot_offset": None}))
    assert (none.watermark, none.held, none.snapshot) == (None, None, None)


def test_a_partition_that_nobody_knows_has_no_trend() -> None:
    assert Trends().of(ROW.id) == PartitionTrend()
    gone = trends(trends(Trends(), with_row(), 0.0), replace(EMPTY, partitions=[]), 1.0)
    assert gone.of(ROW.id) == PartitionTrend()


def test_a_stage_has_the_rates_of_its_partitions_together_and_the_longest_lag_if_each_is_known() -> None:
    first = PartitionTrend(messages_per_s=3.0, lag=Since(2.0))
    second = PartitionTrend(messages_per_s=4.0, lag=Since(9.0, at_least=True))
    assert stage_trend([first, second]) == StageTrend(7.0, Since(9.0, at_least=True))
    assert stage_trend([first, PartitionTrend()]) == StageTrend(3.0, None)
    assert stage_trend([]) == StageTrend(None, None)
