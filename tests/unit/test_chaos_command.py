"""`bettong chaos`: its command line, and its report for people."""

import os
from pathlib import Path

import pytest
from rich.console import Console

from bettong.chaos.outputs import Difference
from bettong.chaos.report import FaultReport, GrowthReport, MemoryReport, Report, by_kind, sink_report
from bettong.chaos.run import machine_text
from bettong.cli.chaos import parsed, seconds
from bettong.cli.chaos_tables import show
from bettong.cli.ending import end_well
from bettong.cli.main import app
from bettong.errors import SettingsError

ROOT = Path(__file__).parents[2]
WORDS = str(ROOT / "examples" / "word_count.py")


def called(*arguments: str) -> int:
    return end_well(app, ["chaos", *arguments], name="bettong")


def test_the_cores_of_a_report_are_those_that_its_processes_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {5, 6, 7}, raising=False)
    assert machine_text().startswith("3 cores, ")


def test_times_and_inputs_are_read() -> None:
    assert [seconds(text) for text in ("90s", "2m", "0.5h", "1.5s")] == [90, 120, 1800, 1.5]
    assert parsed(["a=b.csv", "c=d=e.csv"]) == [("a", Path("b.csv")), ("c", Path("d=e.csv"))]


@pytest.mark.parametrize("text", ["", "s", "2", "two m", "-1s", "0s", "nans", "25h", "infm"])
def test_other_times_are_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="--for"):
        seconds(text)


@pytest.mark.parametrize("inputs", [[], ["lines"], ["=x.txt"], ["lines="]])
def test_other_inputs_are_refused(inputs: list[str]) -> None:
    with pytest.raises(SettingsError, match="SOURCE=FILE"):
        parsed(inputs)


def test_the_plan_is_printed_and_nothing_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "lines.txt").write_text("a b\n" * 100)
    arguments = [WORDS, "--input", f"lines={tmp_path / 'lines.txt'}", "--for", "60s", "--seed", "5", "--plan"]
    assert called(*arguments) == 0
    first = capsys.readouterr().out
    assert "word-count: 100 messages in 60 s" in first
    assert "#1 " in first
    assert called(*arguments) == 0
    assert capsys.readouterr().out == first
    assert called(*arguments[:-2], "6", "--plan") == 0
    assert capsys.readouterr().out != first


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((WORDS,), 4, "--input SOURCE=FILE: give at least one file"),
        ((WORDS, "--input", "lines=gone.txt"), 4, "gone.txt is not a file"),
        (("gone.py", "--input", "lines=gone.txt"), 3, "gone.py"),
        (("gone.toml",), 4, "gone.toml cannot be read"),
        (("gone.toml", "--input", "a=b"), 4, "names its inputs itself"),
        ((WORDS, "--input", "a=b", "--for", "soon"), 4, "--for soon"),
        ((WORDS, "--seed", "x"), 2, "Input should be a valid integer"),
    ],
)
def test_mistakes_are_reported_in_a_line(
    arguments: tuple[str, ...], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(*arguments) == code
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def report(*differences: Difference, broken: tuple[str, ...] = ()) -> Report:
    fault = FaultReport(
        number=1,
        at_s=1,
        kind="kill sender",
        for_s=0,
        by=0,
        victims=(1,),
        missed="",
        streams=0,
        recovery_s=1.25,
        alone=True,
    )
    return Report(
        name="n",
        application="app.py",
        seed=9,
        started="",
        machine="",
        duration_s=10,
        messages=5,
        golden="an undisturbed run",
        faults=[fault],
        kinds=by_kind([fault]),
        latency_p50_s=0.5,
        sinks=[sink_report("counts", "files", "keys", (5, 5), differences)],
        memory=[MemoryReport(process="sender", peak_mb=10, bound_mb=20)],
        growth=[
            GrowthReport(metric="lag", unit="records", median=7, share=0.1, low=-0.2, high=0.4, bound=0.25)
        ],
        not_tried={"fill": "no root"},
        events=[],
        broken=list(broken),
    )


def shown(reported: Report) -> str:
    console = Console(width=150, record=True)
    show(reported, console)
    return console.export_text()


def test_a_report_says_what_was_done_what_was_not_and_what_is_broken() -> None:
    good = shown(report())
    for text in (
        "kill sender",
        "1.25 s",
        "NOT TRIED: fill: no root",
        "1 faults injected, every result as expected",
    ):
        assert text in good
    bad = shown(report(Difference("a", 3, 2, 1, 0), broken=("sink counts, files: 3 lost",)))
    assert "BROKEN: sink counts, files: 3 lost" in bad
    assert "as expected" not in bad


def test_a_report_survives_json() -> None:
    reported = report(Difference("a", 3, 2, 1, 0))
    assert Report.model_validate_json(reported.model_dump_json()) == reported
    (sink,) = reported.sinks
    assert (sink.lost, sink.doubled, sink.unexpected, sink.right) == (3, 2, 1, False)


def test_a_report_for_scripts_is_alone_on_standard_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = report()
    monkeypatch.setattr("bettong.chaos.run.run", lambda *_, **__: made)
    (tmp_path / "lines.txt").write_text("a b\n" * 100)
    called(
        WORDS,
        "--input",
        f"lines={tmp_path / 'lines.txt'}",
        "--report",
        str(tmp_path / "report.json"),
        "--json",
    )
    printed = capsys.readouterr()
    assert Report.model_validate_json(printed.out) == made
    assert "word-count: 100 messages" in printed.err
