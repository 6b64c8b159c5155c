"""What takes seconds to make and is shared by the unit tests: compiled programs."""

import pytest

from bettong.worker.stage_program import StageProgram, program
from tests.samples.worker import meters


@pytest.fixture(scope="session")
def tally_programs() -> dict[str, StageProgram]:
    """The first stage of `meters`, as plain Python and compiled."""
    stage = meters().stages[0]
    return {"python": program(stage, compiled=False), "compiled": program(stage, compiled=True)}


@pytest.fixture(params=["python", "compiled"])
def tally(request: pytest.FixtureRequest, tally_programs: dict[str, StageProgram]) -> StageProgram:
    """Either of them."""
    kind: str = request.param
    return tally_programs[kind]


@pytest.fixture(scope="session")
def places() -> StageProgram:
    """The second stage of `meters`."""
    return program(meters().stages[1], compiled=False)
