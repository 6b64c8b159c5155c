"""Lag is what a worker had time to fold and to report: not what came since its last report."""

from __future__ import annotations

from bettong.earlier_ends import EarlierEnds
from bettong.identifiers import PartitionId
from bettong.inspection.overview import partition_rows

P0 = PartitionId("s", 0)
FOLDS = {"p": {"service": "processor", "lag": "0"}}


def test_the_ends_are_the_newest_of_before_the_reports_were_due() -> None:
    earlier = EarlierEnds[str](0.5)
    assert earlier.before(0.0) is None, "nothing is known"
    for step in range(8):
        earlier.add({"log": step}, step / 2)
    assert earlier.before(3.5) == {"log": 5}, "3.0 is too late: a report of before then may be the newest one"
    assert earlier.before(4.25) == {"log": 7}


def test_after_a_pause_earlier_ends_say_nothing() -> None:
    earlier = EarlierEnds[str](0.5)
    earlier.add({"log": 1}, 0.0)
    assert earlier.before(2.5) == {"log": 1}
    assert earlier.before(3.0) is None
    earlier.add({"log": 9}, 3.0)
    assert earlier.before(3.5) is None
    assert earlier.before(4.0) == {"log": 9}


def lag_and_unfolded(live: dict[str, dict[str, str]], *, before: int | None) -> tuple[int | None, int | None]:
    """Of a partition that reported 840 of the 1,000 records that its log has now."""
    ends_before = None if before is None else {P0: before}
    (row,) = partition_rows(live, {P0: {"offset": "840"}}, ends={P0: 1000}, ends_before=ends_before)
    return row.lag, row.unfolded


def test_a_worker_that_keeps_up_has_no_lag_and_one_that_does_not_has() -> None:
    assert lag_and_unfolded(FOLDS, before=800) == (0, 160)
    assert lag_and_unfolded(FOLDS, before=900) == (60, 160)
    assert lag_and_unfolded(FOLDS, before=2000) == (160, 160), "the log was made again"


def test_where_nobody_folds_or_earlier_ends_are_unknown_all_counts() -> None:
    assert lag_and_unfolded({}, before=800) == (160, 160)
    assert lag_and_unfolded(FOLDS, before=None) == (160, 160)
