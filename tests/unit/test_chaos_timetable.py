"""The timetable: the same spec gives the same faults, in every process."""

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.chaos.crowds import row_of
from bettong.chaos.spec import TARGETS, Link, OtherProcess, Spec, checked, lasting
from bettong.chaos.timetable import PlannedFault, timetable
from bettong.chaos.usual import usual
from bettong.errors import SettingsError

KILLS: Mapping[str, object] = {"kind": "kill", "targets": ["sender", "receiver", "kafka"], "every_s": [1, 4]}
PAUSES: Mapping[str, object] = {"kind": "pause", "targets": ["redis"], "every_s": [2, 9], "for_s": [0.5, 1.5]}


def spec(*nemeses: Mapping[str, object], seed: int = 1, duration_s: float = 60, senders: int = 1) -> Spec:
    inputs = [{"source": "lines", "file": "lines.txt"}] * senders
    workload = {"application": "app.py", "inputs": inputs, "senders": senders}
    tables = {
        "name": "s",
        "seed": seed,
        "duration_s": duration_s,
        "workload": workload,
        "nemeses": list(nemeses),
    }
    return checked(tables, "a test")


def of_kind(faults: tuple[PlannedFault, ...], kind: str) -> list[tuple[object, ...]]:
    return [(each.at_s, each.targets, each.for_s, each.by, each.pick) for each in faults if each.kind == kind]


def test_the_same_seed_gives_the_same_table_and_another_seed_another() -> None:
    assert timetable(spec(KILLS, PAUSES)) == timetable(spec(KILLS, PAUSES))
    assert timetable(spec(KILLS, PAUSES)) != timetable(spec(KILLS, PAUSES, seed=2))


def test_a_table_is_the_same_on_every_machine() -> None:
    first, second, *_ = timetable(spec(KILLS, PAUSES))
    assert str(first) == "   3.575 s  #1    kill sender"
    assert str(second) == "   6.414 s  #2    kill sender"


def test_another_nemesis_changes_nothing_of_the_ones_before_it() -> None:
    assert of_kind(timetable(spec(KILLS, PAUSES)), "kill") == of_kind(timetable(spec(KILLS)), "kill")


@given(seed=st.integers(0, 2**31), least=st.floats(0, 5), more=st.floats(0.01, 5), together=st.integers(1, 3))
def test_gaps_and_durations_stay_within_their_bounds(
    seed: int, least: float, more: float, together: int
) -> None:
    kills = {**KILLS, "every_s": [least, least + more], "together": together, "from_s": 3, "until_s": 40}
    faults = timetable(spec(kills, PAUSES, seed=seed))
    assert [fault.number for fault in faults] == list(range(1, len(faults) + 1))
    assert [fault.at_s for fault in faults] == sorted(fault.at_s for fault in faults)
    times = [3.0] + [fault.at_s for fault in faults if fault.kind == "kill"]
    assert all(least - 0.01 <= after - before <= least + more + 0.01 for before, after in pairwise(times))
    assert times[-1] <= 40
    for fault in faults:
        if fault.kind == "kill":
            assert len(set(fault.targets)) == together
        else:
            assert 0.5 <= fault.for_s <= 1.5


def test_given_times_are_kept_and_a_gap_of_nothing_ends() -> None:
    assert [each.at_s for each in timetable(spec({**KILLS, "every_s": None, "at_s": [7, 3]}))] == [3, 7]
    many = timetable(spec({**KILLS, "every_s": [0, 0.001]}, duration_s=2))
    assert 1000 < len(many) <= 2001


@pytest.mark.parametrize("duration_s", [1.0, 30.0, 600.0])
def test_the_usual_spec_lets_the_last_fault_be_recovered_from(duration_s: float) -> None:
    found = usual(
        "app.py", [("a", Path("x.csv"))], seed=3, duration_s=duration_s, partitions=4, compiled=True
    )
    faults = timetable(found)
    assert all(fault.at_s <= max(duration_s / 2, duration_s - 5) for fault in faults)
    if duration_s == 600:
        struck = {target for fault in faults for target in fault.targets}
        assert struck == {*TARGETS, *Link} - {OtherProcess.EXECUTOR}
        assert {fault.kind for fault in faults} == {"kill", "pause", "cut", "wipe"}


JUMPS: Mapping[str, object] = {
    "kind": "clock",
    "every_s": [1, 4],
    "for_s": [1, 2],
    "by_s": [-108_000, 108_000],
}


def test_of_two_senders_each_clock_jump_names_the_one_that_it_meets() -> None:
    found = timetable(spec(JUMPS, KILLS, senders=2))
    jumps = [fault for fault in found if fault.kind == "clock"]
    assert {fault.targets for fault in jumps} == {("sender",), ("sender-2",)}
    assert {fault.label for fault in jumps} == {"clock sender", "clock sender-2"}
    assert (
        str(jumps[0])
        == f"{jumps[0].at_s:8.3f} s  #1    {jumps[0].label} by {jumps[0].by:+.3f} s for {jumps[0].for_s:.2f} s"
    )


def test_a_second_sender_changes_nothing_of_a_table_but_the_names() -> None:
    one, two = timetable(spec(JUMPS, KILLS)), timetable(spec(JUMPS, KILLS, senders=2))
    assert {fault.label for fault in one if fault.kind == "clock"} == {"clock"}
    assert [(each.at_s, each.kind, each.for_s, each.by, each.pick) for each in one] == [
        (each.at_s, each.kind, each.for_s, each.by, each.pick) for each in two
    ]
    assert of_kind(one, "kill") == of_kind(two, "kill")


def test_faults_that_last_say_how_long_and_how_many() -> None:
    faults = timetable(
        spec(
            {"kind": "starve", "at_s": [1], "for_s": [2, 2]},
            {"kind": "stall", "at_s": [2], "for_s": [3, 3], "subscribers": 7},
            {"kind": "crowd", "at_s": [3], "for_s": [4, 4], "streams": 200_000, "row": "!"},
        )
    )
    assert [row_of(faults[2], stream) for stream in (0, 1, 20)] == [b"!3/0", None, b"!3/20"]
    assert row_of(faults[1], 0) is None
    assert [str(fault) for fault in faults] == [
        "   1.000 s  #1    starve for 2.00 s",
        "   2.000 s  #2    stall of 7 subscribers for 3.00 s",
        "   3.000 s  #3    crowd of 200000 streams for 4.00 s",
    ]


def test_a_spec_of_another_duration_keeps_all_else_and_refuses_what_comes_too_late() -> None:
    found = spec(KILLS, {**PAUSES, "every_s": None, "at_s": [30]})
    longer = lasting(found, 600)
    assert longer == found.model_copy(update={"duration_s": 600.0})
    assert len(timetable(longer)) > 5 * len(timetable(found))
    with pytest.raises(SettingsError, match="a fault at 30 s: the run lasts 20 s"):
        lasting(found, 20)
