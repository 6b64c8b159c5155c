"""Cases of all that goes by time, in memory: their results, however they are run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bettong.testing import check, clock, run
from tests.samples.time_case import TURN_NS, TimeCase, application
from tests.samples.time_cases import CASES
from tests.samples.time_pipelines import START_NS, Line

by_name = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


def inputs(case: TimeCase) -> Iterator[object]:
    """What `run` takes, turn by turn."""
    for number in range(len(case.turns)):
        yield clock(at=START_NS + number * TURN_NS)
        yield from case.inputs(number)


@by_name
@pytest.mark.parametrize("partitions", [1, 3, 16])
def test_a_case_gives_its_results_over_any_number_of_partitions(case: TimeCase, partitions: int) -> None:
    found = run(application([case]), inputs(case), partitions=partitions)
    assert not found.dead_letters
    assert sorted(found.outputs[f"{case.name}-out"], key=str) == sorted(map(Line, case.lines), key=str)


@by_name
def test_neither_cuts_nor_speeds_nor_a_crash_at_any_record_change_a_case(case: TimeCase) -> None:
    check(application([case]), inputs(case))
