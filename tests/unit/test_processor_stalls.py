"""What a driver reports of lag and of partitions that stand still, and which resting states it has saved."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import structlog

from bettong.errors import LogUnavailableError
from bettong.identifiers import PartitionId, TopicPartition
from bettong_processor.micro_batch.unsaved import Unsaved
from bettong_processor.progress import Offsets, Progress, Stalls, folded
from tests.waiting import eventually

P0, P1 = TopicPartition("a.stage.s", 0), TopicPartition("a.stage.s", 1)
STAGES = {"a.stage.s": "s"}


@dataclass
class Log:
    """Where logs begin and end; a request for ends raises `fault` if there is one."""

    begins: Mapping[TopicPartition, int]
    now: Mapping[TopicPartition, int]
    fault: LogUnavailableError | None = None
    asked_for_begins: int = 0

    def ends(self, _: object) -> Mapping[TopicPartition, int]:
        if self.fault is not None:
            raise self.fault
        return self.now

    def beginnings(self, _: object) -> Mapping[TopicPartition, int]:
        self.asked_for_begins += 1
        return self.begins

    def close(self) -> None: ...


@dataclass
class Reported:
    found: dict[PartitionId, dict[str, str]] = field(default_factory=dict)

    def partitions(self) -> Mapping[PartitionId, Mapping[str, str]]:
        return self.found


def progress_of(
    log: Log,
    reported: Reported,
    *,
    partitions: int,
    clock: Callable[[], float] = lambda: 0.0,
    committed: Callable[[], Offsets] = dict,
) -> Progress:
    return Progress(
        log,
        reported,
        STAGES,
        partitions=partitions,
        report_interval_s=0.5,
        clock=clock,
        logger=structlog.get_logger(),
        committed=committed,
    )


def test_a_partition_stands_still_from_when_records_wait_not_from_when_it_last_moved() -> None:
    stalls = Stalls()
    assert stalls.observe({P0: 5, P1: 9}, {P0: 5, P1: 7}, 0.0) == {P1: 0.0}
    assert stalls.observe({P0: 5, P1: 9}, {P0: 5, P1: 7}, 4.0) == {P1: 4.0}
    assert stalls.observe({P0: 6, P1: 9}, {P0: 5, P1: 8}, 5.0) == {P0: 0.0, P1: 0.0}
    assert stalls.observe({P0: 6, P1: 9}, {P0: 6, P1: 8}, 6.0) == {P1: 1.0}


def test_where_nobody_has_reported_an_offset_the_log_waits_from_its_beginning() -> None:
    reported = {PartitionId("s", 0): {"offset": "7"}}
    assert folded({P0: 9, P1: 9}, {P0: 0, P1: 4}, reported, STAGES, {}) == {P0: 7, P1: 4}
    assert folded({P0: 9, P1: 9}, {P0: 0, P1: 4}, {}, STAGES, {P0: 8}) == {P0: 8, P1: 4}


def test_a_driver_reports_lag_and_who_stands_still_and_nothing_while_kafka_is_away() -> None:
    log, reported, now_s = (
        Log({P0: 0, P1: 0}, {P0: 3, P1: 3}),
        Reported({PartitionId("s", 0): {"offset": "3"}}),
        [0.0],
    )
    progress = progress_of(log, reported, partitions=2, clock=lambda: now_s[0])
    progress.check()
    assert progress.metrics() == {"lag": 3, "lag/s/0": 0, "lag/s/1": 3}
    now_s[0] = 3.5
    progress.check()
    assert progress.metrics() == {"lag": 3, "lag/s/0": 0, "lag/s/1": 3, "stalled_s/s/1": 3.5}
    log.fault = LogUnavailableError("Kafka at x does not answer")
    progress.check()
    assert (progress.metrics(), progress.waits_for()) == ({}, "Kafka at x does not answer")
    log.fault = None
    progress.check()
    assert progress.waits_for() == ""


def test_what_came_since_a_worker_last_reported_is_no_lag_and_what_it_does_not_fold_is() -> None:
    log, reported, now_s = Log({P0: 0}, {}), Reported(), [0.0]
    progress = progress_of(log, reported, partitions=1, clock=lambda: now_s[0])

    def lag(at_s: float, *, end: int, folded: int) -> str | float:
        now_s[0], log.now = at_s, {P0: end}
        reported.found = {PartitionId("s", 0): {"offset": str(folded)}}
        progress.check()
        return progress.metrics()["lag/s/0"]

    # 400 records a second come, and each report is 0.4 s old.
    lags = [lag(step / 2, end=200 * step, folded=200 * step - 160) for step in range(1, 11)]
    assert lags[2:] == [0] * 8
    assert lag(6.0, end=2400, folded=1840) == 160, "it stands since the report"
    assert lag(7.0, end=2400, folded=1840) == 560
    assert lag(20.0, end=2800, folded=1840) == 960, "after a pause nobody knows what came when"


def test_rest_begins_when_nothing_has_come_for_a_while_and_ends_when_something_comes_or_waits() -> None:
    log, now_s = Log({P0: 0}, {P0: 3}), [0.0]
    reported = Reported({PartitionId("s", 0): {"offset": "3"}})
    progress = progress_of(log, reported, partitions=1, clock=lambda: now_s[0])

    def rests(at_s: float) -> bool:
        now_s[0] = at_s
        progress.check()
        return progress.at_rest

    assert [rests(at_s) for at_s in (0.0, 1.5, 2.5)] == [False, False, True]
    log.now = {P0: 4}
    assert [rests(at_s) for at_s in (3.0, 9.0)] == [False, False]  # it waits, whoever is to fold it
    reported.found = {PartitionId("s", 0): {"offset": "4"}}
    assert [rests(at_s) for at_s in (10.0, 11.5)] == [False, True]
    log.fault = LogUnavailableError("Kafka at x does not answer")
    assert not rests(12.0)


def test_beginnings_are_asked_for_while_records_wait_only() -> None:
    log = Log({P0: 0, P1: 2}, {P0: 3, P1: 2})
    reported = Reported({PartitionId("s", 0): {"offset": "3"}, PartitionId("s", 1): {"offset": "2"}})
    progress = progress_of(log, reported, partitions=2)
    progress.check()
    assert (log.asked_for_begins, progress.metrics()["lag"]) == (0, 0)
    del reported.found[PartitionId("s", 1)]
    progress.check()
    assert (log.asked_for_begins, progress.metrics()["lag"]) == (1, 0)


def test_partitions_out_of_use_are_none_of_its_business() -> None:
    log = Log({P0: 0, P1: 0}, {P0: 3, P1: 3})
    held = {"offset": "1", "gap": "frame 9 of s/a/0", "gap_s": "99"}
    reported = Reported({PartitionId("s", 0): {"offset": "3"}, PartitionId("s", 1): held})
    progress = progress_of(log, reported, partitions=1)
    progress.check()
    assert progress.metrics() == {"lag": 0, "lag/s/0": 0}
    assert progress.idle().keys() <= {P0}
    assert progress.waits_for() == ""


def test_a_look_that_nobody_foresaw_is_reported() -> None:
    def committed() -> Mapping[TopicPartition, int]:
        raise RuntimeError("Java is gone")

    log, reported = Log({P0: 0}, {P0: 3}), Reported({})
    progress = progress_of(log, reported, partitions=2, committed=committed)
    progress.start()
    eventually(
        lambda: "start the processor again (RuntimeError" in progress.waits_for(), what="it is reported"
    )
    assert progress.metrics() == {}


def test_a_state_is_saved_when_it_has_rested_for_an_interval_and_only_then() -> None:
    unsaved = Unsaved(1.0, {P0: 4})
    assert unsaved.due({P0: 4, P1: 2}, 0.0) == {}
    assert unsaved.due({P0: 4, P1: 3}, 0.9) == {}, "it moves"
    assert unsaved.due({P0: 4, P1: 3}, 1.8) == {}
    assert unsaved.due({P0: 4, P1: 3}, 1.9) == {P1: 3}
    unsaved.note_attempt({P1: 3}, {P1: 3}, 2.0)
    assert unsaved.due({P0: 4, P1: 3}, 99.0) == {}


def test_a_state_that_could_not_be_saved_is_tried_again_ever_more_rarely() -> None:
    unsaved, tries_s = Unsaved(0.0, {}), []
    for now_s in range(400):
        if due := unsaved.due({P0: 1}, float(now_s)):
            tries_s.append(now_s)
            unsaved.note_attempt(due, {}, float(now_s))
    assert tries_s[:6] == [0, 1, 3, 7, 15, 31]
    assert {later - sooner for sooner, later in pairwise(tries_s[6:])} == {60}
