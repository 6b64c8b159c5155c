"""Every spec of this folder, run: whatever dies, what comes out is what should.

`short` runs with all tests, `long` by `make faults`. What was done when is printed when a test fails; the same spec
does it again.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from bettong.chaos.preparing import Prepared, prepare
from bettong.chaos.report import Report
from bettong.chaos.run import run
from bettong.chaos.spec import Spec, read
from bettong.cli.chaos_tables import show
from tests.faults import inputs

HERE = Path(__file__).parent
REPORTS = "faults"  # beside the inputs: reports and logs of the last runs


def specs(folder: str) -> list[Path]:
    return sorted((HERE / folder).glob("*.toml"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp(REPORTS)


def prepared(path: Path, folder: Path) -> Prepared:
    spec = read(path)
    make_inputs(spec, folder)
    return prepare(spec, folder)


def make_inputs(spec: Spec, folder: Path) -> None:
    seconds = int(spec.duration_s)
    match Path(spec.workload.application).stem:
        case "passthrough":
            inputs.letters(folder, seconds=seconds)
        case "word_count":
            inputs.lines(folder, count=200 * seconds)
        case "market_spread":
            inputs.market(folder, messages=8000 * seconds)
        case other:
            pytest.fail(f"no inputs for {other}")


def judged(path: Path, folder: Path) -> Report:
    """Runs a spec; its report lies in the folder, and is printed."""
    ready = prepared(path, folder)
    console = Console(width=140, highlight=False)

    def say(line: str) -> None:
        console.print(line, markup=False, soft_wrap=True)

    for fault in ready.faults:
        say(str(fault))
    report = run(ready, say, logs=folder / path.stem)
    (folder / f"{path.stem}.json").write_text(report.model_dump_json(indent=2))
    show(report, console)
    say(f"report and logs: {folder}")
    return report


def check(report: Report) -> None:
    assert report.broken == []
    assert report.injected + sum(bool(fault.missed) for fault in report.faults) == len(report.faults)
    assert all(each.right for each in report.sinks)
    assert sum(each.expected for each in report.sinks) > 0


@pytest.mark.timeout(600)
@pytest.mark.parametrize("path", specs("short"), ids=lambda path: path.stem)
def test_the_short_set_leaves_the_output_as_it_should_be(path: Path, folder: Path) -> None:
    check(judged(path, folder))


@pytest.mark.long
@pytest.mark.timeout(2400)
@pytest.mark.parametrize("path", specs("long"), ids=lambda path: path.stem)
def test_the_long_set_leaves_the_output_as_it_should_be(path: Path, folder: Path) -> None:
    check(judged(path, folder))
