"""Every example over its files in `examples/data`: the golden results are those of a plain computation and of the
example, in every way in which it may run.
"""

from __future__ import annotations

import pytest

from bettong.application.execution_mode import ExecutionMode
from bettong.application.plan import plan
from bettong.testing import END, check, run, watermark
from tests.samples.example_answers import ANSWERS, line
from tests.samples.example_files import DATA, EXAMPLES, ExampleFiles, applications

# Numpy warns where Celsius in float32 are infinite in Fahrenheit.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
LINES_MAX = 80
# Where files and golden results are of another kind: a load of its own, and a sink outside.
ELSEWHERE = {"market_spread/risk_check", "sqlite_ledger/payments"}


def has_compiled(files: ExampleFiles) -> bool:
    operators = [operator for stage in plan(files.app).stages for operator in stage.operators]
    return any(operator.node.mode is ExecutionMode.COMPILED for operator in operators)


def goes_by_event_time(files: ExampleFiles) -> bool:
    return any(stage.needs_time for stage in plan(files.app).stages)


@pytest.fixture(params=sorted(ANSWERS))
def files(request: pytest.FixtureRequest) -> ExampleFiles:
    return ExampleFiles(request.param)


def test_no_example_is_left_out() -> None:
    assert applications() == ANSWERS.keys() | ELSEWHERE
    assert {path.name for path in DATA.iterdir()} == ANSWERS.keys() | {"market_spread", "nexmark"}


@pytest.mark.parametrize("name", sorted(applications()))
def test_an_example_fits_on_a_page(name: str) -> None:
    assert (EXAMPLES / f"{name}.py").read_text().count("\n") < LINES_MAX


def test_golden_results_are_those_of_a_plain_computation(files: ExampleFiles) -> None:
    answer = ANSWERS[files.name](files)
    assert {sink: [line(row) for row in rows] for sink, rows in answer.items()} == {
        sink.name: files.golden(sink.name) for sink in plan(files.app).sinks
    }
    assert all(answer.values())


def test_an_example_gives_the_golden_results(files: ExampleFiles) -> None:
    until = END if goes_by_event_time(files) else None
    for compiled in {False, has_compiled(files)}:
        outcome = run(files.app, files.inputs(), until=until, compiled=compiled)
        for sink, results in outcome.outputs.items():
            assert sorted(files.shown(sink, results)) == sorted(files.golden(sink)), sink
        assert outcome.dead_letters == []
        assert outcome.late == 0


def test_nothing_makes_a_difference_to_an_example(files: ExampleFiles) -> None:
    check(files.app, [*files.inputs(), *([watermark(END)] if goes_by_event_time(files) else [])])
