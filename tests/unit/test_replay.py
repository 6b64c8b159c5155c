"""The one idea: state is a fold of the log. Crashed anywhere and folded again, every record comes out the same."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bettong.errors import StateChangedError
from bettong.worker.output.framing import OutputRecord
from bettong.worker.partition import PartitionWorker
from bettong.worker.stage_program import StageProgram, program
from tests.samples.worker import (
    Latest,
    Limit,
    Reading,
    Total,
    data,
    dead_letters,
    fold,
    meters,
    opening,
    results,
    tick,
    worker,
)

METER = st.sampled_from(["a", "b", "ä", "sixsix"])
VALUE = st.integers(-3, 90)
READINGS = st.lists(st.builds(Reading, METER, VALUE), min_size=1, max_size=6)
LIMITS = st.lists(st.builds(Limit, METER, st.integers(0, 300)), min_size=1, max_size=2)
PARTITIONS = 3
PLACES = "meters.stage.places"
LATEST = "meters.sink.latest"


@st.composite
def records(draw: st.DrawFn) -> bytes:
    """One record of the log: mostly frames of few clients, numbered well or not."""
    ingest_ns = draw(st.integers(0, 50)) * 3_600_000_000_000
    kind = draw(st.sampled_from(["readings"] * 6 + ["limits"] * 2 + ["open", "tick", "junk", "wrong"]))
    who = draw(st.sampled_from("xy"))
    sequence = draw(st.integers(1, 6))
    previous = draw(st.integers(0, sequence - 1))
    if kind == "readings":
        messages = draw(READINGS)
        return data(f"readings/{who}", sequence, messages, previous=previous, ingest_ns=ingest_ns)
    if kind == "limits":
        return data(f"limits/{who}", sequence, draw(LIMITS), previous=previous, ingest_ns=ingest_ns)
    if kind == "open":
        return opening(f"readings/{who}", sequence, ingest_ns=ingest_ns)
    if kind == "wrong":
        return data(f"limits/{who}", sequence, draw(READINGS), previous=previous, ingest_ns=ingest_ns)
    return tick(ingest_ns) if kind == "tick" else draw(st.binary(max_size=30))


LOG = st.lists(records(), max_size=12)


def straight(one: PartitionWorker, log: Sequence[bytes]) -> list[list[OutputRecord]]:
    """The output of each record."""
    return [one.fold(one.next_offset, value) for value in log]


def resumed(of: StageProgram, snapshot: bytes, log: Sequence[bytes]) -> list[list[OutputRecord]]:
    """The output of the records after a snapshot in another worker."""
    one = worker(of, partitions=PARTITIONS)
    one.restore(snapshot)
    return straight(one, log[one.next_offset :])


@settings(max_examples=60)
@given(LOG, st.data())
def check_one_stage(of: StageProgram, log: list[bytes], choose: st.DataObject) -> None:
    one = worker(of, partitions=PARTITIONS)
    cut = choose.draw(st.integers(0, len(log)))
    before = straight(one, log[:cut])
    snapshot = one.snapshot()
    after = straight(one, log[cut:])
    assert resumed(of, snapshot, log) == after
    assert straight(worker(of, partitions=PARTITIONS), log) == before + after
    twice = worker(of, partitions=PARTITIONS)
    twice.restore(snapshot)
    assert twice.snapshot() == snapshot


def test_a_fold_goes_on_from_any_snapshot_as_if_nothing_had_happened(tally: StageProgram) -> None:
    check_one_stage(tally)


def incoming(records: list[OutputRecord], partition: int) -> list[bytes]:
    """What a stage's output appends to a partition of the next stage's log."""
    return [each.value for each in records if (each.topic, each.partition) == (PLACES, partition)]


@settings(max_examples=40)
@given(LOG, st.data())
def check_two_stages(
    first: StageProgram, second: StageProgram, log: list[bytes], choose: st.DataObject
) -> None:
    """The first stage crashes back to a snapshot and puts out again; the second one does so too."""
    cut = choose.draw(st.integers(0, len(log)))
    crash = choose.draw(st.integers(cut, len(log)))
    one = worker(first, partitions=PARTITIONS)
    out = straight(one, log[:cut])
    snapshot = one.snapshot()
    out += straight(one, log[cut:])
    again = resumed(first, snapshot, log)
    for partition in range(PARTITIONS):
        smooth = [value for each in out for value in incoming(each, partition)]
        rough = [value for each in (*out[:crash], *again) for value in incoming(each, partition)]
        expected = results(fold(worker(second, partition=partition), smooth), LATEST, Latest)
        reader = worker(second, partition=partition)
        stop = choose.draw(st.integers(0, len(rough)))
        found = fold(reader, rough[:stop])
        successor = worker(second, partition=partition)
        successor.restore(reader.snapshot())
        assert results([*found, *fold(successor, rough[stop:])], LATEST, Latest) == expected
        assert successor.counters.gaps == 0


def test_the_next_stage_sees_each_result_once_through_any_crash(
    tally: StageProgram, places: StageProgram
) -> None:
    check_two_stages(tally, places)


@settings(max_examples=60)
@given(LOG)
def check_alike(programs: dict[str, StageProgram], log: list[bytes]) -> None:
    out = {kind: fold(worker(of, partitions=PARTITIONS), log) for kind, of in programs.items()}
    kept = {
        kind: [each for each in found if "sink" in each.topic or "stage" in each.topic]
        for kind, found in out.items()
    }
    assert kept["python"] == kept["compiled"]
    reported = {
        kind: sorted(
            (each.origin, each.sequence, each.index, each.computation) for each in dead_letters(found)
        )
        for kind, found in out.items()
    }
    assert reported["python"] == reported["compiled"]


def test_python_and_compiled_give_the_same_bytes(tally_programs: dict[str, StageProgram]) -> None:
    check_alike(tally_programs)


def test_a_snapshot_of_one_execution_mode_is_refused_by_the_other(
    tally_programs: dict[str, StageProgram],
) -> None:
    """Switching BETTONG_COMPILED never misreads a state."""
    snapshots = {kind: worker(of).snapshot() for kind, of in tally_programs.items()}
    for kind, other in (("python", "compiled"), ("compiled", "python")):
        with pytest.raises(StateChangedError, match=r"'tally' has changed.* only by a reset"):
            worker(tally_programs[kind]).restore(snapshots[other])


def test_a_fold_of_a_long_log_equals_one_in_pieces(tally: StageProgram) -> None:
    log = [data("readings/x", number, [Reading(f"m{number % 7}", number)]) for number in range(1, 200)]
    whole = straight(worker(tally, partitions=PARTITIONS), log)
    one = worker(tally, partitions=PARTITIONS)
    pieces: list[list[OutputRecord]] = []
    for start in range(0, len(log), 13):
        pieces += straight(one, log[start : start + 13])
        successor = worker(tally, partitions=PARTITIONS)
        successor.restore(one.snapshot())
        one = successor
    assert pieces == whole
    assert [each.total for each in results(whole[0], "meters.sink.totals", Total)] == [1]


def test_programs_can_be_made_anew(tally: StageProgram) -> None:
    """Another process compiles again, and goes on from the same snapshot."""
    del tally
    stage = meters().stages[0]
    one = worker(program(stage, compiled=False))
    fold(one, [data("readings/x", 1, [Reading("m", 1)])])
    other = worker(program(meters().stages[0], compiled=False))
    other.restore(one.snapshot())
    assert other.keys == 1
