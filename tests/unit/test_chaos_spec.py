"""Fault specs: invalid ones are refused, and all faults reported."""

from pathlib import Path

import pytest

from bettong.chaos.spec import Compare, Kill, OtherProcess, read
from bettong.chaos.timetable import PlannedFault, timetable
from bettong.errors import SettingsError
from bettong.local.services import instances
from bettong.services import SENDER

GOOD = """
name = "small"
duration_s = 10
[workload]
application = "app.py"
inputs = [{ source = "lines", file = "lines.txt" }]
[[nemeses]]
kind = "kill"
targets = ["sender", "spark-jvm"]
every_s = [1, 2]
"""


# What a sender takes to start; a busy machine takes longer, and then its clock may be right again.
START_S = 5.0
SPECS = [*(Path(__file__).parents[1] / "faults").rglob("*.toml")]


def written(folder: Path, text: str) -> Path:
    path = folder / "spec.toml"
    path.write_text(text)
    return path


def refused(folder: Path, text: str) -> str:
    with pytest.raises(SettingsError) as caught:
        read(written(folder, text))
    assert str(folder / "spec.toml") in str(caught.value)
    return str(caught.value)


def test_a_spec_is_read_with_its_defaults(tmp_path: Path) -> None:
    spec = read(written(tmp_path, GOOD))
    (kill,) = spec.nemeses
    assert isinstance(kill, Kill)
    assert kill.targets == [SENDER.name, OtherProcess.JVM]
    assert (spec.seed, spec.workload.partitions, kill.together) == (0, 4, 1)
    assert spec.workload.senders == 1


def test_all_faults_are_reported_at_once_each_with_its_table_and_field(tmp_path: Path) -> None:
    text = GOOD.replace("duration_s = 10", "duration_s = -1").replace('"spark-jvm"', '"coffee-machine"')
    text = text.replace('source = "lines", ', "").replace(
        "[workload]", '[workload]\nparitions = 3\norder = "both"'
    )
    error = refused(tmp_path, text)
    for key in (
        "duration_s: ",
        "nemeses[0].targets[1]: ",
        "workload.inputs[0].source: ",
        "workload.paritions: ",
    ):
        assert key in error
    assert "workload.order: " in error
    assert "5 fault(s)" in error


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "name: missing"),
        ("name = [", "is not TOML"),
        (GOOD.replace("every_s = [1, 2]", ""), "nemeses[0]: needs at_s or every_s"),
        (GOOD + "at_s = [1]", "nemeses[0]: needs at_s or every_s, and not both"),
        (GOOD.replace("[1, 2]", "[2, 1]"), "every_s = [2.0, 1.0]: expected [least, most]"),
        (GOOD.replace("[1, 2]", "[0, 0]"), "expected [least, most], most above 0"),
        (GOOD.replace("every_s = [1, 2]", "at_s = [11]"), "a fault at 11 s: the run lasts 10 s"),
        (GOOD + "together = 3", "together = 3, but there are 2 targets"),
        (GOOD.replace('kind = "kill"', 'kind = "pause"'), "nemeses[0].for_s: missing"),
        (GOOD.replace('kind = "kill"', 'kind = "hug"'), "nemeses[0]: kind 'hug': expected one of "),
        (GOOD.replace("every_s = [1, 2]", 'at_s = ["soon"]'), "nemeses[0].at_s[0]: "),
        (GOOD.replace("duration_s = 10", "duration_s = 1e9"), "duration_s: "),
        (
            GOOD + '[[nemeses]]\nkind = "crowd"\nat_s = [1]\nfor_s = [1, 1]\nrow = ""\n',
            "nemeses[1].row: String should have at least 1 character",
        ),
        (
            GOOD + '[[nemeses]]\nkind = "crowd"\nat_s = [1]\nfor_s = [1, 1]\nstreams = 2_000_000\n',
            "nemeses[1].streams: Input should be less than or equal to 1000000",
        ),
        (
            GOOD.replace("[workload]", '[workload]\nsenders = "two"'),
            "workload.senders: Input should be a valid integer",
        ),
        (GOOD.replace("[workload]", "[workload]\nsenders = 0"), "workload.senders: "),
        (GOOD.replace("[workload]", "[workload]\nsenders = 1000"), "workload.senders: "),
        (
            GOOD.replace("[workload]", "[workload]\nsenders = 2"),
            "workload: senders = 2, but inputs = 1: each sender needs an input that feeds it",
        ),
        (
            GOOD + '[invariants.outputs.counts]\ncompare = "keys"\n',
            'invariants.outputs.counts: compare = "keys" needs a key',
        ),
        (
            GOOD + '[invariants.outputs.counts]\ncompare = "messages"\nequals = "words"\n',
            "invariants.outputs.counts.equals = 'words': no input is for that source",
        ),
        (
            GOOD + '[invariants.outputs.counts]\ncompare = "bytes"\nequals = "lines"\n',
            "those messages are not split by partition",
        ),
        (
            GOOD + '[invariants.outputs.counts]\ncompare = "bytes"\nexpected = "counts.txt"\n',
            "those messages are not split by partition",
        ),
        (
            GOOD
            + '[invariants.outputs.counts]\ncompare = "messages"\nequals = "lines"\nexpected = "counts.txt"\n',
            "equals and expected both define the expected output",
        ),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, said: str) -> None:
    assert said in refused(tmp_path, text)


def test_a_file_that_is_not_there_or_not_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read: No such file"):
        read(tmp_path / "spec.toml")
    (tmp_path / "spec.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match="is not TOML"):
        read(tmp_path / "spec.toml")


def test_every_spec_of_the_tests_is_good() -> None:
    found = [read(path) for path in SPECS]
    assert found
    assert all(output.compare in Compare for spec in found for output in spec.invariants.outputs.values())


def moved_meanwhile(clock: PlannedFault, kill: PlannedFault, faults: tuple[PlannedFault, ...]) -> bool:
    """Whether another fault may set that clock before the killed sender has started; each sets it right at its end."""
    return any(
        clock.at_s <= moment_s <= kill.at_s + START_S
        for other in faults
        if other.kind == "clock" and other is not clock and other.targets == clock.targets
        for moment_s in (other.at_s, other.at_s + other.for_s)
    )


def test_where_clocks_are_wrong_a_sender_also_starts_with_one_that_is_ahead_and_one_that_is_behind() -> None:
    """One that runs goes by what it knows of the time; only a new process could stamp what its clock says."""
    with_clocks = [spec for spec in map(read, SPECS) if any(each.kind == "clock" for each in spec.nemeses)]
    assert len(with_clocks) == 4
    for spec in with_clocks:
        faults, senders = timetable(spec), instances(SENDER, spec.workload.senders)
        tried = {
            clock.by > 0
            for clock in faults
            for kill in faults
            if clock.kind == "clock"
            and abs(clock.by) >= 24 * 3600
            and kill.kind == "kill"
            and SENDER.name in kill.targets
            and senders[int(kill.pick * len(senders))] == (clock.targets or senders)[0]
            and clock.at_s <= kill.at_s <= clock.at_s + clock.for_s - START_S
            and not moved_meanwhile(clock, kill, faults)
        }
        assert tried == {True, False}, spec.name


@pytest.mark.parametrize("name", ["alone", "alone-resident"])
def test_where_processes_are_killed_by_themselves_each_kind_has_a_bound_and_time_to_recover(
    name: str,
) -> None:
    (path,) = (path for path in SPECS if path.stem == name)
    spec = read(path)
    bounds, faults = spec.invariants.recovery_s_max, timetable(spec)
    elsewhere = {"kill processor", "kill spark-jvm"} if name == "alone" else set()
    assert {fault.label for fault in faults} - elsewhere == bounds.keys()
    assert set(bounds.values()) == {5.0}
    ends_s = [*(fault.at_s for fault in faults[1:]), spec.duration_s]
    assert all(
        end_s - fault.at_s >= bounds[fault.label]
        for fault, end_s in zip(faults, ends_s, strict=True)
        if fault.label in bounds
    )
