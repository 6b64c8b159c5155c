"""Trials that do not tell whether a message kills: what is left out is what workers died of again and again."""

import os
import re
import signal
import threading
from pathlib import Path

import pytest

from bettong.identifiers import PartitionId
from bettong.worker.halving import Death, Unknown
from bettong.worker.partition import Assignment, PartitionWorker
from bettong_processor.crashes.marks import Marks
from bettong_processor.crashes.trial import SuspectRecord, Trial
from tests.samples.deadly import Number, count_compiled, frame, ready
from tests.samples.worker import FRAME_BYTES_MAX, dead_letters, results
from tests.simulation.worker_lives import fold_in_a_process, lived, output

OUT = "meters.sink.out"


def test_of_a_child_that_is_ended_for_its_age_nobody_knows_whether_it_dies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worker = PartitionWorker(ready(), Assignment("meters", 0, 1, FRAME_BYTES_MAX))
    record = SuspectRecord(0, frame(1, [0, 5]), 2)
    late = Trial(worker, record, 500).fold([0, 1])
    assert late == Death("took longer than 500 ms (BETTONG_MESSAGE_MS_MAX)", "count", 1)
    monkeypatch.setattr("bettong_processor.crashes.trial.TRIAL_S_MAX", 0.3)
    assert isinstance(Trial(worker, record, 0).fold([0, 1]), Unknown)


def test_a_child_that_stands_still_where_a_worker_went_on_says_nothing_of_the_message() -> None:
    """A library that does not work in a fork."""
    worker = PartitionWorker(ready(), Assignment("meters", 0, 1, FRAME_BYTES_MAX))
    record = SuspectRecord(0, frame(1, [0, 5, 0, 0]), 4)
    passed = Trial(worker, record, 100, died_at=3).fold([0, 1, 2])
    assert passed == Unknown("a trial stood still at message 1, which a worker had passed")
    assert isinstance(Trial(worker, record, 100, died_at=0).fold([1, 2, 3]), Unknown)
    assert isinstance(Trial(worker, record, 100, died_at=1).fold([1]), Death)


def test_where_no_trial_tells_the_message_at_which_workers_died_again_and_again_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library that hangs in a fork, with no limit for messages."""
    monkeypatch.setattr("bettong_processor.crashes.trial.TRIAL_S_MAX", 0.2)
    monkeypatch.setattr("bettong_processor.crashes.trial._prepare_child", lambda: threading.Event().wait(60))
    log = [frame(1, [0, 9]), frame(2, [0, 0, 1, 0])]
    assert lived(ready(), log, tmp_path) == 5
    (dead_letter,) = dead_letters(output(tmp_path))
    assert (dead_letter.sequence, dead_letter.index) == (2, 2)
    assert re.match(r"4 workers died there, and a trial was not at its end after 0 s", dead_letter.reason)
    assert len(results(output(tmp_path), OUT, Number)) == 5


@pytest.mark.parametrize("is_known", [True, False], ids=["computation known", "computation unknown"])
def test_with_stop_a_record_of_which_no_message_is_known_is_not_left_out_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_known: bool
) -> None:
    monkeypatch.setattr("bettong_processor.crashes.trial.TRIAL_S_MAX", 0.2)
    monkeypatch.setattr("bettong_processor.crashes.trial._prepare_child", lambda: threading.Event().wait(60))
    if not is_known:
        monkeypatch.setattr("bettong_processor.crashes.guard.marking", lambda *_: lambda _at: None)
    log, of = [frame(1, [0]), frame(2, [0, 1])], ready(count_compiled, on_error="stop")
    died = 4 if is_known else 3
    statuses = [fold_in_a_process(of, log, tmp_path, 0) for _ in range(died + 2)]
    assert statuses == [-signal.SIGSEGV] * died + [8, 8]
    assert re.match(
        rf"""'count' \(on_error="stop"\) cannot process a record: {died} workers died there, and a trial was not at"""
        r" its end after 0 s; stage 'in', partition 0, offset 1, origin in/a, sequence 2\. Mend the function",
        (tmp_path / "stopped").read_text(),
    )
    assert not (tmp_path / "exclusions").exists()


def test_a_mark_of_a_version_with_more_computations_ends_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bettong_processor.crashes.trial.TRIAL_S_MAX", 0.2)
    monkeypatch.setattr("bettong_processor.crashes.trial._prepare_child", lambda: threading.Event().wait(60))
    for _ in range(4):
        if (child := os.fork()) == 0:
            mark = Marks(tmp_path, 16).of(PartitionId("in", 0))
            mark.begin(0)
            mark.at(99, 0)
            os._exit(0)
        os.waitpid(child, 0)
        Marks(tmp_path, 16).of(PartitionId("in", 0)).deaths()
    assert lived(ready(), [frame(1, [0, 0])], tmp_path) == 1
    (dead_letter,) = dead_letters(output(tmp_path))
    assert dead_letter.reason.startswith("4 workers died there, and a trial was not at its end")
