"""What unit tests share: compiled functions and programs, which take seconds to make, and how exports of spans end."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from bettong.worker import compiling
from bettong.worker.kernel import Kernel, KernelCache, compile_kernel
from bettong.worker.stage_program import StageProgram, program
from tests.samples.kept_kernels import kept_kernels
from tests.samples.worker import meters
from tests.waiting import eventually


@pytest.fixture(scope="session", autouse=True)
def functions_are_compiled_once() -> Iterator[None]:
    """A program that names no cache of its kernels has one here, as each has that runs in a service."""

    def compiled(*arguments: Any, cache: KernelCache | None, **more: Any) -> Kernel:
        return compile_kernel(*arguments, cache=kept_kernels() if cache is None else cache, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiling, "compile_kernel", compiled)
        yield


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


@pytest.fixture
def exports_end() -> Iterator[None]:
    """OpenTelemetry draws random numbers between its tries, which hypothesis takes for those of a test that follows."""
    yield
    eventually(
        lambda: all(each.name != "bettong-traces" for each in threading.enumerate()),
        seconds=60,
        what="no thread exports spans",
    )
