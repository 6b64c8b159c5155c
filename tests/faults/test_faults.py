"""Every spec of this folder, run by the command that users run: whatever dies, what comes out is what should.

`short` runs with all tests, `long` by `make faults`. What was done when is printed when a test fails; the same spec
does it again.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bettong.chaos.report import Report
from bettong.chaos.spec import Spec, read
from bettong.chaos.timetable import timetable
from bettong.cli.exit_codes import BROKEN
from tests.faults import inputs, joins_model, windowed_model

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
STOP_S_MAX = 60.0
# Of the planned faults: some find nobody, for another one has just killed what they are for. A short run has few.
DONE_MIN, DONE_MIN_SHORT = 0.7, 0.5


def specs(folder: str) -> list[Path]:
    return sorted((HERE / folder).glob("*.toml"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faults")


def make_inputs(spec: Spec, folder: Path) -> None:
    seconds = int(spec.duration_s)
    match Path(spec.workload.application).stem:
        case "passthrough":
            inputs.letters(folder, seconds=seconds)
        case "word_count":
            inputs.lines(folder, count=200 * seconds)
        case "risk_check":
            inputs.market(folder, messages=8000 * seconds)
        case "windowed":
            windowed_model.write(folder, seconds=seconds)
            joins_model.write(folder, seconds=seconds)
        case other:
            pytest.fail(f"no inputs for {other}")


def run(path: Path, folder: Path) -> tuple[int, Report]:
    """`bettong chaos` on a spec; its output, report and logs lie in the folder."""
    make_inputs(read(path), folder)
    spec = Path(shutil.copy(path, folder))
    report = folder / f"{path.stem}.json"
    command = [sys.executable, "-m", "bettong", "chaos", str(spec), "--report", str(report)]
    with subprocess.Popen([*command, "--logs", str(folder / path.stem)], cwd=ROOT) as process:
        try:
            code = process.wait()
        except BaseException:
            process.terminate()  # so that it stops what it started, and unmounts its disk
            process.wait(STOP_S_MAX)
            raise
    assert report.exists(), "see what it said above"
    return code, Report.model_validate_json(report.read_bytes())


def check(path: Path, folder: Path, done_min: float) -> None:
    code, report = run(path, folder)
    print("report and logs:", folder)  # noqa: T201 - shown when the test fails
    assert (code, report.broken) == (0, [])
    assert report.injected >= done_min * len(report.faults) > 0
    assert all(sink.right for sink in report.sinks)
    assert sum(sink.expected for sink in report.sinks) > 0
    # Last, for all else of the spec was tried: a full disk needs root.
    if report.not_tried and os.geteuid() != 0:
        pytest.skip(f"all but this passed: {report.not_tried}")
    assert not report.not_tried


@pytest.mark.timeout(600)
@pytest.mark.parametrize("path", specs("short"), ids=lambda path: path.stem)
def test_the_short_set_leaves_the_output_as_it_should_be(path: Path, folder: Path) -> None:
    check(path, folder, DONE_MIN_SHORT)


def test_the_long_set_plans_so_many_faults_that_a_thousand_are_done() -> None:
    """Of 1,216 that were planned 1,138 were done, on a machine with other work (docs/delivery.md)."""
    assert sum(len(timetable(read(path))) for path in specs("long")) >= 1200


@pytest.mark.long
@pytest.mark.timeout(2400)
@pytest.mark.parametrize("path", specs("long"), ids=lambda path: path.stem)
def test_the_long_set_leaves_the_output_as_it_should_be(path: Path, folder: Path) -> None:
    check(path, folder, DONE_MIN)


@pytest.mark.timeout(300)
def test_an_application_that_loses_doubles_and_changes_messages_is_found_out(folder: Path) -> None:
    code, report = run(HERE / "unfaithful.toml", folder)
    assert code == BROKEN
    for sink in (each for each in report.sinks if each.sink == "copies"):
        assert {each["label"] for each in sink.differences} == {"A", "B", "C"}
        assert all(count > 0 for count in (sink.lost, sink.doubled, sink.unexpected))
    assert [line.split(":")[0] for line in report.broken] == ["sink copies, files", "sink copies, subscriber"]
