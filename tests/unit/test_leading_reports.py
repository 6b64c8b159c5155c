"""Whose report of partitions counts: that of the processor that leads, also beside the record of a dead one."""

from __future__ import annotations

import pytest

from bettong import metrics
from bettong.identifiers import PartitionId
from bettong.inspection.overview import Record, is_folded, overview, partition_rows, stands_still

P0 = PartitionId("s", 0)
PARTITIONS = {P0: {metrics.OFFSET.name: "5"}}
RECEIVER = {metrics.SERVICE.name: "receiver", metrics.LAG.name: "0"}


def driver(*, lag: int | None, age_s: float, stalled_s: float | None = None) -> Record:
    record = {metrics.SERVICE.name: "processor", metrics.AGE_S: str(age_s), metrics.TTL_S: "10"}
    if lag is not None:
        record |= {metrics.LAG.name: str(lag), f"{metrics.LAG.name}/{P0}": str(lag)}
    if stalled_s is not None:
        record[f"{metrics.STALLED.name}/{P0}"] = str(stalled_s)
    return record


@pytest.mark.parametrize("names", [("p-0", "p-1"), ("p-1", "p-0")])
@pytest.mark.parametrize("age_s", [1.2, 6.0], ids=["just-dead", "silent"])
def test_a_stall_of_a_dead_driver_is_none_of_the_one_that_has_taken_over(
    names: tuple[str, str], age_s: float
) -> None:
    records = driver(lag=9, age_s=age_s, stalled_s=7.0), driver(lag=3, age_s=0.2)
    live = dict(sorted(zip(names, records, strict=True)))
    (row,) = partition_rows(live, PARTITIONS, ends={P0: 8})
    assert (row.stalled_s, row.lag) == (None, 3)
    assert not stands_still(row)
    (row,) = partition_rows(live, PARTITIONS)
    assert row.lag == 3
    assert overview({**live, "receiver": RECEIVER}, {}).lag == 3


def test_the_report_of_a_leader_counts_beside_standbys_and_a_silent_one_where_there_is_no_other() -> None:
    live = {"a": driver(lag=None, age_s=0.1), "b": driver(lag=9, age_s=0.9, stalled_s=7.0)}
    (row,) = partition_rows(live, PARTITIONS)
    assert (row.lag, row.stalled_s) == (9, 7.0)
    live["b"] = driver(lag=9, age_s=6.0, stalled_s=7.0)
    assert not is_folded(live)
    (row,) = partition_rows(live, PARTITIONS)
    assert (row.lag, row.stalled_s) == (9, float("inf"))
