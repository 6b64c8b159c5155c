"""Marks that outlive a process: deaths at a record, counted by whoever takes its partition."""

import os
import signal
from dataclasses import replace
from pathlib import Path

from bettong.edges.directory_snapshots import DirectorySnapshots
from bettong.frames.frame import decode, encode
from bettong.identifiers import PartitionId
from bettong.snapshots.chain import Increment
from bettong_processor.crashes.guard import messages_of
from bettong_processor.crashes.marks import Deaths, Marks
from tests.samples.worker import Reading, data


def test_deaths_are_counted_by_offset_and_the_living_are_left_alone(tmp_path: Path) -> None:
    def die(offset: int) -> None:
        child = os.fork()
        if child == 0:
            mark = Marks(tmp_path, 16).of(PartitionId("in", 3))
            mark.begin(offset)
            mark.at(1, 5)
            os._exit(0)
        os.waitpid(child, 0)

    mark = Marks(tmp_path, 16).of(PartitionId("in", 3))
    assert mark.deaths() == (None, False)
    mark.begin(7)
    assert mark.deaths() == (None, False)
    mark.end()
    for count_, offset in ((1, 7), (2, 7), (1, 8), (1, 7)):
        die(offset)
        found, is_new = mark.deaths()
        assert found is not None
        assert (is_new, found.offset, found.count, found.computation, found.index) == (
            True,
            offset,
            count_,
            1,
            5,
        )
        assert mark.deaths() == (found, False)
    assert Marks(tmp_path, 16).of(PartitionId("in", 2)).deaths() == (None, False)


def test_who_stands_at_a_record_when_its_partition_is_taken_counts_as_dead_though_it_lives(
    tmp_path: Path,
) -> None:
    """It may keep Python's lock: then it does not even know that it has lost the partition."""
    found, ends = [], []
    for _ in range(3):
        read, write = os.pipe()
        reported, report = os.pipe()
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            mark = Marks(tmp_path, 4).of(PartitionId("in", 0))
            deaths, is_new = mark.deaths()
            mark.begin(5)
            os.write(report, bytes([deaths.count if deaths is not None else 0, is_new]))
            os.read(read, 1)
            mark.at(1, 5)
            mark.limit(100)
            mark.end()
            os.write(report, b".")
            os.read(read, 1)
            os._exit(0)
        found.append(tuple(os.read(reported, 2)))
        ends.append((child, write, reported))
    assert found == [(0, 0), (1, 1), (2, 1)]
    own = Marks(tmp_path, 4).of(PartitionId("in", 0))
    assert own.deaths()[0] == Deaths(5, 3, computation=None, index=None, limit_ms=0, same=3)
    own.begin(5)
    for (
        child,
        write,
        reported,
    ) in ends:  # they come to their ends only now, and take nothing away from who came after them
        os.write(write, b".")
        os.read(reported, 1)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    after = os.fork()
    if after == 0:
        deaths, is_new = Marks(tmp_path, 4).of(PartitionId("in", 0)).deaths()
        os._exit(0 if is_new and deaths == Deaths(5, 4, None, None, 0, same=4) else 1)
    assert os.waitpid(after, 0)[1] == 0


def test_a_count_that_is_forged_is_not_believed() -> None:
    value = data("readings/c", 1, [Reading("a", 5), Reading("b", 1)])
    assert messages_of(value) == 2
    forged = encode(replace(decode(value), count=2**32 - 1))
    assert messages_of(forged) == len(forged)


def test_a_partition_that_is_handed_over_between_two_records_counts_nothing(tmp_path: Path) -> None:
    own = Marks(tmp_path, 4).of(PartitionId("in", 0))
    for _ in range(2):
        own.begin(5)
        own.end()
        child = os.fork()
        if child == 0:
            other = Marks(tmp_path, 4).of(PartitionId("in", 0))
            code = 0 if other.deaths() == (None, False) else 1
            other.begin(6)
            other.end()
            os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        assert own.deaths() == (None, False)


def test_marks_of_a_stage_whose_name_ends_in_a_number_are_no_snapshots(tmp_path: Path) -> None:
    store = DirectorySnapshots(tmp_path)
    for partition in range(4):
        store.save(PartitionId("feed-1", partition), Increment(5, 0, 5), b"x")
    Marks(tmp_path, 4).of(PartitionId("feed-1", 0))
    Marks(tmp_path, 4).of(PartitionId("1", 0))
    store.save(PartitionId("marks", 1), Increment(5, 0, 5), b"x")
    store.clear()
    assert [store.increments(PartitionId("feed-1", partition)) for partition in range(4)] == [[]] * 4


def test_marks_that_nobody_holds_leave_no_file_open(tmp_path: Path) -> None:
    def held() -> list[str]:
        return [each.readlink().name for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]

    marks = Marks(tmp_path, 16)
    marks.of(PartitionId("in", 3)).deaths()
    del marks
    assert "in.marks" not in held()
